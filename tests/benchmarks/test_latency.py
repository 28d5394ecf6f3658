"""The benchmark of latency: what it stores, asks and prints; figures are not looked at."""

import importlib.util
import json
import re

import numpy as np
import pytest
import zarr

from benchmarks import delayed, latency
from benchmarks.latency import CASES, DATA, Data, Row
from benchmarks.remote import Place

if importlib.util.find_spec("obstore") is None:
    pytest.skip("obstore is not installed", allow_module_level=True)

TINY = Data("raw64", (128, 128), (32, 32))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    home = tmp_path_factory.mktemp("latency")
    with delayed.started(home, 0.001) as servers:
        values = home / "values"
        values.mkdir()
        numbers = TINY.values()
        TINY.create(servers.files)[...] = numbers
        np.save(values / "raw64.npy", numbers)
        yield servers.url, str(values)


def request(place, peer, title):
    url, values = place
    case = next(number for number, case in enumerate(CASES) if case.title == title)
    return {
        "peer": peer, "case": case, "url": url, "options": {}, "values": values, "runs": 2, "name": CASES[case].data,
    }  # fmt: skip


@pytest.mark.parametrize("title", ["read 64 chunks of 16 KiB, raw", "open an array, read one element"])
@pytest.mark.parametrize("peer", ["omnizarr-reference", "zarr-obstore", "tensorstore"])
def test_library_reads_right_values_over_http(place, peer, title):
    if peer == "tensorstore":
        pytest.importorskip("tensorstore")
    found = latency.work(request(place, peer, title))
    assert "reason" not in found
    assert len(found["seconds"]) == len(found["processor"]) == 2
    assert min(found["seconds"]) >= 0.001  # the server takes its time


def test_wrong_values_are_noticed(place, tmp_path):
    np.save(tmp_path / "raw64.npy", TINY.values() + 1)
    wanted = {**request(place, "omnizarr-reference", "read 64 chunks of 16 KiB, raw"), "values": str(tmp_path)}
    assert latency.work(wanted) == {"reason": "wrong values"}


def test_bytes_that_must_be_stored_are_those_that_zarr_python_stores(tmp_path):
    data = Data("written", (64, 96), (32, 32))
    values = data.values()
    array = zarr.create_array(
        tmp_path / "written", shape=data.shape, chunks=data.chunks, dtype="float32", compressors=None
    )
    array[...] = values
    stored = {
        path.relative_to(tmp_path).as_posix(): path.read_bytes() for path in (tmp_path / "written" / "c").rglob("*/*")
    }
    assert data.chunk_bytes(values) == stored


def test_every_case_has_data():
    assert {case.data for case in CASES} <= DATA.keys() | latency.NODES.keys()


def test_each_number_in_a_title_is_a_size_of_what_is_done():
    for case in CASES:
        if case.data in latency.NODES:
            sizes = {latency.NODES[case.data]}
        else:
            data = DATA[case.data]
            chunk = np.prod(data.chunks)
            wanted = np.zeros(data.shape, bool)
            wanted[case.slices] = True
            rows, columns = (np.arange(length) // side for length, side in zip(data.shape, data.chunks, strict=True))
            files = [length // side for length, side in zip(wanted.shape, data.shards or data.chunks, strict=True)]
            sizes = {len(set(rows[wanted.any(1)])) * len(set(columns[wanted.any(0)])), chunk * 4 // 2**10, *files}
            sizes.add(np.prod(files))
        numbers = {int(found.replace(",", "")) for found in re.findall(r"\d[\d,]*", case.title)}
        assert numbers <= sizes, case.title


def test_row_is_read_again_from_json():
    found = row(omnizarr=0.3, tensorstore=0.9)
    again = Row.from_json(json.loads(json.dumps(found.to_json())))
    assert again == found
    assert Row.from_json({**found.to_json(), "title": "HTTP: what is not measured any more"}) is None


def test_rows_are_chosen_by_words_of_their_titles():
    places = {"http": Place("http://127.0.0.1"), "s3": Place("s3://bucket")}
    assert len(list(latency.chosen([""], places))) == sum(len(case.transports) for case in CASES)
    assert [transport for _, transport in latency.chosen(["write 256"], places)] == ["s3"]


def row(**seconds):
    named = {name.replace("_", "-"): [value] for name, value in seconds.items()}
    return Row(CASES[0], "http", named, named, {})


def test_ratio_is_to_the_best_setting_of_the_best_other_library():
    assert latency.ratio(row(omnizarr=0.3, tensorstore=0.9, tensorstore_256=0.2, zarr_obstore=0.6)) == pytest.approx(
        1.5
    )
    assert latency.ratio(row(omnizarr=0.3)) is None


def test_bare_client_is_no_other_library():
    found = row(omnizarr=0.3, tensorstore=0.6, bare_hyper=0.2)
    assert latency.ratio(found) == pytest.approx(0.5)
    assert latency.bare_ratio(found) == pytest.approx(1.5)
    assert latency.bare_ratio(row(omnizarr=0.3)) is None
    line = latency.markdown([found], "Somewhere.", {}).splitlines()[-1].replace("\N{NO-BREAK SPACE}", " ")
    assert line.endswith("| 0.50 × | 200 ms | 1.50 × |")


def test_bare_client_takes_part_where_whole_chunks_are_read():
    assert {case.title for case in CASES if case.reads_all} == {
        "read 64 chunks of 16 KiB, raw", "read 1,000 chunks of 16 KiB, raw",
        "read 64 chunks of 64 KiB, zstd", "read 1,000 chunks of 64 KiB, zstd",
    }  # fmt: skip


def test_table_shows_libraries_as_they_come_and_at_their_best():
    text = latency.markdown([row(omnizarr=0.3, tensorstore=0.9, tensorstore_256=0.2)], "Somewhere.", {"omnizarr": "1"})
    line = text.splitlines()[-1].replace("\N{NO-BREAK SPACE}", " ")
    assert "| 300 ms | " in line
    assert "900 ms; **200 ms** (256 requests)" in line
    assert line.endswith("1.50 × |  |  |")
