"""Finding, opening and hashing image files; thumbnails."""
