"""A map of the images in two dimensions."""
