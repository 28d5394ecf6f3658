"""FITS files, opened in place: the standard, and astropy, say what is in them."""

import gc
import gzip
import itertools
import json
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest

import omnizarr
from omnizarr.cli import main
from omnizarr.errors import (
    ChunkSizeError,
    CodecError,
    MetadataError,
    OmnizarrError,
    ReadOnlyError,
    StaleError,
    StoreError,
    StoreLimitError,
)
from omnizarr.readers import fits
from omnizarr.readers.fits import contents, headers
from omnizarr.readers.fits import gzipped as fits_gzipped
from omnizarr.stores import MemoryStore
from omnizarr.stores.manifests.file import File
from omnizarr.stores.wrap.metrics import MetricsStore
from tests.readers.fits_files import COLUMNS, RECORDS, card, header, image, padded, rows_of, sample, table

VALUES = np.arange(60).reshape(3, 4, 5)


def written(folder, *units):
    path = folder / "x.fits"
    path.write_bytes(b"".join(units))
    return path


# -- images -------------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["u1", "i2", "i4", "i8", "f4", "f8"])
def test_a_file_with_one_image_is_an_array(code, tmp_path):
    values = VALUES.astype(code)
    if code[0] == "f":
        values[0, 0, :2] = np.nan, -np.inf
    array = omnizarr.open(written(tmp_path, image(values, code=code)))
    assert (array.dtype, array.shape, array.dimension_names) == (np.dtype(code), (3, 4, 5), (None, "y", "x"))
    assert np.array_equal(array[...], values, equal_nan=code[0] == "f")
    assert np.array_equal(array[1, ::2, 3], values[1, ::2, 3])


