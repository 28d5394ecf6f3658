"""Streaming: the elements of arrays, block by block in bounded memory, by threads or by a cluster.

`executors` run the work, `regions` cut arrays into blocks, `chunks` finds stored chunks, and `equality` compares
elements. Moving, comparing, digests and statistics are built on these.
"""
