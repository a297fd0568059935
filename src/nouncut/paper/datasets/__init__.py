"""Labelled data sets in their original layouts."""