@pytest.mark.parametrize(
    ("code", "zero", "dtype"),
    [("u1", -128, "i1"), ("i2", 2**15, "u2"), ("i4", 2**31, "u4"), ("i8", 2**63, "u8")],
)
def test_integers_with_half_of_the_range_subtracted_are_exact(code, zero, dtype, tmp_path):
    limits = np.iinfo(dtype)
    numbers = [limits.min, limits.min + 1, limits.max // 3, limits.max - 1, limits.max]
    stored = np.array([int(number) - zero for number in numbers], code)
    array = omnizarr.open(written(tmp_path, image(stored, [("BZERO", zero)], code=code)))
    assert array.dtype == np.dtype(dtype)
    assert array[...].tolist() == numbers
    assert "scale_factor" not in array.attrs


def test_other_scales_are_attributes_of_cf(tmp_path):
    cards = [("BSCALE", 0.5), ("BZERO", 10.0), ("BLANK", -1), ("BUNIT", "K")]
    stored = np.array([[-1, 4]], "i2")
    path = written(tmp_path, image(stored, cards))
    array = omnizarr.open(path)
    assert array[...].tolist() == [[-1, 4]]
    wanted = {"scale_factor": 0.5, "add_offset": 10.0, "_FillValue": -1, "units": "K"}
    assert {name: array.attrs[name] for name in wanted} == wanted
    xarray = pytest.importorskip("xarray", reason="xarray decodes the attributes of CF")
    found = xarray.open_dataset(path, engine="omnizarr")["data"].values
    assert np.array_equal(found, [[np.nan, 12]], equal_nan=True)


def test_a_missing_element_is_shifted_as_all_are(tmp_path):
    cards = [("BZERO", 32768), ("BLANK", -32768)]
    array = omnizarr.open(written(tmp_path, image(np.array([-32768, 0], "i2"), cards)))
    assert array.attrs["_FillValue"] == array.fill_value == array[0] == 0


def test_units_are_named(tmp_path):
    root = omnizarr.open(written(tmp_path, sample()))
    assert sorted(root) == ["4", "5", "6", "7", "EVENTS", "SCI_1", "SCI_2"]
    assert root["SCI_1"].dimension_names == ("freq", "y", "x")
    assert np.array_equal(root["SCI_1"][...], VALUES)
    assert np.array_equal(root["SCI_2"][...], VALUES)
    assert root["SCI_2"].dtype == np.uint16
    assert root.attrs["OBJECT"] == "M 31"


@pytest.mark.parametrize("name", ["a/b", "..", "__x", "zarr.json", "zarr.json ", "", "\x7f"])
def test_names_that_no_node_can_have_are_numbers(name, tmp_path):
    assert not headers.is_name(name.strip())
    raw = header([("XTENSION", "IMAGE"), ("BITPIX", 8), ("NAXIS", 1), ("NAXIS1", 2), ("EXTNAME", name)])
    root = omnizarr.open(written(tmp_path, image(), raw, padded(b"\1\2")))
    assert root["1"][...].tolist() == [1, 2]


def test_equal_names_are_all_shown(tmp_path):
    units = [image(np.array([at], "u1"), [("EXTNAME", name)], extension=True) for at, name in enumerate("aAa1")]
    root = omnizarr.open(written(tmp_path, image(), *units))
    assert {name: int(root[name][0]) for name in root} == {"a_1": 0, "2": 1, "3": 2, "1": 3}


# -- headers ------------------------------------------------------------------------------


def test_cards_are_attributes(tmp_path):
    lines = [
        "TEXT    = 'it''s / a text  ' / a comment", "EMPTY   = ''", "TRUE    =                    T",
        "FLOAT   =              1.5D-3 / with D", "WHOLE   =                   42", "NOTHING =",
        "COMPLEX =           (1.0, -2)", "HUGE    = 123456789012345678901234567890", "FAR     = 1E999",
        "LONG    = 'one &'", "CONTINUE  'two &'", "CONTINUE  'three' / the end",
        "HIERARCH ESO DET CHIP1 ID = 'ccd' / a long keyword", "COMMENT a", "HISTORY b", "COMMENT c",
        "TWICE   =                    1", "TWICE   =                    2", "no card at all", "",
    ]  # fmt: skip
    found = dict(omnizarr.open(written(tmp_path, image(VALUES.astype("u1"), lines))).attrs)
    text = found.pop("fits_header")
    assert found == {
        "TEXT": "it's / a text", "EMPTY": "", "TRUE": True, "FLOAT": 0.0015, "WHOLE": 42, "NOTHING": None,
        "COMPLEX": [1.0, -2], "HUGE": "123456789012345678901234567890", "FAR": "1E999", "LONG": "one two three",
        "ESO DET CHIP1 ID": "ccd", "COMMENT": ["a", "c"], "HISTORY": ["b"], "TWICE": 1,
    }  # fmt: skip
    assert text.splitlines()[6:] == [line.rstrip() for line in lines[:-1]]


def test_units_without_data_are_groups(tmp_path):
    path = written(tmp_path, image(), image(cards=[("EXTNAME", "INFO"), ("A", 1)], extension=True))
    assert omnizarr.open(path)["INFO"].attrs["A"] == 1


BROKEN = {
    "has no END": header([("SIMPLE", True), ("BITPIX", 8), ("NAXIS", 0)]).replace(b"END", b"AND"),
    "the size of elements is impossible": header([("SIMPLE", True), ("BITPIX", 7), ("NAXIS", 0)]),
    "the number of axes is impossible": header([("SIMPLE", True), ("BITPIX", 8), ("NAXIS", 1000)]),
    "an axis has no length": header([("SIMPLE", True), ("BITPIX", 8), ("NAXIS", 2), ("NAXIS1", -1), ("NAXIS2", 2)]),
    "larger than any file": header([("SIMPLE", True), ("BITPIX", 8), ("NAXIS", 1), ("NAXIS1", 10**18 * 9)]),
}


@pytest.mark.parametrize(("message", "raw"), BROKEN.items(), ids=list(BROKEN))
def test_broken_headers_are_errors_of_the_place(message, raw, tmp_path):
    path = written(tmp_path, raw)
    with pytest.raises(MetadataError, match=message) as caught:
        omnizarr.open(path)
    assert "x.fits" in str(caught.value)


def test_what_is_not_shown_is_named(tmp_path):
    first = header([("SIMPLE", True), ("BITPIX", 8), ("NAXIS", 0)])
    other = header([("XTENSION", "FOREIGN"), ("BITPIX", 8), ("NAXIS", 0), ("EXTNAME", "THEIRS")])
    wide = image(np.zeros((1,) * 33, "u1"), extension=True)
    broken = header([("XTENSION", "IMAGE"), ("BITPIX", 9), ("NAXIS", 0)])
    notes = omnizarr.open(written(tmp_path, first, other, wide, broken)).store.notes
    for note, part in zip(notes, ("33 axes", "BITPIX", "FOREIGN"), strict=False):
        assert note.startswith(("unit", "what follows")), part
    assert all(any(part in note for note in notes) for part in ("FOREIGN", "33 axes", "byte"))


def test_random_groups_are_a_group_of_arrays(tmp_path):
    records = np.array(
        [(1, 2, [[0, 1, 2], [3, 4, 5]]), (3, 4, [[6] * 3] * 2)], [("u", ">i2"), ("v", ">i2"), ("data", ">i2", (2, 3))]
    )
    cards = [
        ("SIMPLE", True), ("BITPIX", 16), ("NAXIS", 3), ("NAXIS1", 0), ("NAXIS2", 3), ("NAXIS3", 2), ("GROUPS", True),
        ("PCOUNT", 2), ("GCOUNT", 2), ("PTYPE1", "UU"), ("PTYPE2", "UU"), ("PSCAL2", 0.5), ("BUNIT", "Jy"),
    ]  # fmt: skip
    group = omnizarr.open(written(tmp_path, header(cards) + padded(records.tobytes())))["PRIMARY"]
    assert sorted(name for name, _ in group.members()) == ["UU", "UU_2", "data"]
    assert np.array_equal(group["data"][...], records["data"])
    assert group["data"].dimension_names == ("group", None, None)
    assert group["data"].attrs["units"] == "Jy"
    assert np.array_equal(group["UU"][...], records["u"])
    assert np.array_equal(group["UU_2"][...], records["v"])
    assert group["UU_2"].attrs["scale_factor"] == 0.5


def test_columns_of_compressed_tables_are_arrays(tmp_path):
    numbers, flags = (np.arange(10) * 1000).astype(">i4"), np.arange(10) % 3 == 0
    texts = np.array([f"t{number}" for number in range(10)], "S3")
    values = np.linspace(0, 1, 20).reshape(10, 2).astype(">f8")
    heap, rows = b"", []
    for start in (0, 4, 8):
        part = slice(start, start + 4)
        shuffled = np.frombuffer(numbers[part].tobytes(), "u1").reshape(-1, 4).T.tobytes()
        tiles = [gzip.compress(shuffled), gzip.compress(texts[part].tobytes()), values[part].tobytes(),
                 gzip.compress(np.where(flags[part], b"T", b"F").tobytes())]  # fmt: skip
        row = []
        for tile in tiles:
            row += [len(tile), len(heap)]
            heap += tile
        rows.append(np.array(row, ">i4").tobytes())
    columns = [
        {"TTYPE": "n", "TFORM": "1PB", "ZFORM": "J", "ZCTYP": "GZIP_2", "TUNIT": "m"},
        {"TTYPE": "t", "TFORM": "1PB", "ZFORM": "3A", "ZCTYP": "GZIP_1"},
        {"TTYPE": "v", "TFORM": "1PB", "ZFORM": "2D", "ZCTYP": "NOCOMPRESS"},
        {"TTYPE": "l", "TFORM": "1PB", "ZFORM": "L", "ZCTYP": "GZIP_1"},
        {"TTYPE": "ragged", "TFORM": "1PB", "ZFORM": "1PJ(3)", "ZCTYP": "GZIP_1"},
        {"TTYPE": "other", "TFORM": "1PB", "ZFORM": "J", "ZCTYP": "THEIRS"},
    ]
    rows = [row + np.zeros(4, ">i4").tobytes() for row in rows]
    cards = [("EXTNAME", "T"), ("ZTABLE", True), ("ZNAXIS1", 40), ("ZNAXIS2", 10), ("ZTILELEN", 4), ("OBJECT", "M 31")]
    root = omnizarr.open(written(tmp_path, image(), table(columns, rows, cards, heap=heap)))
    group = root["T"]
    assert np.array_equal(group["n"][...], numbers)
    assert group["n"].attrs["units"] == "m"
    assert np.array_equal(group["n"][3:9:2], numbers[3:9:2])
    assert group["t"][...].tolist() == [f"t{number}" for number in range(10)]
    assert np.array_equal(group["v"][...], values)
    assert np.array_equal(group["l"][...], flags)
    assert group.attrs["OBJECT"] == "M 31"
    assert not any(name.startswith(("Z", "TFORM")) for name in group.attrs)
    assert [part for part in ("'ragged'", "THEIRS") if any(part in note for note in root.store.notes)] == [
        "'ragged'", "THEIRS",
    ]  # fmt: skip


# -- files in gzip --------------------------------------------------------------------------


def gzipped(folder, *parts):
    path = folder / "x.fits.gz"
    path.write_bytes(b"".join(map(gzip.compress, parts)) + bytes(512))
    return path


@pytest.mark.parametrize("in_memory", [1 << 26, 1000])
def test_a_file_in_gzip_is_decompressed(in_memory, tmp_path, monkeypatch):
    monkeypatch.setattr(fits_gzipped, "_IN_MEMORY", in_memory)
    monkeypatch.setattr(fits_gzipped, "_PART", 5000)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    raw = sample()
    path = gzipped(tmp_path, raw[:7000], raw[7000:])
    (tmp_path / "x.fits").write_bytes(raw)
    root, plain = omnizarr.open(path), omnizarr.open(tmp_path / "x.fits")
    assert omnizarr.diff(root, plain).equal
    assert root.store.about()["access"].startswith("slow")
    assert root.store.notes == plain.store.notes
    assert len([*tmp_path.glob("omnizarr-*")]) == (in_memory == 1000)
    again = pickle.loads(pickle.dumps(root))
    assert np.array_equal(again["SCI_1"][...], VALUES)
    with pytest.raises(OmnizarrError, match="no part of a file"):
        omnizarr.references(root, tmp_path / "refs.json")
    with pytest.raises(ReadOnlyError):
        omnizarr.open(path, mode="r+")
    del root, again
    gc.collect()
    assert not [*tmp_path.glob("omnizarr-*")]


def test_files_in_gzip_are_bounded_and_whole(tmp_path, monkeypatch):
    path = gzipped(tmp_path, image(np.zeros(10**6, "u1")))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StoreError, match="ends too early"):
        omnizarr.open(path)
    path.write_bytes(whole[:900] + b"\xff" * 50 + whole[950:])
    with pytest.raises(StoreError, match="broken"):
        omnizarr.open(path)
    path.write_bytes(whole)
    monkeypatch.setattr(fits_gzipped, "_LEAST_LIMIT", 10**5)
    with pytest.raises(StoreLimitError, match="too large"):
        omnizarr.open(path)
    path.write_bytes(gzip.compress(b"no FITS"))
    with pytest.raises(StoreError, match="archive"):
        omnizarr.open(path)


