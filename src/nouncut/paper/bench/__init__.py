"""Benchmarks and ablations on labelled data sets."""
