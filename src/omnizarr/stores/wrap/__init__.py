"""Stores upon other stores."""