def test_data_that_are_cut_off_are_an_error(tmp_path):
    raw = image(np.arange(10**4, dtype="i4"))
    array = omnizarr.open(written(tmp_path, raw[: BLOCK_OF_DATA + 400]))
    assert array.shape == (10**4,)
    with pytest.raises(StoreError, match="ends before its data do"):
        array[...]


BLOCK_OF_DATA = 2880


# -- tables -------------------------------------------------------------------------------


def test_columns_of_binary_tables_are_arrays(tmp_path):
    events = omnizarr.open(written(tmp_path, sample()))["EVENTS"]
    assert sorted(events) == list("abcdef")
    assert events["a"][...].tolist() == [1, -7]
    assert (events["a"].attrs["units"], events["a"].attrs["_FillValue"]) == ("m", -7)
    assert np.array_equal(events["b"][...], [2.5, np.nan], equal_nan=True)
    assert events["c"][...].tolist() == ["abc", "d"]
    assert np.array_equal(events["d"][...], np.array([[1, 2, 3], [4, 5, 6]]) + 2**31)
    assert events["d"].dtype == np.uint32
    assert events["e"][...].tolist() == [True, False]
    assert events["f"][...].tolist() == [[True, False, True], [False, True, False]]
    assert events["f"].dimension_names == ("row", None)


