"""How many requests it takes to open files of other formats behind a server, and to find their chunks."""

from __future__ import annotations

import functools
import io
import itertools

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import OmnizarrError
from omnizarr.settings import engines
from omnizarr.stores.manifests.file import File
from tests.readers.grib_files import field2, message2, section
from tests.stores.recording import FAST, recording

h5py = pytest.importorskip("h5py")
pytest.importorskip("obstore.store", reason="the extra cloud is not installed")

VALUES = np.arange(400 * 300, dtype="i4").reshape(400, 300)


@pytest.fixture
def server():
    with recording() as server:
        yield server


def serve(server, name, content):
    server.values[f"/d/{name}"] = content
    return functools.partial(omnizarr.open, server.url(f"/d/{name}"), mode="r", storage_options=FAST)


def ranges_of(server):
    """Return the ranges of the requests since the last time; a request without a range is (0, None)."""
    found = []
    for method, _, headers in server.requests():
        start, _, stop = headers.get("range", "bytes=0-").removeprefix("bytes=").partition("-")
        found.append((int(start), int(stop) + 1 if stop else None) if method == "GET" else (method, None))
    return found


def made(fill, **how):
    """Return the bytes of an HDF5 file that a function fills."""
    memory = io.BytesIO()
    with h5py.File(memory, "w", **how) as file:
        fill(file)
    return memory.getvalue()


def assert_once(found):
    """Assert that no byte was read twice."""
    ordered = sorted(found)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(ordered)), ordered


STORED = {
    "contiguous": {},
    "raw": {"chunks": (50, 50)},
    "gzip": {"chunks": (50, 50), "compression": "gzip", "shuffle": True},
    "growing": {"chunks": (50, 50), "maxshape": (None, 300)},
    "growing twice": {"chunks": (50, 50), "maxshape": (None, None)},
}


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("stored", STORED)
def test_a_file_whose_metadata_are_together_opens_with_one_request(server, stored, libver):
    def fill(file):
        file.attrs["title"] = "a text of any length"
        file.create_group("g/h").create_dataset("v", data=VALUES, **STORED[stored])

    open_it = serve(server, "x.h5", made(fill, libver=libver) + bytes(1 << 19))
    group = open_it()
    assert len(ranges_of(server)) == 1
    assert group["g/h/v"][399, 299] == VALUES[399, 299]
    assert len(ranges_of(server)) <= 2  # the end of the index, and the chunk
    np.testing.assert_array_equal(open_it()["g/h/v"][...], VALUES)


@pytest.mark.parametrize("name", ["x.nc", "x.cdf"])
def test_netcdf_opens_with_one_request_whatever_it_is(server, name, tmp_path):
    netcdf4 = pytest.importorskip("netCDF4")
    for form in ("NETCDF4", "NETCDF3_64BIT_OFFSET"):
        with netcdf4.Dataset(tmp_path / name, "w", format=form) as dataset:
            dataset.createDimension("x", 300_000)
            dataset.createVariable("v", "f4", ("x",))[:] = 1
        group = serve(server, name, (tmp_path / name).read_bytes())()
        assert len(ranges_of(server)) == 1
        assert group["v"].shape == (300_000,)


def test_groups_and_attributes_all_over_a_file_are_fetched_level_by_level(server, monkeypatch):
    """Rounds are what takes time: requests of one round are sent at once."""
    rounds = []
    parts = File._parts
    monkeypatch.setattr(File, "_parts", lambda self, spans: rounds.append(spans) or parts(self, spans))

    def fill(file):
        for name in range(8):
            group = file.create_group(f"g{name}")
            for inner in range(8):
                variable = group.create_dataset(f"v{inner}", data=np.full(40_000, inner))
                variable.attrs["units"] = "K"
                for number in range(12):  # more than an object header holds
                    variable.attrs[f"note {number}"] = "of any length"

    for libver in ("earliest", "latest"):
        content = made(fill, libver=libver)
        open_it = serve(server, "x.h5", content)
        assert open_it()["g7/v3"].attrs["note 11"] == "of any length"
        assert len(ranges_of(server)) == len(rounds) <= (4 if libver == "earliest" else 7)
        rounds.clear()
        group = open_it()
        assert len(dict(group.members(max_depth=None))) == 72
        found = ranges_of(server)
        assert len(found) <= 36  # of 64 datasets and 8 groups, with 832 attributes
        assert len(rounds) <= 10
        rounds.clear()
        assert_once(found)
        assert sum(stop - start for start, stop in found) < len(content)
        assert group["g7/v3"].attrs["note 11"] == "of any length"
        assert not server.requests()


