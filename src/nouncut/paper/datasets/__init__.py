"""Labelled data sets in the layouts they are published in."""
