"""The public functions that create, open, join and save."""
