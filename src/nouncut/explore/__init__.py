"""The explorer: a page on this machine to look at a run, search it and mend its groups."""
