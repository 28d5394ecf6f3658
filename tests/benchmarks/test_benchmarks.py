"""The benchmarks run: a tiny workload of each kind, with libraries that are installed; figures are not looked at."""

import itertools
import json
import re
import sys

import numpy as np
import pytest

from benchmarks import data, reports, running, workloads
from benchmarks.__main__ import chosen
from benchmarks.peers import PEERS
from benchmarks.targets import TARGETS, Fastest, Memory, OfWorkload, Times, Within, verdict
from benchmarks.workloads import BY_NAME, WORKLOADS, Dataset

pytestmark = pytest.mark.slow

TINY = 4096  # one chunk or shard, or few
KINDS = [
    "read-large-zstd", "write-small-raw", "windows", "write-shards-raw", "rows", "points", "strides", "elements",
    "threads-1", "threads-4", "create-nodes", "open-nodes", "list-nodes", "consolidated", "join-12000",
    "joined-12000-point", "joined-12000-series", "joined-12000-plane", "latency", "import", "begin", "memory-raw",
    "memory-stream",
]  # fmt: skip
QUICK_PEERS = ["omnizarr-reference", "zarrista", "tensorstore", "floor"]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    return running.run([BY_NAME[name] for name in KINDS], folder, scale=TINY, rounds=1, peers=QUICK_PEERS)


def by_hand(medians, ours="omnizarr-reference", name="read-large-raw"):
    """Return a report of one workload with these medians."""
    result = running.Result.of(BY_NAME[name], 1)
    result.values.update({key: [value] for key, value in medians.items()})
    return running.Report({}, {ours: "1"}, {}, [result]), result


def test_each_workload_has_targets_and_a_name_of_its_own():
    assert set(TARGETS) == set(BY_NAME)
    assert len(BY_NAME) == len(WORKLOADS)


@pytest.mark.parametrize("name", KINDS)
def test_workload_is_done_and_right_in_each_library(report, name):
    result = next(result for result in report.results if result.workload.name == name)
    assert "omnizarr-reference" in result.values
    expected = {
        "no calls from several threads",
        "no lists",
        "no points",
        "no strides",
        "no listing",
        "no consolidated metadata",
        "no joining",
    }
    assert set(result.reasons.values()) <= expected
    assert all(len(values) >= 1 and min(values) > 0 for key, values in result.values.items() if "memory" not in name)


@pytest.mark.parametrize("key", ["tensorstore", "xarray", "dask"])
def test_library_joins_and_reads_right_values(key, tmp_path):
    pytest.importorskip(PEERS[key].label.lower())
    some = [BY_NAME[name] for name in ("join-1000", "joined-1000-point", "joined-1000-series", "joined-1000-plane")]
    found = running.run(some, tmp_path, scale=250, rounds=1, peers=[key])
    assert found.absent == {}
    assert [result.values.keys() for result in found.results] == [{key}] * len(some), found.results


def test_wrong_values_of_what_is_joined_are_noticed(tmp_path, monkeypatch):
    create = data.create_sources
    monkeypatch.setattr(data, "create_sources", lambda dataset, path, values: create(dataset, path, values + 1))
    some = [BY_NAME["join-1000"], BY_NAME["joined-1000-series"]]
    found = running.run(some, tmp_path, scale=500, rounds=1, peers=["omnizarr-reference"])
    assert found.results[1].reasons == {"omnizarr-reference": "other values"}


def test_what_takes_long_is_measured_once_in_the_trial(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "LONG", 0.0)
    found = running.run([BY_NAME["read-tiny-raw"]], tmp_path, scale=TINY, rounds=3, peers=["omnizarr-reference"])
    assert len(found.results[0].values["omnizarr-reference"]) == 1


def test_everything_is_tidied_up_but_the_last_dataset(tmp_path):
    running.run([BY_NAME["write-large-raw"]], tmp_path, scale=TINY, rounds=1, peers=["omnizarr-reference"])
    assert {path.name for path in tmp_path.iterdir()} == {"values.npy", "zarr.json"}