def test_columns_of_text_tables_are_arrays(tmp_path):
    group = omnizarr.open(written(tmp_path, sample()))["4"]
    assert group["n"][...].tolist() == [1, 0, -(2**63)]
    assert group["n"].attrs["_FillValue"] == -(2**63)
    assert group["x"][...].tolist() == [150, -2.5, 7]
    assert group["t"][...].tolist() == ["ab", "c d", "ef"]


def test_chunks_of_many_rows_are_cut_at_the_end(tmp_path):
    records = np.zeros(100_003, [("a", ">i4"), ("b", "S60"), ("c", "S2")])
    records["a"] = np.arange(len(records))
    records["c"] = b"\xaa\x80"
    columns = [{"TTYPE": "a", "TFORM": "J"}, {"TTYPE": "b", "TFORM": "60A"}, {"TTYPE": "c", "TFORM": "9X"}]
    group = omnizarr.open(written(tmp_path, image(), table(columns, rows_of(records))))["1"]
    assert group["a"].nchunks > 1
    assert np.array_equal(group["a"][...], records["a"])
    assert np.array_equal(group["a"][99_990:], records["a"][99_990:])
    assert group["c"][100_000:].tolist() == [[True, False] * 4 + [True]] * 3


def test_lengths_of_columns_are_dimensions(tmp_path):
    columns = [{"TTYPE": "a", "TFORM": "6B", "TDIM": "(3,2)"}, {"TTYPE": "b", "TFORM": "6A", "TDIM": "(3, 2)"},
               {"TTYPE": "c", "TFORM": "6B", "TDIM": "(4,4)"}, {"TTYPE": "a", "TFORM": "B"}]  # fmt: skip
    group = omnizarr.open(written(tmp_path, image(), table(columns, [bytes(range(6)) + b"ab cde" + bytes(6) + b"\7"])))
    group = group["1"]
    assert group["a"][0].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert group["b"][0].tolist() == ["ab", "cde"]
    assert group["c"].shape == (1, 6)
    assert group["a_4"][0] == 7


