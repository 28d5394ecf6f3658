"""Streaming: the elements of arrays, block by block in bounded memory, by threads or by a cluster.

`executors` say who does the work, `regions` which blocks there are, `chunks` what arrays hold, `equality` when elements
are equal. Moving, comparing, digests and statistics stand on these.
"""
