"""Which other programs read what `omnizarr.convert` writes in Zarr v3: the table that it tells users from.

Sources are Zarr v2 by zarr-python, with each codec and data type that v2 has and v3 can hold.
"""

import importlib.metadata
import json
import re
from pathlib import Path

import numcodecs
import numpy as np
import pytest
import zarr

import omnizarr
from omnizarr.codecs import registry
from omnizarr.tools.translate import readers

tensorstore = pytest.importorskip("tensorstore", reason="tensorstore is not installed")
zarrista = pytest.importorskip("zarrista", reason="zarrista is not installed")
stores = pytest.importorskip("zarrista.store", reason="zarrista is not installed")

pytestmark = [
    pytest.mark.rules,
    pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3 specification"),
    pytest.mark.filterwarnings("ignore:The data type"),
]
MEASURED = {"zarr-python": ("zarr", "3.1."), "TensorStore": ("tensorstore", "0.1.86"), "zarrs": ("zarrista", "0.1.0")}
"""Distributions, and the versions that the table is of."""
CODECS = {
    name: known.readers
    for record in registry.records()
    for name, known in record.names.items()
    if known.readers is not None
}
GRID = np.arange(24, dtype="i4").reshape(4, 6)
RECORDS = np.array(
    [(1, 2.5, b"ab", "ü"), (3, 4.5, b"c", "xy")], [("a", "<i2"), ("b", "<f4"), ("s", "S3"), ("u", "<U2")]
)
NESTED = np.array([(1, (2, 3.0)), (4, (5, 6.0))], [("a", "<i2"), ("r", [("x", "<i4"), ("y", "<f8")])])
COMPRESSORS = {
    name: (GRID, {"compressors": getattr(numcodecs, name)()})
    for name in ("Zlib", "BZ2", "LZMA", "LZ4", "GZip", "Zstd", "Blosc")
}
OF_BYTES = {
    "crc32": (GRID, {"compressors": numcodecs.CRC32()}),
    "crc32c": (GRID, {"compressors": numcodecs.CRC32C()}),
    "adler32": (GRID, {"compressors": numcodecs.Adler32()}),
    "fletcher32": (GRID, {"compressors": numcodecs.Fletcher32()}),
    "jenkins": (GRID, {"compressors": numcodecs.JenkinsLookup3()}),
    "base64": (GRID, {"compressors": numcodecs.Base64()}),
    "shuffle": (GRID, {"filters": [numcodecs.Shuffle(4)], "compressors": numcodecs.GZip()}),
    "shuffle and zlib": (GRID, {"filters": [numcodecs.Shuffle(4)], "compressors": numcodecs.Zlib()}),
    "checksum and zlib": (GRID, {"filters": [numcodecs.Fletcher32()], "compressors": numcodecs.Zlib(9)}),
}
FILTERS = {
    "delta": (GRID, {"filters": [numcodecs.Delta("<i4")]}),
    "fixedscaleoffset": (GRID / 2, {"filters": [numcodecs.FixedScaleOffset(0, 10, "<f8", "<i2")]}),
    "quantize": (GRID / 2, {"filters": [numcodecs.Quantize(2, "<f8")]}),
    "bitround": (GRID / 2, {"filters": [numcodecs.BitRound(20)]}),
    "astype": (GRID, {"filters": [numcodecs.AsType("<i8", "<i4")]}),
    "packbits": (GRID % 2 == 0, {"filters": [numcodecs.PackBits()]}),
    "categorize": (np.array(["a", "b"], "U1"), {"filters": [numcodecs.Categorize(["a", "b"], "<U1", "u1")]}),
}
PLAIN = ["?", "i1", "<i2", ">i2", "<i4", "<i8", "u1", "<u2", "<u4", ">u8", "<f2", "<f4", ">f8", "<c8", ">c16"]
TYPES = {
    **{name: ((np.arange(6) % 2).astype(name), {}) for name in PLAIN},
    "S": (np.array([b"ab", b"cde"], "S5"), {}),
    "U": (np.array(["ab", "cdé"], "<U5"), {}),
    "big U": (np.array(["ab", "cdé"], ">U5"), {}),
    "V": (np.array([b"abcd", b"efgh"], "V4"), {}),
    "M": (np.array(["2020-01-01", "2021-01-01"], "<M8[s]"), {}),
    "big M": (np.array(["2020-01-01", "2021-01-01"], ">M8[10s]"), {}),
    "m": (np.array([1, 2], "<m8[s]"), {}),
    "records": (RECORDS, {}),
    "big records": (RECORDS.astype([("a", ">i2"), ("b", ">f4"), ("s", "S3"), ("u", ">U2")]), {}),
    "nested": (NESTED, {}),
    "strings": (np.array(["ab", "c"], "T"), {"dtype": str}),
    "variable bytes": (np.array([b"ab", b"c"], object), {"dtype": zarr.dtype.VariableLengthBytes()}),
    "F": (GRID, {"order": "F"}),
}
CASES = {**COMPRESSORS, **OF_BYTES, **FILTERS, **TYPES}


def read_by_zarr_python(path):
    return zarr.open_array(path, mode="r", zarr_format=3)[...]


def read_by_tensorstore(path):
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}}
    return tensorstore.open(spec).result().read().result()


def read_by_zarrs(path):
    found = zarrista.Array.open(stores.FilesystemStore(path))[...]
    try:
        return found.to_numpy()
    except Exception:  # noqa: BLE001 - what it has no dtype for, it gives as bytes
        return np.frombuffer(bytes(found.buffer()), "u1")


READ = {"zarr-python": read_by_zarr_python, "TensorStore": read_by_tensorstore, "zarrs": read_by_zarrs}