TABLES = {
    "TFORM2 is '3Y'": [{"TFORM": "B"}, {"TFORM": "3Y"}],
    "a row has 1 bytes": [{"TFORM": "B"}, {"TFORM": "J"}],
    "it has no elements": [{"TFORM": "B"}, {"TFORM": "0J"}],
    "999999999999999999999": [{"TFORM": "B"}, {"TFORM": "999999999999999999999J"}],
}


@pytest.mark.parametrize(("message", "columns"), TABLES.items(), ids=list(TABLES))
def test_columns_that_cannot_be_shown_are_named(message, columns, tmp_path):
    root = omnizarr.open(written(tmp_path, image(), table(columns, [b"\7"])))
    assert root["1/column 1"][0] == 7
    assert any(message in note for note in root.store.notes)


def test_tables_without_rows_are_shown(tmp_path):
    root = omnizarr.open(written(tmp_path, image(), table(COLUMNS, [], width=RECORDS.itemsize)))
    assert {name: each.shape[0] for name, each in root["1"].members()} == dict.fromkeys("abcdef", 0)
    assert root["1/c"][...].tolist() == []


def test_texts_that_are_no_numbers_are_errors(tmp_path):
    columns = [{"TTYPE": "n", "TFORM": "I4", "TBCOL": 1}]
    root = omnizarr.open(written(tmp_path, image(), table(columns, [b"abcd"], kind="TABLE")))
    with pytest.raises(omnizarr.errors.ChunkError, match="not a number"):
        root["1/n"][...]


# -- the codec ----------------------------------------------------------------------------


def test_the_codec_only_reads():
    from omnizarr.codecs import registry
    from omnizarr.codecs.contract import BytesSpec

    codec = registry.find("fits").bind({"elements": "shifted", "size": 2}, BytesSpec(4))
    with pytest.raises(CodecError, match="only read"):
        codec.encode(b"abcd")
    with pytest.raises(ChunkSizeError, match="wrong size"):
        codec.decode(b"abc")
    with pytest.raises(MetadataError, match="elements"):
        registry.find("fits").bind({"elements": "odd"}, BytesSpec(4))


# -- doors --------------------------------------------------------------------------------


def test_commands_read_it(tmp_path, capsys):
    path = str(written(tmp_path, sample()))
    for command in (["info"], ["tree"], ["ls"], ["stat"], ["check"], ["digest"], ["du"], ["dump", "-h"]):
        assert main([*command, path]) == 0, (command, capsys.readouterr())
    assert main(["show", f"{path}/SCI_1"]) == 0
    assert "EVENTS" in capsys.readouterr().out


def test_it_is_found_by_its_head(tmp_path):
    path = written(tmp_path, sample())
    other = path.rename(path.with_name("sky"))
    assert "EVENTS" in omnizarr.open(other)


def test_it_is_read_in_any_store():
    found = fits.read(File.of(MemoryStore({"a/x.fits": sample()}), "a/x.fits"))
    assert found is not None
    assert found.format == "FITS"
    assert json.loads(found.documents["EVENTS/zarr.json"])["node_type"] == "group"
    assert fits.read(File.of(MemoryStore({"x": b"SIMPLE"}), "x")) is None


def test_it_can_only_be_read(tmp_path):
    with pytest.raises(ReadOnlyError, match="can only be read"):
        omnizarr.open(written(tmp_path, sample()), mode="a")


def test_it_is_pickled_with_what_it_has_found(tmp_path):
    root = pickle.loads(pickle.dumps(omnizarr.open(written(tmp_path, sample()))))
    assert np.array_equal(root["SCI_1"][1], VALUES[1])


def test_a_file_that_changes_is_an_error(tmp_path):
    array = omnizarr.open(written(tmp_path, sample()))["SCI_1"]
    assert array[0, 0, 1] == 1
    written(tmp_path, sample(), image(extension=True))
    with pytest.raises(StaleError, match="has changed since it was opened"):
        array[...]