NUMBER = re.compile(r"\d[\d,]*\.?\d*")
NAMES = re.compile(r"Zarr v\d|crc32c|from \d threads?$")  # numbers that are no sizes


def sizes(workload, scale):
    """Return the numbers that a title may name: lengths, numbers of chunks and requests, and bytes in each unit."""
    dataset = workload.dataset.scaled(scale)
    selections = workload.select(dataset, scale)
    counts = {*dataset.shape, *dataset.chunks, np.prod(dataset.shape) / np.prod(dataset.chunks), len(selections)}
    some = selections[0]
    if isinstance(some, workloads.Rows):
        counts.add(len(some.indices))
    elif isinstance(some, workloads.Points):
        counts.add(len(some.coordinates[0]))
    else:
        counts |= set(np.empty(dataset.shape, "i1")[some.slices].shape)
    bytes_of = [np.empty(shape, dataset.dtype).nbytes for shape in (dataset.shape, dataset.chunks)]
    return counts | {nbytes / 2**power for nbytes in bytes_of for power in (10, 20, 30)}


@pytest.mark.parametrize("scale", [1, 16, TINY])
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_each_number_in_a_title_is_a_size_of_what_is_run(workload, scale):
    told = f"{workload.group_at(scale)}: {workload.title_at(scale)}"
    numbers = {float(found.replace(",", "")) for found in NUMBER.findall(NAMES.sub("", told).replace("³", ""))}
    assert numbers <= sizes(workload, scale), told


@pytest.mark.parametrize("scale", [1, 16])
def test_what_is_smaller_has_another_title(scale):
    """Among the rows of one run, and beside those of a run of another size."""
    titles = [(workload.group_at(scale), workload.title_at(scale)) for workload in WORKLOADS]
    assert len(set(titles)) == len(titles)
    groups = [group for group, _ in titles]
    assert len(set(groups)) == len([1 for one, other in itertools.pairwise([*groups, ""]) if one != other])
    unscaled = {"latency", "import", "begin"}  # one chunk, and none
    for workload, told in zip(WORKLOADS, titles, strict=True):
        same = told == (workload.group_at(scale * 2), workload.title_at(scale * 2))
        assert same == (workload.name in unscaled), told


def test_absent_library_is_named(monkeypatch):
    monkeypatch.setitem(PEERS, "absent_peer", running.Entry("Absent", "absent_peer", "Absent"))
    absent = {"absent": "No module named 'absent_peer'"}
    monkeypatch.setattr(running.Client, "_start", lambda _client: absent)
    clients, found = running.enlist([sys.executable], ["absent_peer"])
    assert clients == []
    assert found == {"absent_peer": "No module named 'absent_peer'"}


def test_other_values_are_noticed(tmp_path):
    values = tmp_path / "values.npy"
    dataset = BY_NAME["read-large-raw"].dataset.scaled(TINY)
    data.save_values(dataset, values)
    path = tmp_path / "data"
    client = running.Client("omnizarr-reference", sys.executable)
    request = {"workload": "read-large-raw", "scale": TINY, "path": str(path), "values": str(values)}
    client.ask("prepare", **request)
    client.ask("store")
    changed = np.lib.format.open_memmap(values, mode="r+")
    changed[-1, -1] += 1
    changed.flush()
    found = client.ask("check", **request)
    client.close()
    assert found == {"right": False}


def test_worker_that_died_is_started_again(tmp_path):
    client = running.Client("zarrista", sys.executable)
    process = client._process
    process.kill()
    process.wait()
    with pytest.raises(running.Died):
        client.ask("forget")
    process.stdin.close()
    process.stdout.close()
    assert client.ask("forget") == {}
    client.close()


def test_report_renders_as_text_markdown_and_json(report, capsys):
    for result in report.results:
        reports.terminal(report, result)
        assert result.title.split()[0] in capsys.readouterr().out
    text = reports.markdown(report)
    assert all(BY_NAME[name].title_at(TINY) in text for name in KINDS)
    again = running.Report.from_json(json.loads(json.dumps(reports.details(report))))
    assert reports.markdown(again) == text


