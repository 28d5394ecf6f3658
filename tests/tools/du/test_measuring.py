"""What `du` counts: against the files of a directory, and against what `info` says of each array."""

import os
import subprocess
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import omnizarr
from omnizarr.nodes import holdings, info
from omnizarr.stores import LocalStore, MemoryStore, MetricsStore, PrefixStore
from omnizarr.tools import survey
from tests.fakes import UnlistableStore, failing

CORPUS = Path(__file__).parents[2] / "corpus"
CASES = sorted(CORPUS.glob("*/*/store.zip"))
OF_NO_NODE = {
    "zarr0/attributes": 1,  # a lock
    "zarr0/resized": 13,  # outside the grid, since the arrays were made smaller
    "zarr1/interrupted": 1,  # x/1.1.abcdefgh.partial
    "zarr1/synchronizer": 5,  # x/0.0.lock
    # Arrays without documents of their own, which `info` and `ls` do not list either.
    "zarr2/consolidated_only": 8,
    "draft_zarr/consolidated_only": 4,
    "draft_zarr/consolidated_only_without_root": 4,
}


def files_below(place):
    """Return the sizes of all files, added up, like `du -b` without directories."""
    return sum((Path(folder) / name).lstat().st_size for folder, _, names in os.walk(place) for name in names)


def by_path(usage):
    return {node.path: node for node in usage.nodes}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parts[-3]}-{case.parts[-2]}")
def test_hierarchy_of_each_format_takes_what_its_files_take(case, tmp_path):
    with zipfile.ZipFile(case) as archive:
        archive.extractall(tmp_path)
    usage = omnizarr.du(tmp_path)
    assert usage.total.bytes_stored == files_below(tmp_path)
    assert usage.total.other.files == OF_NO_NODE.get(f"{case.parts[-3]}/{case.parts[-2]}", 0)
    for node in usage.nodes:
        if node.node_type == "array" and node.problem is None:
            array = omnizarr.open_array(tmp_path, path=node.path, mode="r")
            assert (node.stored, node.bytes_stored) == holdings.count(array.store_path, array.metadata)
            assert node.bytes_logical == info.of_array(array.store_path, array.metadata).bytes_logical


@pytest.fixture
def hierarchy(tmp_path):
    """A hierarchy in which all kinds of files are that belong to no node."""
    place = tmp_path / "x.zarr"
    root = omnizarr.create_group(place)
    temp = root.create_array("ocean/temp", shape=(6, 4), chunks=(2, 2), dtype="int16", compressors=None, fill_value=0)
    temp[:4] = 1
    root.create_array("ocean/salt", data=np.arange(8.0), shards=(4,), chunks=(2,))
    for name, size in {
        "README.txt": 3,
        "ocean/temp/.omnizarr-1234.tmp": 5,
        "ocean/temp/c/0/.omnizarr-1.lock": 0,
        "ocean/temp/c/9/9": 7,
        "ocean/temp/notes/zarr.json": 11,
        "gone/c/0/0": 13,
        "back\\slash": 17,
    }.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(bytes(size))
    (place / "elsewhere.txt").symlink_to("/etc/hostname")
    return place


def test_files_of_no_node_are_counted_apart_where_they_are(hierarchy):
    found = by_path(omnizarr.du(hierarchy))
    assert found["ocean/temp"].other == (4, 5 + 0 + 7 + 11)
    assert found["ocean/temp"].chunks == (4, 4 * 8)
    assert found["ocean/temp"].expected == 6
    assert found["ocean/salt"].other == (0, 0)
    assert found[""].other.files == 4 + 4  # README.txt, gone/c/0/0, back\\slash, elsewhere.txt


def test_total_is_what_du_says_of_the_files(hierarchy):
    (hierarchy / "ocean" / "outside").symlink_to("/tmp")
    total = omnizarr.du(hierarchy).total.bytes_stored
    said = subprocess.run(["du", "-ab", hierarchy], capture_output=True, text=True, check=True).stdout.splitlines()
    sizes = {Path(name): int(size) for size, name in (line.split("\t") for line in said)}
    files = {name: size for name, size in sizes.items() if name.is_symlink() or not name.is_dir()}
    assert total == sum(files.values())


def test_groups_count_with_all_below(hierarchy):
    usage = omnizarr.du(hierarchy)
    assert [node.path for node in usage.nodes] == ["ocean/salt", "ocean/temp", "ocean", ""]
    found = by_path(usage)
    below = [found["ocean/salt"], found["ocean/temp"]]
    document = (hierarchy / "ocean" / "zarr.json").stat().st_size
    assert found["ocean"].bytes_stored == sum(node.bytes_stored for node in below) + document
    assert found["ocean"].bytes_logical == sum(node.bytes_logical for node in below) == 6 * 4 * 2 + 8 * 8
    assert (found["ocean"].stored, found["ocean"].expected) == (4 + 2, 6 + 2)
    assert (usage.arrays, usage.groups) == (2, 2)


