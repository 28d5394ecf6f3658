"""Arrays that consolidated metadata list, although nothing of them is stored any more.

Such an array would silently be read as fill values. zarr-python reads it so; here reading warns.
"""

from __future__ import annotations

from omnizarr.errors import OmnizarrError
from omnizarr.model import ArrayMetadata
from omnizarr.nodes.location import StorePath, dialect_of
from omnizarr.support.warned import warn


class Gone:
    """Warns if nothing is stored of an array.

    It asks once: a request for the document, and if that is missing, a listing. Where the store cannot list, a missing
    document is enough, unless that of the group is missing, too. Call it when a read has found no chunk at all, so that
    other reads cost nothing.
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
            warn(
                f"nothing is stored of the array /{self._where.path} of {self._where.store}, which the consolidated "
                "metadata list: it is read as fill values; if it was deleted, renew them with "
                "omnizarr.consolidate_metadata, else copy it again from where it came",
            )

    def _is_gone(self) -> bool:
        where, store = self._where, self._where.store
        dialect = dialect_of(where, self._metadata)
        document, prefix = dialect.keyspace.of_array(where.path, dialect.array_document)
        if store.exists(document):
            return False
        # Some hierarchies have only consolidated documents, but chunks.
        if store.features.listing == "complete":
            return next(iter(store.list_prefix(prefix)), None) is None
        above = dialect.keyspace.documents(where.path.rpartition("/")[0])
        return any(store.exists(key) for key in above.values())