def test_conversion_gives_what_all_read(tmp_path):
    zarr = pytest.importorskip("zarr", minversion="3", reason="zarr-python reads the copy")
    path = written(tmp_path, sample())
    done = omnizarr.convert(path, tmp_path / "x.zarr")
    assert done.verified
    assert [each.path for each in done.losses] == ["5/n"]  # lists, which Zarr v3 does not have
    source, copy = omnizarr.open(path), zarr.open(tmp_path / "x.zarr", mode="r")
    arrays = [
        name for name, each in source.members(max_depth=None) if isinstance(each, omnizarr.Array) and name != "5/n"
    ]
    assert len(arrays) == 14
    for name in arrays:
        found = copy[name][...]
        assert np.array_equal(found, source[name][...], equal_nan=found.dtype.kind == "f"), name


def test_references_point_into_it(tmp_path):
    path = written(tmp_path, image(VALUES, code="i2"))
    omnizarr.references(path, tmp_path / "x.json")
    assert np.array_equal(omnizarr.open(tmp_path / "x.json")[...], VALUES)


def test_opening_reads_what_headers_take():
    store = MetricsStore(MemoryStore({"x.fits": image(np.zeros(10**6)) + sample()[2880:]}))
    fits.read(File.of(store, "x.fits"))
    total = store.report().total
    assert total.requests <= 7
    assert total.nbytes < 1 << 18


# -- what lies in heaps -------------------------------------------------------------------


def test_columns_of_variable_length_are_ragged(tmp_path):
    heap = np.arange(5, dtype=">i4").tobytes() + b"abc "
    rows = [np.array(row, ">i4").tobytes() for row in ([2, 0, 3, 20], [0, 0, 0, 0], [3, 8, 1, 23])]
    columns = [{"TTYPE": "n", "TFORM": "1PJ(3)", "TUNIT": "m"}, {"TTYPE": "t", "TFORM": "PA(3)"}]
    root = omnizarr.open(written(tmp_path, image(), table(columns, rows, heap=heap)))
    assert [each.tolist() for each in root["1/n"][...]] == [[0, 1], [], [2, 3, 4]]
    assert root["1/n"].attrs["units"] == "m"
    assert root["1/t"][...].tolist() == ["abc", "", " "]
    assert root["1/n"][2].tolist() == [2, 3, 4]
    done = omnizarr.convert(tmp_path / "x.fits", tmp_path / "x.zarr", zarr_format=2)
    assert done.verified
    assert [each.tolist() for each in omnizarr.open(tmp_path / "x.zarr")["1/n"][...]] == [[0, 1], [], [2, 3, 4]]


@pytest.mark.parametrize("pair", [(-1, 0), (1, -1), (2**31 - 1, 2**31 - 1)])
def test_rows_that_lead_to_no_place_are_errors(pair, tmp_path):
    root = omnizarr.open(
        written(tmp_path, image(), table([{"TTYPE": "n", "TFORM": "PK"}], [np.array(pair, ">i4").tobytes()]))
    )
    with pytest.raises((MetadataError, StoreError), match=r"no place|ends before|too long|beyond"):
        root["1/n"][...]


def compressed(values, tile, name, packed, cards=(), columns=()):
    """Return a unit with a compressed image; `packed` is the bytes of each tile."""
    heap, rows = b"", []
    for number, part in enumerate(packed):
        more = b"".join(column[number] for _, column in columns)
        rows.append(np.array([len(part), len(heap)], ">i4").tobytes() + more)
        heap += part
    shape = values.shape
    given = [("ZIMAGE", True), ("ZCMPTYPE", name), ("ZBITPIX", {"u": 8, "i": 16, "f": -32}[values.dtype.kind])]
    given += [("ZNAXIS", len(shape)), *((f"ZNAXIS{at}", size) for at, size in enumerate(shape[::-1], 1))]
    given += [(f"ZTILE{at}", size) for at, size in enumerate(tile[::-1], 1)]
    forms = [{"TTYPE": "COMPRESSED_DATA", "TFORM": "1PB"}, *(form for form, _ in columns)]
    return table(forms, rows, [*given, *cards], heap=heap)


TILES = [(slice(0, 4), slice(0, 4)), (slice(0, 4), slice(4, 6)), (slice(4, 6), slice(0, 4)), (slice(4, 6), slice(4, 6))]