def test_node_inside_counts_what_is_below_it_alone(hierarchy):
    whole = by_path(omnizarr.du(hierarchy))
    part = omnizarr.du(hierarchy, path="ocean")
    assert part.total.bytes_stored == whole["ocean"].bytes_stored
    alone = omnizarr.du(omnizarr.open(hierarchy, mode="r")["ocean/temp"])
    assert [node.path for node in alone.nodes] == [""]
    assert alone.total.bytes_stored == whole["ocean/temp"].bytes_stored
    through = omnizarr.du(PrefixStore(LocalStore(hierarchy.parent), "x.zarr"))
    assert through.total == whole[""]


def test_rows_go_down_to_a_depth_and_are_sorted(hierarchy):
    usage = omnizarr.du(hierarchy)
    assert [node.path for node in usage.rows(max_depth=1)] == ["ocean", ""]
    assert [node.path for node in usage.rows(max_depth=0)] == [""]
    sizes = [node.bytes_stored for node in usage.rows(sort="stored")]
    assert sizes[:-1] == sorted(sizes[:-1], reverse=True)
    assert sizes[-1] == usage.total.bytes_stored
    with pytest.raises(ValueError, match="sort='size'"):
        list(usage.rows(sort="size"))


def test_node_that_cannot_be_read_keeps_its_bytes(hierarchy):
    document = hierarchy / "ocean" / "temp" / "zarr.json"
    document.write_text('{"zarr_format": 3, "node_type": "array"}')
    usage = omnizarr.du(hierarchy)
    node = by_path(usage)["ocean/temp"]
    assert node.node_type == "unreadable"
    assert node.problem
    assert node.expected is None
    assert usage.total.bytes_stored == files_below(hierarchy)


def test_one_listing_serves_all_nodes():
    values = {}
    root = omnizarr.create_group(values)
    for number in range(20):
        root.create_array(f"a{number}", data=np.arange(10), chunks=(1,))
    store = MetricsStore(MemoryStore(values))
    omnizarr.du(store)
    counted = store.report().verbs
    assert counted["list_sizes"].requests == 1
    assert "list_prefix" not in counted
    chunk_reads = sum(figures.requests for verb, figures in counted.items() if verb.startswith("get"))
    assert chunk_reads <= 20 + 2  # a document per node


def test_sizes_are_unknown_where_the_store_cannot_list():
    values = {}
    omnizarr.create_array(values, data=np.arange(10), chunks=(5,))
    usage = omnizarr.du(UnlistableStore(MemoryStore(values), admits=False))
    assert usage.total.bytes_stored is None
    assert usage.total.stored is None
    assert usage.total.bytes_logical == 80
    assert "cannot list" in usage.unlisted
    assert usage.to_dict()["total"]["bytes_stored"] is None


def test_failure_of_a_listing_is_raised():
    store = failing(MemoryStore(), omnizarr.errors.StoreError("the connection was lost"), verb="list_sizes")
    omnizarr.create_group(store).create_array("x", data=np.arange(3))
    with pytest.raises(omnizarr.errors.StoreError, match="connection was lost"):
        omnizarr.du(store)


def test_progress_is_reported_all_keys():
    values = {}
    omnizarr.create_array(values, data=np.arange(2500), chunks=(1,), compressors=None, fill_value=-1)
    told = []
    omnizarr.du(values, progress=told.append)
    assert sum(told) == 2501


def test_group_that_was_opened_from_consolidated_metadata_needs_no_documents():
    values = {}
    root = omnizarr.create_group(values, zarr_format=2)
    root.create_array("a", data=np.arange(4.0), chunks=(2,), compressors=None, fill_value=-1)
    omnizarr.consolidate_metadata(values)
    del values["a/.zarray"]
    found = by_path(omnizarr.du(omnizarr.open_consolidated(values)))
    assert (found["a"].stored, found["a"].chunks.nbytes) == (2, 32)


def test_long_key_is_assigned_in_time_that_grows_with_its_length():
    values = {}
    omnizarr.create_group(values)["a"] = np.arange(3)
    values[f"a/{'x/' * 200_000}y"] = b"1"
    begun = time.process_time()
    assert omnizarr.du(values).nodes[-1].other == (1, 1)
    root = omnizarr.open(values)
    assert survey.of(root, [root["a"]]).count(root["a"])[0] == 1
    assert time.process_time() - begun < 5  # with its square: 20