INDEXES = {"tree": ("earliest", None), "fixed": ("latest", None), "extensible": ("latest", (None, 600)),
           "tree 2": ("latest", (None, None))}  # fmt: skip


@pytest.mark.parametrize("index", INDEXES)
def test_an_index_of_many_chunks_is_few_large_ranges(server, index):
    libver, maxshape = INDEXES[index]
    values = np.arange(360_000, dtype="u1").reshape(600, 600)
    content = made(lambda file: file.create_dataset("v", data=values, chunks=(6, 3), maxshape=maxshape), libver=libver)
    array = serve(server, "x.h5", content)()["v"]
    server.requests()
    assert array[599, 599] == values[599, 599]
    found = ranges_of(server)
    assert len(found) <= 8
    np.testing.assert_array_equal(array[300], values[300])


def test_an_old_index_between_the_chunks_is_two_rounds(server):
    values = np.arange(2_000_000, dtype="i4").reshape(2000, 1000)
    content = made(lambda file: file.create_dataset("v", data=values, chunks=(10, 100)), libver="earliest")
    array = serve(server, "x.h5", content)()["v"]
    server.requests()
    assert array[1999, 999] == values[1999, 999]
    found = ranges_of(server)[:-1]  # the last one is the chunk
    assert_once(found)
    assert sum(stop - start for start, stop in found) < len(content) / 8


def test_a_plane_takes_the_parts_of_an_old_index_that_lead_to_it(server):
    values = np.arange(2_000_000, dtype="i4").reshape(100, 200, 100)
    content = made(lambda file: file.create_dataset("v", data=values, chunks=(1, 20, 20)), libver="earliest")
    array = serve(server, "x.h5", content)()["v"]
    server.requests()
    np.testing.assert_array_equal(array[60], values[60])
    if engines.choice(None) != "reference" and engines.module() is not None:  # which asks the store for each chunk
        assert len(server.requests()) <= 6
    np.testing.assert_array_equal(array[...], values)


def test_pages_of_tiff_that_lie_together_are_few_requests(server, tmp_path):
    tifffile = pytest.importorskip("tifffile", reason="tifffile is not installed")
    with tifffile.TiffWriter(tmp_path / "x.tif") as file:
        for number in range(3000):
            file.write(np.full((8, 9), number, "u2"), contiguous=False, photometric="minisblack", metadata=None)
    array = serve(server, "x.tif", (tmp_path / "x.tif").read_bytes())()
    found = ranges_of(server)
    assert len(found) <= 7
    assert_once(found)
    assert array.shape == (3000, 8, 9)
    assert array[2999, 7, 8] == 2999


def test_pages_of_tiff_at_equal_distances_are_fetched_side_by_side(server, tmp_path):
    tifffile = pytest.importorskip("tifffile", reason="tifffile is not installed")
    with tifffile.TiffWriter(tmp_path / "x.tif") as file:
        for number in range(40):
            file.write(np.full((400, 512), number, "u2"), contiguous=False, photometric="minisblack", metadata=None)
    content = (tmp_path / "x.tif").read_bytes()
    array = serve(server, "x.tif", content)()
    found = ranges_of(server)
    assert_once(found)
    assert sum(stop - start for start, stop in found) < len(content) / 2
    assert array.shape == (40, 400, 512)
    assert array[39, 0, 0] == 39