def reads(reader, path, expected):
    """Return whether a program reads an array unchanged."""
    try:
        found = np.asarray(READ[reader](path))
    except Exception:  # noqa: BLE001 - whatever it says: it does not read it
        return False
    if found.dtype == np.uint8 and expected.dtype.kind not in "uO":
        return found.tobytes() == expected.astype(expected.dtype.newbyteorder("=")).tobytes()
    if found.dtype.kind in "OT" or expected.dtype.kind in "OTUS":
        return [str(value) for value in found.ravel().tolist()] == [str(value) for value in expected.ravel().tolist()]
    return found.shape == expected.shape and found.tolist() == expected.tolist()


def convert(name, tmp_path, **options):
    """Return where an array is converted to, the report, and what zarr-python reads in the source."""
    values, more = CASES[name]
    array = zarr.create_array(
        tmp_path / "old", shape=values.shape, zarr_format=2, **{"dtype": values.dtype, "compressors": None, **more}
    )
    array[...] = values
    report = omnizarr.convert(tmp_path / "old", tmp_path / "new", **options)
    assert report.verified
    return tmp_path / "new", report, np.asarray(array[...])


def names_in(place):
    document = json.loads((place / "zarr.json").read_text())
    data_type = document["data_type"]
    return data_type if isinstance(data_type, str) else data_type["name"], [each["name"] for each in document["codecs"]]


def known_to(place):
    data_type, codecs = names_in(place)
    return readers.DATA_TYPES[data_type].intersection(*(CODECS[name] for name in codecs))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("compressors", ["portable", "keep"])
@pytest.mark.parametrize("name", CASES)
def test_table_says_who_reads_what_is_written(name, compressors, tmp_path):
    place, _, expected = convert(name, tmp_path, compressors=compressors)
    found = {reader for reader in READ if reads(reader, place, expected)}
    of_this_version = {
        reader for reader, (name, version) in MEASURED.items() if importlib.metadata.version(name).startswith(version)
    }
    assert found >= known_to(place)
    assert found & of_this_version == known_to(place) & of_this_version


@pytest.mark.parametrize("name", [*COMPRESSORS, *OF_BYTES, *PLAIN, "F"])
def test_compressors_checksums_and_numbers_are_read_by_all(name, tmp_path):
    place, report, _ = convert(name, tmp_path)
    assert known_to(place) == set(READ)
    assert not any("do not read it" in remark for remark in report.nodes[0].remarks)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("compressors", ["portable", "keep"])
@pytest.mark.parametrize("name", CASES)
def test_what_fewer_than_two_read_is_remarked(name, compressors, tmp_path):
    place, report, _ = convert(name, tmp_path, compressors=compressors)
    data_type, codecs = names_in(place)
    few = {("data type", data_type): readers.DATA_TYPES[data_type]}
    few.update({("codec", each): CODECS[each] for each in codecs})
    told = [re.match(r"(data type|codec) '(.*)' is known to", remark) for remark in report.nodes[0].remarks]
    assert {match.groups() for match in told if match} == {what for what, known in few.items() if len(known) < 2}


@pytest.mark.parametrize("name", CASES)
def test_in_place_chunks_stay_and_who_reads_them_is_remarked(name, tmp_path):
    values, more = CASES[name]
    options = {"dtype": values.dtype, "compressors": None, "chunk_key_encoding": {"name": "v2", "separator": "."}}
    array = zarr.create_array(tmp_path / "x", shape=values.shape, zarr_format=2, **{**options, **more})
    array[...] = values
    before = {path.name: path.read_bytes() for path in (tmp_path / "x").iterdir()}
    report = omnizarr.convert(tmp_path / "x", in_place=True)
    assert before.items() <= {path.name: path.read_bytes() for path in (tmp_path / "x").iterdir()}.items()
    assert any("do not read it" in remark for remark in report.nodes[0].remarks) is (len(known_to(tmp_path / "x")) < 2)


def test_every_name_of_the_table_is_written_by_a_case_or_the_usual_one(tmp_path):
    written = {"sharding_indexed", "r*"}
    for number, name in enumerate(CASES):
        for compressors in ("portable", "keep"):
            (tmp_path / f"{number}{compressors}").mkdir()
            data_type, codecs = names_in(convert(name, tmp_path / f"{number}{compressors}", compressors=compressors)[0])
            written |= {data_type, *codecs}
    assert written >= {*CODECS, *readers.DATA_TYPES}


def test_manual_has_the_same_table_of_data_types():
    text = (Path(__file__).parents[2] / "docs" / "converting.md").read_text(encoding="utf-8")
    rows = text.partition(f"| data type of v3 | {' | '.join(readers.READERS)} |\n")[2].partition("\n\n")[0]
    found = {}
    for names, *answers in re.findall(r"^\| (`.+`) \| (yes|no) \| (yes|no) \| (yes|no) \|$", rows, re.MULTILINE):
        known = {reader for reader, answer in zip(readers.READERS, answers, strict=True) if answer == "yes"}
        found.update(dict.fromkeys(re.findall(r"`([^`]+)`", names), known))
    assert found == readers.DATA_TYPES


def test_raw_bytes_of_the_draft_are_read_by_zarrs(tmp_path):
    array = omnizarr.create_array(tmp_path / "old", shape=2, dtype="r24", zarr_format="3-draft2020", compressors=None)
    array[...] = np.array([b"abc", b"def"], "V3")
    report = omnizarr.convert(tmp_path / "old", tmp_path / "new")
    assert bytes(read_by_zarrs(tmp_path / "new")) == b"abcdef"
    assert "data type 'r*' is known to zarrs; zarr-python and TensorStore do not read it" in report.nodes[0].remarks
