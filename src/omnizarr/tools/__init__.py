"""Tools for whole hierarchies."""
