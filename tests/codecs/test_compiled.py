"""Without numcodecs the native engine compresses, checks and joins, with the same bytes and the same errors."""

import builtins
import doctest
import os
import pathlib
import random
import subprocess
import sys

import numcodecs
import numpy as np
import pytest
from numcodecs.vlen import VLenBytes, VLenUTF8

import omnizarr
from omnizarr.codecs import blosc, checksums, compiled, lz4, zstd
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
    for each in (zstd.zstd, lz4.lz4, blosc.blosc):
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
    with pytest.raises(MissingDependencyError, match=r'pip install "omnizarr\[numcodecs\]"'):
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


BARE = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numcodecs", "click") or name == "omnizarr._native":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import numpy as np
import omnizarr
"""
"""The core alone, where it has no native engine and no numcodecs."""


def in_core_alone(code, *arguments):
    environment = {name: value for name, value in os.environ.items() if name != "OMNIZARR_ENGINE"}  # which it lacks
    command = [sys.executable, "-c", BARE + code, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return done.stdout


def test_default_compressor_works_in_the_core_alone_in_every_format(tmp_path):
    code = """
for zarr_format in (1, 2, 3, "3-draft2019", "3-draft2020"):
    for dtype in ("float64", "int16"):
        place = f"{sys.argv[1]}/{zarr_format}-{dtype}.zarr"
        array = omnizarr.create_array(place, shape=(1000,), chunks=(100,), dtype=dtype, zarr_format=zarr_format)
        array[:500] = np.arange(500).astype(dtype)
group = omnizarr.create_group(sys.argv[1] + "/group.zarr")
group["sharded"] = np.arange(64.0)
group.create_array("shards", data=np.arange(64.0), chunks=(4,), shards=(16,))
group.create_array("text", data=np.array(["a", "bc"]), dtype="string")
"""
    in_core_alone(code, str(tmp_path))
    for zarr_format in (1, 2, 3, "3-draft2019", "3-draft2020"):
        for dtype in ("float64", "int16"):
            found = omnizarr.open_array(tmp_path / f"{zarr_format}-{dtype}.zarr", mode="r")
            np.testing.assert_array_equal(found[:500], np.arange(500).astype(dtype))
    zarr = pytest.importorskip("zarr")
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "3-float64.zarr", mode="r")[:500], np.arange(500.0))
    group = zarr.open_group(tmp_path / "group.zarr", mode="r")
    np.testing.assert_array_equal(group["shards"][:], np.arange(64.0))


ASKED = [
    '{"compressors": "zstd"}',
    '{"compressors": {"name": "blosc", "configuration": {"cname": "lz4"}}}',
    '{"compressors": {"id": "lz4"}, "zarr_format": 2}',
    '{"compressors": "zstd", "shards": (4,), "chunks": (2,)}',
    '{"filters": {"id": "fletcher32"}, "zarr_format": 2}',
    '{"zarr_format": 0}',  # it has no other compressor
]


def test_codec_that_is_missing_is_refused_when_the_array_is_created():
    code = f"""
for options in [{", ".join(ASKED)}]:
    there = {{}}
    try:
        omnizarr.create_array(there, shape=(4,), dtype="float64", **options)
    except omnizarr.errors.MissingDependencyError as error:
        assert not there, there
        print("omnizarr[numcodecs]" in str(error), end=" ")
    else:
        print(options)
"""
    assert in_core_alone(code).split() == ["True"] * len(ASKED)


def test_readme_runs_in_the_core_alone(tmp_path):
    readme = (pathlib.Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    examples = "\n".join(each.source for each in doctest.DocTestParser().get_examples(readme))
    assert "create_array" in examples
    in_core_alone(f"import os; os.chdir({str(tmp_path)!r})\n{examples}")


def test_other_compressor_is_the_default_only_where_one_is_missing():
    assert omnizarr.create_array({}, shape=(4,), dtype="float64").compressors[0].name == "zstd"
