"""Neuroglancer precomputed volumes: a document ``info``, and one file for each chunk or shard.

Spec: https://neuroglancer-docs.web.app/datasource/precomputed/volume.html and sharded.html.
"""
