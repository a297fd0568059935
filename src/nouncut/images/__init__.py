"""Finding, opening, hashing and shrinking image files."""