def packed_in(name, values):
    raw = values.astype(values.dtype.newbyteorder(">"))
    if name == "RICE_1":
        imagecodecs = pytest.importorskip("imagecodecs", reason="imagecodecs packs by RICE")
        return imagecodecs.rcomp_encode(np.ascontiguousarray(values).reshape(-1), nblock=32)
    if name == "GZIP_2":
        raw = np.frombuffer(raw.tobytes(), "u1").reshape(-1, values.dtype.itemsize).T
    return raw.tobytes() if name == "NOCOMPRESS" else gzip.compress(raw.tobytes())


@pytest.mark.parametrize(
    ("name", "code"), [*itertools.product(["GZIP_1", "GZIP_2", "NOCOMPRESS"], ["i2", "f4"]), ("RICE_1", "i2")]
)
def test_compressed_images_are_arrays(name, code, tmp_path):
    values = (np.arange(36).reshape(6, 6) * 7).astype(code)
    packed = [packed_in(name, values[part]) for part in TILES]
    cards = [("ZNAME1", "BYTEPIX"), ("ZVAL1", 2), ("BUNIT", "Jy")]
    path = written(tmp_path, image(), compressed(values, (4, 4), name, packed, cards))
    array = omnizarr.open(path)["1"]
    assert array.dtype == code
    assert np.array_equal(array[...], values)
    assert np.array_equal(array[5, 3:], values[5, 3:])
    assert array.attrs["units"] == "Jy"
    assert "ZCMPTYPE" not in array.attrs
    assert omnizarr.convert(path, tmp_path / "x.zarr").verified


def test_numbers_that_are_rounded_to_integers(tmp_path):
    whole = np.arange(36, dtype="i4").reshape(6, 6)
    whole[0, 0] = -100
    scales = [np.array([0.5 * at + 1, at], ">f8").tobytes() for at in range(4)]
    columns = [({"TTYPE": "ZSCALE", "TFORM": "D"}, [each[:8] for each in scales]),
               ({"TTYPE": "ZZERO", "TFORM": "D"}, [each[8:] for each in scales])]  # fmt: skip
    packed = [packed_in("GZIP_1", whole[part]) for part in TILES]
    cards = [("ZBLANK", -100), ("ZQUANTIZ", "NO_DITHER")]
    unit = compressed(whole.astype("f4"), (4, 4), "GZIP_1", packed, cards, columns)
    expected = whole.astype("f4")
    for at, part in enumerate(TILES):
        expected[part] = whole[part] * (0.5 * at + 1) + at
    expected[0, 0] = np.nan
    assert np.array_equal(omnizarr.open(written(tmp_path, image(), unit))["1"][...], expected, equal_nan=True)


UNSHOWN = {
    "its compression is LZW_1": [("ZCMPTYPE", "LZW_1")],
    "needs 36": [("ZTILE1", 1), ("ZTILE2", 1)],
    "its shape is impossible": [("ZNAXIS1", 0)],
    "its shape or type is impossible": [("ZNAXIS", 0)],
}


@pytest.mark.parametrize(("message", "changes"), UNSHOWN.items(), ids=list(UNSHOWN))
def test_compressed_images_that_cannot_be_shown_are_named(message, changes, tmp_path):
    values = np.zeros((6, 6), "i2")
    unit = compressed(values, (4, 4), "GZIP_1", [packed_in("GZIP_1", values[part]) for part in TILES])
    for name, value in changes:
        at = unit.index(card(name, 0)[:10].encode())
        unit = unit[:at] + card(name, value).encode() + unit[at + 80 :]
    assert any(message in note for note in omnizarr.open(written(tmp_path, image(), unit)).store.notes)


def test_smoothed_images_are_named(tmp_path):
    values = np.zeros((6, 6), "i2")
    unit = compressed(values, (4, 4), "HCOMPRESS_1", [b"x"] * 4, [("ZNAME1", "SMOOTH"), ("ZVAL1", 1)])
    assert any("with smoothing" in note for note in omnizarr.open(written(tmp_path, image(), unit)).store.notes)


@pytest.mark.parametrize(
    "part", [b"", b"\x1f\x8b broken", gzip.compress(bytes(1 << 20)), gzip.compress(b"abc")], ids=range(4)
)
def test_broken_tiles_are_errors(part, tmp_path):
    values = np.zeros((6, 6), "i2")
    array = omnizarr.open(written(tmp_path, image(), compressed(values, (4, 4), "GZIP_1", [part] * 4)))["1"]
    with pytest.raises(OmnizarrError):
        array[...]


