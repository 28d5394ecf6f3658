"""Checking a hierarchy: documents, names, keys, chunks and copies, against the specification of its format.

`findings` defines findings, `codes` their kinds. `inventory` finds the documents, `documents` reads them,
`extensions`, `siblings`, `copies` and `keyspace` check their meaning together, `chunks` the stored chunks.
"""

from omnizarr.tools.checking.findings import CheckReport, Finding

__all__ = ["CheckReport", "Finding"]
