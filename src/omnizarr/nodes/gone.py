"""Arrays that consolidated metadata list, although nothing of them is stored any more.

Such an array would silently be read as fill values. zarr-python reads it so; here reading warns.
"""

from __future__ import annotations

import warnings

from omnizarr.errors import OmnizarrError
from omnizarr.model import ArrayMetadata
from omnizarr.nodes.location import StorePath, dialect_of


class Gone:
    """Warns if nothing is stored of an array.

    It asks once: a request for the document, and if that is missing, a listing. Call it when a read has found no chunk
    at all, so that other reads cost nothing.
    """

    def __init__(self, where: StorePath, metadata: ArrayMetadata) -> None:
        self._where = where
        self._metadata = metadata
        self._is_asked = False

    def __call__(self) -> None:
        """Look once, and warn."""
        if self._is_asked:
            return
        self._is_asked = True
        try:
            is_gone = self._is_gone()
        except (OmnizarrError, NotImplementedError):  # without the right to list; what was read stays
            return
        if is_gone:
            warnings.warn(
                f"nothing is stored of the array /{self._where.path} of {self._where.store}, which the consolidated "
                "metadata list: it is read as fill values; if it was deleted, renew them with "
                "omnizarr.consolidate_metadata, else copy it again from where it came",
                UserWarning,
                stacklevel=2,
            )

    def _is_gone(self) -> bool:
        where, store = self._where, self._where.store
        if store.features.listing != "complete":
            return False
        dialect = dialect_of(where, self._metadata)
        document, prefix = dialect.keyspace.of_array(where.path, dialect.array_document)
        # Some hierarchies have only consolidated documents, but chunks.
        return not store.exists(document) and next(iter(store.list_prefix(prefix)), None) is None
