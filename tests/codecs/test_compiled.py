"""Without numcodecs the native engine compresses, checks and joins, with the same bytes and the same errors."""

import builtins
import os
import random
import subprocess
import sys

import numcodecs
import numpy as np
import pytest
from numcodecs.vlen import VLenBytes, VLenUTF8

import omnizarr
from omnizarr.codecs import checksums, compiled
from omnizarr.errors import ChunkError, MissingDependencyError
from omnizarr.settings import engines
from tests.codecs.cases import PLAIN, bound

needs_native = pytest.mark.skipif(engines.module() is None, reason="the native engine is not built")


@pytest.fixture
def no_numcodecs(monkeypatch):
    real = builtins.__import__

    def without(name):
        if name.partition(".")[0] == "numcodecs":
            raise ModuleNotFoundError(name, name="numcodecs")
        return real(name, fromlist=["*"])

    monkeypatch.setattr(compiled, "import_module", without)
    for each in (compiled.zstd, compiled.lz4, compiled.blosc):
        monkeypatch.setattr(each, "_found", None)
    compiled.fletcher32.cache_clear()
    yield
    compiled.fletcher32.cache_clear()


CODECS = [
    ("zstd", {"level": 3}, numcodecs.Zstd(3)),
    ("zstd", {"level": -5, "checksum": True}, numcodecs.Zstd(-5, True)),
    ("numcodecs.lz4", {"acceleration": 7}, numcodecs.LZ4(7)),
    *(
        ("numcodecs.blosc", {"cname": cname, "clevel": 5, "shuffle": shuffle}, numcodecs.Blosc(cname, 5, shuffle))
        for cname in ("blosclz", "lz4", "lz4hc", "zlib", "zstd")
        for shuffle in (0, 1, 2)
    ),
    ("numcodecs.fletcher32", {}, numcodecs.Fletcher32()),
]


@needs_native
@pytest.mark.usefixtures("no_numcodecs")
@pytest.mark.parametrize(("name", "configuration", "theirs"), CODECS, ids=str)
def test_reads_and_writes_what_numcodecs_does(name, configuration, theirs):
    ours = bound(name, configuration, PLAIN)
    assert bytes(ours.decode(theirs.encode(PLAIN))) == PLAIN
    assert bytes(theirs.decode(bytes(ours.encode(PLAIN)))) == PLAIN
    out = bytearray(len(PLAIN))
    ours.decode_into(theirs.encode(PLAIN), memoryview(out))
    assert out == PLAIN


@needs_native
@pytest.mark.usefixtures("no_numcodecs")
@pytest.mark.parametrize(("name", "configuration", "theirs"), CODECS, ids=str)
def test_broken_bytes_raise_errors_of_chunks_or_are_still_right(name, configuration, theirs):
    ours, data, chance = bound(name, configuration, PLAIN), theirs.encode(PLAIN), random.Random(7)
    with pytest.raises(ChunkError):
        ours.decode(bytes(data[: len(data) // 2]))
    for _ in range(50):
        broken = bytearray(data)
        broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
        try:
            found = ours.decode(bytes(broken))
        except ChunkError:
            continue
        assert len(found) == len(PLAIN)


@pytest.mark.usefixtures("no_numcodecs")
def test_without_either_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(engines, "module", lambda: None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'omnizarr\[numcodecs\]'"):
        bound("zstd", {}, PLAIN).encode(PLAIN)


@pytest.mark.parametrize("has_native", [False, True])
@pytest.mark.parametrize(
    ("name", "theirs", "items"),
    [
        ("vlen-utf8", VLenUTF8(), ["", "ä" * 300, "plain", "\0"]),
        ("vlen-bytes", VLenBytes(), [b"", b"\xff" * 300, b"plain", b"\0"]),
    ],
)
def test_items_of_any_length_are_joined_as_numcodecs_does(monkeypatch, name, theirs, items, has_native):
    if not has_native:
        monkeypatch.setattr(engines, "module", lambda: None)
    data_type = "string" if name == "vlen-utf8" else "bytes"
    with omnizarr.config.set({"engine": None if has_native else "reference"}):
        array = omnizarr.create_array({}, shape=(4,), chunks=(4,), dtype=data_type, compressors=None)
        array[:] = np.array(items, object)
        (stored,) = [value for key, value in array.store_path.store._values.items() if "c/" in key]
        assert bytes(stored) == theirs.encode(np.array(items, object))
        assert array[:].tolist() == items


# "bytes", a count, and for values of which the hash is known: Bob Jenkins, lookup3.c, driver5
@pytest.mark.parametrize(
    ("data", "initval", "expected"),
    [(b"", 0, 0xDEADBEEF), (b"", 0xDEADBEEF, 0xBD5B7DDE), (b"Four score and seven years ago", 0, 0x17770551)],
)
def test_lookup3_has_the_values_of_its_author(data, initval, expected):
    assert checksums.lookup3(data, initval) == expected


@needs_native
def test_a_process_without_numcodecs_reads_and_writes(tmp_path):
    program = """
import sys
sys.modules["numcodecs"] = None
import numpy as np, omnizarr
for zarr_format in (2, 3):
    for engine in ("native", "reference"):
        omnizarr.config.set({"engine": engine})
        place = f"{sys.argv[1]}/{zarr_format}{engine}.zarr"
        omnizarr.save(place, np.arange(1000), zarr_format=zarr_format)
        assert omnizarr.load(place).sum() == 499500
        omnizarr.save(place, np.array(["a", "bc"], dtype="T"), zarr_format=zarr_format)
        assert omnizarr.load(place).tolist() == ["a", "bc"]
omnizarr.print_debug_info()
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], env=environment, check=True, capture_output=True)
