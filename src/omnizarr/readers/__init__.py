"""Readers of files of other formats: each finds metadata and the places of chunks, and copies no values."""
