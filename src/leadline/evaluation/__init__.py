"""Datasets, metrics and the runner behind `leadline eval` and the notebooks."""
