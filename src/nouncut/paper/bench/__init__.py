"""Runs of the baselines and ablations on a data set."""
