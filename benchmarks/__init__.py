"""Measurements beside other libraries, all in one run. ``python -m benchmarks --help``."""
