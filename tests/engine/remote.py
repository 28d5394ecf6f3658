"""Arrays behind web servers, read by the native engine itself and by way of Python."""

from __future__ import annotations

import re
import subprocess
import sys
from textwrap import dedent

import numpy as np
import pytest

import omnizarr
from omnizarr import engine
from omnizarr.errors import OmnizarrError
from omnizarr.settings import engines
from omnizarr.stores import MemoryStore
from tests.engine.both import needs_native

needs_remote = [
    needs_native,
    pytest.mark.skipif(not hasattr(engines.module(), "Client"), reason="the native engine was built without `remote`"),
    pytest.mark.skipif(
        engines.choice() == "reference", reason="OMNIZARR_ENGINE=reference: the native engine is not to be used"
    ),
]

VALUES = np.arange(1, 100 * 90 + 1, dtype="i4").reshape(100, 90)
ZSTD = {"name": "zstd", "configuration": {"level": 1, "checksum": True}}
GZIP = {"name": "gzip", "configuration": {"level": 1}}
CRC = {"name": "crc32c"}


def packed(*chunk_shape):
    """Return the codecs of shards that are compressed as a whole."""
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}}]
    configuration = {
        "chunk_shape": chunk_shape, "codecs": codecs, "index_codecs": [*codecs, CRC], "index_location": "start"
    }  # fmt: skip
    return {"compressors": [GZIP], "serializer": {"name": "sharding_indexed", "configuration": configuration}}


def by(fetch, url, options, **how):
    """Open an array whose chunks are fetched natively, or by way of Python."""
    with omnizarr.config.set({"fetch": fetch}):
        array = omnizarr.open_array(url, mode="r", storage_options=options, **how)
        assert engine.is_remote(array._bind().binding) == (fetch == "native")
        return array


def put(server, path, **how):
    """Store the values below a path of a web server, all but one chunk."""
    store = MemoryStore()
    how = {"chunks": (16, 16), "dtype": "i4", **how}
    array = omnizarr.create_array(store, shape=VALUES.shape, fill_value=7, **how)
    array[...] = VALUES
    missing = next(key for key in sorted(store.list()) if key.endswith(("c/0/0", "0.0")))
    if len([*store.list()]) > 2:
        store.delete(missing)
    for key in store.list():
        server.values[f"{path}/{key}"] = bytes(store.get(key))
    return f"{server.url(path)}"


def chunks(server):
    """Return how many requests there were for each chunk since the last time."""
    asked = [path for _, path, _ in server.requests() if "zarr.json" not in path]
    return {path: asked.count(path) for path in asked}


def failure(task):
    """Return what an error says, without what differs from time to time."""
    try:
        task()
    except OmnizarrError as error:
        fields = {name: getattr(error, name, None) for name in OmnizarrError.FIELDS}
        text = re.sub(r"after \d+ retries|127\.0\.0\.1:\d+", "", str(error))
        return type(error), text, {**fields, "found": re.sub(r"after \d+ retries", "", str(fields.get("found")))}
    pytest.fail("no error")


def respond(status, body=b"", **headers):
    return lambda handler: handler.respond(status, body, **headers) or True


def run(script, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", dedent(script), *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
