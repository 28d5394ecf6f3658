"""Stores made of documents and bytes that were written by hand, and what is in stores, as it is there."""

import json

from omnizarr.stores import MemoryStore


def store(values):
    """Return a store of key -> bytes, or a document."""
    made = MemoryStore()
    for key, value in values.items():
        made.set(key, value if isinstance(value, bytes) else json.dumps(value).encode())
    return made


def document(store, key):
    """Return the document under a key; standard JSON, or it fails."""

    def refuse(token):
        raise AssertionError(f"{token} is not JSON")

    return json.loads(bytes(store.get(key)), parse_constant=refuse)


def keys(store):
    return sorted(store.list())


def without(document, *names):
    return {name: value for name, value in document.items() if name not in names}
