"""Recommended shapes of chunks and shards for typical reads of an array, with the requests and bytes of each read."""