@pytest.fixture
def rounds(monkeypatch):
    """The parts of files that are read at once."""
    found, parts = [], File._parts
    monkeypatch.setattr(File, "_parts", lambda self, spans: found.append(len(spans)) or parts(self, spans))
    return found


def pages_of(path, heights, **how):
    """Write pages of noise that cannot be compressed, so that their sizes follow the heights."""
    tifffile = pytest.importorskip("tifffile", reason="tifffile is not installed")
    random = np.random.default_rng(0)
    levels = how.pop("levels", 0)
    with tifffile.TiffWriter(path) as file:
        for height in heights:
            values = random.integers(0, 256, (int(height), 512), "u1")
            how = {"photometric": "minisblack", "metadata": None, "compression": "zlib", "rowsperstrip": 16, **how}
            file.write(values, subifds=levels, **how)
            for level in range(1, levels + 1):
                file.write(values[:: 2**level, :: 2**level], subfiletype=1, **how)
    return path.read_bytes()


def test_pages_of_tiff_of_about_the_same_size_are_guessed(server, tmp_path, rounds):
    heights = np.random.default_rng(1).normal(600, 4, 64)
    content = pages_of(tmp_path / "x.tif", heights)
    node = serve(server, "x.tif", content)()
    found = ranges_of(server)
    assert len(node) == len(set(heights.astype(int)))  # arrays of different shapes
    assert len(rounds) <= 9  # one by one they were 64
    assert sum(stop - start for start, stop in found) < 1.1 * len(content)


def test_pages_of_tiff_whose_sizes_differ_are_not_guessed(server, tmp_path, monkeypatch):
    monkeypatch.setattr("omnizarr.readers.hdf5.source._SMALL", 0)
    monkeypatch.setattr("omnizarr.readers.tiff.directories._MOST_DIFFERING", 0)
    heights = np.random.default_rng(1).uniform(200, 1400, 40)
    content = pages_of(tmp_path / "x.tif", heights)
    serve(server, "x.tif", content)()
    found = ranges_of(server)
    assert_once(found)
    assert sum(stop - start for start, stop in found) < len(content) / 2


def test_pages_of_tiff_whose_sizes_differ_are_several_in_a_round(server, tmp_path, monkeypatch, rounds):
    monkeypatch.setattr("omnizarr.readers.hdf5.source._SMALL", 0)
    heights = np.random.default_rng(1).uniform(200, 1400, 40)
    serve(server, "x.tif", pages_of(tmp_path / "x.tif", heights))()
    assert_once(ranges_of(server))
    assert len(rounds) <= 12


def test_of_large_pages_of_tiff_whose_sizes_differ_only_the_directories_are_fetched(server, tmp_path, monkeypatch):
    monkeypatch.setattr("omnizarr.readers.hdf5.source._SMALL", 0)
    heights = np.random.default_rng(1).uniform(1400, 2100, 20)
    content = pages_of(tmp_path / "x.tif", heights)
    assert len(content) / 20 > 2**19
    serve(server, "x.tif", content)()
    found = ranges_of(server)
    assert len(found) <= 24
    assert sum(stop - start for start, stop in found) < len(content) / 3


def test_levels_of_tiff_pages_are_fetched_together(server, tmp_path, rounds):
    content = pages_of(tmp_path / "x.tif", [512] * 20, levels=2)
    group = serve(server, "x.tif", content)()
    assert [*group.array_keys()] == ["0", "1", "2"]
    assert group["2"].shape == (20, 128, 128)
    assert len(rounds) <= 12  # one by one they were 60


@pytest.mark.parametrize("is_small", [False, True])
def test_bytes_ahead_that_nothing_needs_become_few(server, tmp_path, rounds, monkeypatch, is_small):
    """Pages of compressed data lie apart, so what follows a directory is of no use, unless the file is small."""
    monkeypatch.setattr("omnizarr.readers.hdf5.source._SMALL", (1 << 24) * is_small)
    tifffile = pytest.importorskip("tifffile", reason="tifffile is not installed")
    random = np.random.default_rng(0)
    with tifffile.TiffWriter(tmp_path / "x.tif") as file:
        for number in range(30):
            values = random.integers(0, 60_000, (500 + number, 512), "u2")
            file.write(values, photometric="minisblack", metadata=None, compression="zlib")
    content = (tmp_path / "x.tif").read_bytes()
    serve(server, "x.tif", content)()
    found = ranges_of(server)
    assert_once(found)
    if is_small:
        assert len(rounds) <= 9
    else:
        assert sum(stop - start for start, stop in found) < len(content) / 2


