"""The public functions that create, open and save."""
