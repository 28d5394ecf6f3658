"""The functions that users call: to create, to open, to save."""