def test_report_goes_between_the_marks_of_a_page(tmp_path):
    page = tmp_path / "page.md"
    begin, end = "<!-- some: begin -->", "<!-- some: end -->"
    page.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    reports.into_page(page, "new", begin, end)
    assert page.read_text() == f"before\n{begin}\n\nnew\n{end}\nafter\n"


def test_picture_is_drawn(report, tmp_path):
    from benchmarks import plotting

    plotting.plot(report, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("dataset", dict.fromkeys(one.dataset for one in WORKLOADS), ids=lambda dataset: dataset.name)
@pytest.mark.parametrize("scale", [1, 8, TINY])
def test_scaled_dataset_is_whole_files(dataset, scale):
    scaled = dataset.scaled(scale)
    assert all(length % step == 0 for length, step in zip(scaled.shape, dataset.files, strict=True))
    assert scaled.nbytes * scale >= dataset.nbytes
    assert scaled.chunks == dataset.chunks


def test_whole_name_chooses_one_workload_and_part_of_a_name_all_that_have_it():
    assert [one.name for one in chosen(["read-large-zstd"])] == ["read-large-zstd"]
    assert [one.name for one in chosen(["large-zstd+"])] == ["read-large-zstd+crc32c", "write-large-zstd+crc32c"]
    assert chosen(None) == WORKLOADS
    with pytest.raises(SystemExit, match="no workload is called"):
        chosen(["nothing like that"])


def test_target_fastest_looks_at_other_libraries_only():
    report, result = by_hand({"omnizarr-reference": 2.0, "zarrista": 4.0, "tensorstore": 8.0, "floor": 1.0})
    assert Fastest().used(report, result) == 0.5
    assert Times(1.3).used(report, result) == 2 / 1.3
    assert verdict(report, result)[1] is False


def test_target_without_what_it_compares_with_cannot_be_told():
    report, result = by_hand({"omnizarr-reference": 2.0})
    assert Fastest().used(report, result) is None
    assert OfWorkload(1.3, "rows-slice", "the slice").used(report, result) is None
    assert verdict(report, result)[1] is None


def test_target_per_chunk_divides_by_chunks():
    report, result = by_hand({"omnizarr-reference": 4096 * 6e-6}, name="read-tiny-raw")
    assert Within(3e-6, per_chunk=True).used(report, result) == pytest.approx(2)


def test_target_memory_is_result_and_chunks():
    report, result = by_hand({"omnizarr-reference": 2**29 + 2**24}, name="memory-raw")
    assert Memory().used(report, result) == 1


def test_hdf5_is_not_compared_with_a_file_per_small_chunk():
    _, large = by_hand({"h5py": 1.0, "zarrista": 2.0})
    _, small = by_hand({"h5py": 1.0, "zarrista": 2.0}, name="read-small-raw")
    assert reports.fastest_peer(large) == ("h5py", 1.0)
    assert reports.fastest_peer(small) == ("zarrista", 2.0)


def test_selections_are_within_the_array():
    for workload in WORKLOADS:
        for scale in (1, 8):
            dataset = workload.dataset.scaled(scale)
            for some in workload.select(dataset, scale):
                if isinstance(some, workloads.Region):
                    assert all(
                        0 <= one.start < one.stop <= length
                        for one, length in zip(some.slices, dataset.shape, strict=True)
                    )


def test_values_are_neither_noise_nor_constant(tmp_path):
    import zlib

    for dtype in ("float32", "uint16"):
        dataset = Dataset("one", (64, 64, 64), (32, 32, 32), dtype=dtype)
        data.save_values(dataset, tmp_path / "values.npy")
        plain = data.load_values(tmp_path / "values.npy").tobytes()
        assert 0.1 < len(zlib.compress(plain)) / len(plain) < 0.7
