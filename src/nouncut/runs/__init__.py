"""From a folder to a run directory, and back."""