def test_a_file_that_does_not_exist_is_an_error(server):
    for name in ("x.h5", "x.nc", "x.tif"):
        with pytest.raises(OmnizarrError):
            omnizarr.open(server.url(f"/d/{name}"), mode="r", storage_options=FAST)


# -- GRIB -------------------------------------------------------------------------------------------


def messages(lengths):
    """Return messages with so many bytes besides their fields, and where they begin."""
    values = np.arange(12).reshape(3, 4)
    made, places = [], []
    for number, length in enumerate(lengths):
        message = message2(field2(values + number, step=number))
        body = message[16:-4] + section(2, bytes(length))  # for local use: it is skipped
        whole = message[:8] + (20 + len(body)).to_bytes(8, "big") + body + b"7777"
        places.append(sum(map(len, made)))
        made.append(whole)
    return b"".join(made), places


def wgrib2(places):
    lines = [f"{number}:{place}:d=2024010100:TMP:500 mb:{number} hour fcst:" for number, place in enumerate(places, 1)]
    return "\n".join(lines).encode()


def ecmwf(places):
    return b"\n".join(b'{"param": "t", "_offset": %d, "_length": 9}' % place for place in places)


INDEXES_OF_GRIB = {"x.grib2.idx": wgrib2, "x.index": ecmwf}


@pytest.mark.parametrize("index", INDEXES_OF_GRIB)
def test_an_index_beside_a_file_of_large_messages_gives_all_heads_at_once(server, rounds, index):
    content, places = messages([300_000 + 4096 * (number % 3) for number in range(40)])
    server.values[f"/d/{index}"] = INDEXES_OF_GRIB[index](places)
    group = serve(server, "x.grib2", content)()
    assert rounds == [1, 39]
    # Both names are asked for at once. Where the answer to one comes first, the other request may not have begun.
    assert len(server.requests()) - 1 - 39 in {1, len(INDEXES_OF_GRIB)}
    assert group["t"].shape == (40, 3, 4)
    np.testing.assert_array_equal(group["t"][39], np.arange(12).reshape(3, 4) + 39)


@pytest.mark.parametrize("wrong", [[1, 5, 7], [10**17], [0]])
def test_an_index_that_is_wrong_changes_nothing(server, wrong):
    content, places = messages([300_000, 300_000, 310_000])
    server.values["/d/x.grib2.idx"] = wgrib2(places[:1] + wrong)
    assert serve(server, "x.grib2", content)()["t"].shape == (3, 3, 4)


def test_large_messages_of_one_length_are_guessed(server, rounds):
    content, _ = messages([300_000] * 64)
    assert serve(server, "x.grib2", content)()["t"].shape == (64, 3, 4)
    assert len(rounds) <= 9  # one by one they were 64
    assert len(server.requests()) <= 66


def test_large_messages_of_any_length_are_read_one_by_one(server, rounds):
    content, _ = messages([300_000 + 4096 * number for number in range(12)])
    assert serve(server, "x.grib2", content)()["t"].shape == (12, 3, 4)
    found = ranges_of(server)
    assert len(found) == 12 + len(INDEXES_OF_GRIB)
    assert sum(stop - start for start, stop in found if start) < 20_000


def test_messages_that_are_not_large_are_read_several_at_once(server):
    content, _ = messages([60_000 + 16 * number for number in range(60)])
    assert serve(server, "x.grib2", content)()["t"].shape == (60, 3, 4)
    found = ranges_of(server)
    assert len(found) <= 6
    assert sum(stop - start for start, stop in found) < 1.2 * len(content)
