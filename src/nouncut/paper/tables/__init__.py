"""The paper's tables, with published values beside measured ones."""
