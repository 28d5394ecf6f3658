"""Copying, moving and deleting nodes byte for byte, within a store and between stores."""
