"""The benchmark of files of other formats: what it stores, reads and prints; figures are not looked at."""

import importlib.util

import numpy as np
import pytest

from benchmarks import delayed, files, fresh
from benchmarks.files import ACTIONS, CASES, DATA, PEERS, Row, Size, Target

for package in ("h5py", "obstore", "tifffile"):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed", allow_module_level=True)

TINY = Size(planes=4, side=256, windows=3, points=5, rounds=1, runs=1)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    home = tmp_path_factory.mktemp("files")
    with delayed.started(home, 0.001) as servers:
        names = {name for name, data in DATA.items() if data.codec != "zstd" or importlib.util.find_spec("hdf5plugin")}
        assert files.make(servers.files, names, TINY) == {}
        yield servers


def request(place, peer, name, action, where):
    file = f"{name}{DATA[name].suffix}"
    return {
        "peer": peer, "name": name, "action": action, "size": vars(TINY), "runs": 1,
        "place": str(place.files / file) if where == "disk" else f"{place.url}/{file}",
        "values": str(place.files / "values.npy"),
    }  # fmt: skip


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("where", files.PLACES)
@pytest.mark.parametrize("name", ["zlib", "raw", "contiguous", "tiff-deflate"])
def test_libraries_read_right_values(place, name, where, action):
    suffix = DATA[name].suffix
    for peer in ("omnizarr", "h5py", "fetch-h5py", "tifffile", "fetch-tifffile"):
        if suffix in PEERS[peer].formats and where in PEERS[peer].places:
            found = files.work(request(place, peer, name, action, where))
            assert "reason" not in found, (peer, found)
            assert len(found["seconds"]) == len(found["processor"]) == 1


@pytest.mark.parametrize("peer", ["h5netcdf", "netcdf4", "fsspec-h5py", "kerchunk", "pyfive", "rasterio"])
def test_other_libraries_read_right_values(place, peer):
    pytest.importorskip(PEERS[peer].package)
    name = "tiff-raw" if peer == "rasterio" else "zlib"
    for where in PEERS[peer].places:
        found = files.work(request(place, peer, name, "windows", where))
        assert "reason" not in found, (peer, where, found)


def test_wrong_values_are_noticed(place, tmp_path):
    np.save(tmp_path / "values.npy", files.values_of(TINY) + 1)
    wanted = {**request(place, "omnizarr", "zlib", "plane", "disk"), "values": str(tmp_path / "values.npy")}
    assert files.work(wanted) == {"reason": "wrong values"}


def test_what_a_library_cannot_do_is_said(place):
    found = files.work({**request(place, "h5py", "zlib", "plane", "disk"), "place": "/nowhere.h5"})
    assert found["reason"].startswith("FileNotFoundError: ")


def test_rows_have_titles_of_their_own_and_targets_that_their_peers_are_compared_with():
    assert len({case.title(files.FULL) for case in CASES}) == len(CASES)
    for case in CASES:
        assert case.targets
        assert {target.peer for target in case.targets} <= set(case.peers)


def test_verdict_says_what_was_missed():
    case = next(case for case in CASES if (case.data, case.action, case.place) == ("zlib", "whole", "disk"))
    row = Row(case.title(TINY), case, {"omnizarr": [1, 2, 3], "h5py": [4]}, {"omnizarr": [1], "h5py": [4]}, {})
    assert row.verdict() == "≤ 0.4 × h5py, processor; ≤ 0.2 × h5py (missed: × 2.50)"
    assert Row(row.title, case, {}, {}, {}).verdict().count("(?)") == 2
    assert Target(1, "h5py").text == "not slower than h5py"


def test_tables_and_page(tmp_path, monkeypatch):
    case = next(case for case in CASES if (case.data, case.action, case.place) == ("raw", "plane", "HTTP"))
    row = Row(case.title(TINY), case, {"omnizarr": [0.001], "fetch-h5py": [0.5]},
              {"omnizarr": [0.002], "fetch-h5py": [0.25]}, {})  # fmt: skip
    about = {"date": "2026-11-28", "processor": "2 cores", "file system": "tmpfs", "python": "3.12", "load": "0.1"}
    text = files.markdown([row], about, TINY, {"omnizarr": "1.0", "fetch-h5py": "3.0"})
    assert "| raw, chunks of 16 KiB: a plane | 1 ms (2 ms) | 500 ms (250 ms) | not slower than fetch, h5py |" in text
    page = tmp_path / "page.md"
    page.write_text("# Title\n")
    monkeypatch.setattr(fresh.reports, "PAGE", page)
    fresh.publish(text, files.MARKS, files.INTRO)
    fresh.publish(text, files.MARKS, files.INTRO)
    assert page.read_text().count("## Files of other formats") == page.read_text().count("| raw, ") == 1
