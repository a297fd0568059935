"""Nouns, prompts, noun filters, and names for clusters."""
