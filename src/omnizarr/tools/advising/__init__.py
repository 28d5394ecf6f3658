"""Shapes of chunks and shards for what is read of an array, and what that takes."""
