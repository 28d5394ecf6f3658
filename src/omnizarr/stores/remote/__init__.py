"""Stores far away, and stores of other libraries."""