# -- astropy ------------------------------------------------------------------------------


@pytest.fixture
def astropy():
    return pytest.importorskip("astropy.io.fits", reason="astropy says what is in FITS files")


def assert_same(path, astropy):
    """Assert that all images and columns are those that astropy finds. Return how many there are."""
    root, count = omnizarr.open(path), 0
    with warnings.catch_warnings(), astropy.open(path) as units:
        warnings.simplefilter("ignore")
        found = headers.walk(File.at(path))[1].units
        names = {0: ""} if isinstance(root, omnizarr.Array) else contents._names(found)
        for number, unit in enumerate(units):
            if number not in names or unit.data is None:
                continue
            node = root[names[number]] if names[number] else root
            if isinstance(unit, astropy.GroupsHDU):
                data = unit.data.data.reshape(node["data"].shape)
                assert np.array_equal(node["data"][...], data, equal_nan=True)
                first = node[unit.data.parnames[0]]
                assert is_equal(first, unit.data.par(0))
                count += 2
                continue
            columns = getattr(unit, "columns", None) if not unit.is_image else None
            pairs = (
                [(node, unit.data)]
                if columns is None
                else [(node[name], unit.data[name]) for name in columns.names if unit.data[name].size]
            )
            for array, expected in pairs:
                assert is_equal(array, expected), (names[number], array)
                count += 1
    return count


def is_equal(array, expected):
    found, attributes = array[...], array.attrs
    if expected.dtype == object:
        if found[0].dtype == "S1":  # logical values are not decoded in lists
            found = [each == b"T" for each in found]
        return all(np.array_equal(a, np.asarray(b)) for a, b in zip(found, expected, strict=True))
    expected = np.asarray(expected)
    if expected.dtype.kind in "SU":
        return found.tolist() == np.char.rstrip(expected.astype("U")).tolist()
    if "scale_factor" in attributes or "_FillValue" in attributes:
        values = found.astype("f8") * attributes.get("scale_factor", 1) + attributes.get("add_offset", 0)
        missing = found == attributes.get("_FillValue", np.nan)
        values[missing] = np.nan if expected.dtype.kind == "f" else expected[missing]
        return np.allclose(values, expected, rtol=1e-7, equal_nan=True)
    # Numbers of text tables are shown with 64 bits.
    return (
        np.can_cast(expected.dtype, found.dtype, "safe")
        and found.dtype.kind == expected.dtype.kind
        and np.array_equal(found, expected, equal_nan=found.dtype.kind in "fc")
    )


KINDS = ["RICE_1", "GZIP_1", "GZIP_2", "PLIO_1", "HCOMPRESS_1", "NOCOMPRESS"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("code", ["u1", "i2", "i4", "u2", "f4", "f8"])
def test_astropy_compresses_the_same(kind, code, tmp_path, astropy):
    values = np.random.default_rng(0).normal(100, 10, (61, 103))
    values = values.astype(code) if code[0] == "f" else np.clip(values, 0, 120).astype(code)
    count = 0
    # tiles of H-compress have 4 rows and columns at least, also at the edge
    tiles = [(103, 61), (32, 16)] if kind == "HCOMPRESS_1" else [(40, 30), (103, 1), (32, 20), (50, 61)]
    for tile, quantize in [(tile, {}) for tile in tiles] + [
        (tiles[0], {"quantize_method": method, "quantize_level": 4}) for method in (-1, 1, 2) if code[0] == "f"
    ]:
        if code[0] == "f":
            values[3, :5] = (np.nan, 0, 0, 0, 0)
        path = tmp_path / f"{count}.fits"
        try:
            unit = astropy.CompImageHDU(values, compression_type=kind, tile_shape=tile[::-1], **quantize)
            unit.writeto(path, overwrite=True)
        except (ValueError, TypeError, OverflowError):
            continue
        count += assert_same(path, astropy)
    assert count or (kind, code) in {("PLIO_1", code) for code in ("u2", "f4", "f8")}  # which astropy does not write


OTHERS = {"vla_logical_pre_fix.fits": "1 and 0 for T and F, as old releases wrote"}


def test_files_of_astropy_are_the_same(astropy):
    folder = Path(astropy.__file__).parent
    files = [*folder.glob("tests/data/*.fits"), *folder.glob("hdu/compressed/tests/data/*.fits")]
    if not files:
        pytest.skip("astropy was installed without its test data")
    compared = sum(assert_same(path, astropy) for path in files if path.name not in OTHERS)
    assert compared > 200
