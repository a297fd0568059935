"""Encoders that turn images and texts into vectors, one file per model family."""
