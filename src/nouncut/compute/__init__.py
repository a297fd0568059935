"""Threads, memory, matrix products, eigenvectors and atomic files: nothing about images."""
