"""Which stores can be reached from other processes."""

from __future__ import annotations

from omnizarr.stores.base import Store


def is_shared(store: Store) -> bool:
    """Return whether a copy of a store that is made by pickling reaches the same data, from another process too.

    A store that does not say where its data are (see `Store.origin`) is taken for one that cannot be shared.

    Examples
    --------
    >>> from omnizarr.stores import LocalStore, MemoryStore
    >>> is_shared(LocalStore("data")), is_shared(MemoryStore())
    (True, False)
    """
    data, _ = store.origin()
    # The fallback is the identity of the store; of values in memory there is the identity of the mapping.
    return not isinstance(data, int) and not (isinstance(data, tuple) and any(isinstance(part, int) for part in data))
