"""Measurements of foxrun, each as ratios within one run."""
