"""Features on disk, found by content."""
