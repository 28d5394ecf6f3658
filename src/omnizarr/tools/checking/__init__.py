"""Checking a hierarchy: documents, names, keys, chunks and copies, against the letter of its format.

`findings` says what is found, `codes` which kinds there are. `inventory` finds the documents, `documents` reads them,
`extensions`, `siblings`, `copies` and `keyspace` look at what they mean together, `chunks` at what is stored.
"""

from omnizarr.tools.checking.findings import CheckReport, Finding

__all__ = ["CheckReport", "Finding"]
