"""Chunks of HDF5 datasets that are found by a part of their index."""

import random
import time
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np
import pytest

import omnizarr
from omnizarr.data.sources import Part
from omnizarr.errors import MetadataError, StaleError
from omnizarr.readers.hdf5 import chunks, seeking
from omnizarr.readers.hdf5.arrays import dense
from omnizarr.readers.hdf5.file import File
from omnizarr.readers.hdf5.seeking import Seeker
from omnizarr.readers.hdf5.source import Source
from omnizarr.settings import engines
from omnizarr.stores import LocalStore, MemoryStore
from omnizarr.stores.manifests.manifest import NOT_STORED
from tests.readers.hdf5 import seals
from tests.stores.recording import FAST, recording

SHAPE, CHUNK = (60, 30, 40), (2, 5, 5)
VALUES = np.arange(np.prod(SHAPE), dtype="i4").reshape(SHAPE)


def made(path, values=VALUES, **options):
    with h5py.File(path, "w", libver="earliest") as file:
        dataset = file.create_dataset("a", values.shape, "i4", chunks=CHUNK, fillvalue=-1, **options)
        dataset[...] = values
    return path


@pytest.fixture
def nodes(monkeypatch):
    """Count nodes of B-trees that are read, and calls that read the whole index."""
    counts = {"nodes": 0, "whole": 0}
    read, whole = Source.read_each, chunks.read

    def counted(source, addresses, length):
        counts["nodes"] += len(addresses)
        return read(source, addresses, length)

    def counted_whole(dataset):
        counts["whole"] += 1
        return whole(dataset)

    monkeypatch.setattr(Source, "read_each", counted)
    monkeypatch.setattr(chunks, "read", counted_whole)
    return counts


def is_native():
    return engines.choice(None) != "reference" and engines.module() is not None


def test_a_plane_takes_the_nodes_that_lead_to_it(tmp_path, nodes):
    array = omnizarr.open(made(tmp_path / "a.h5"), mode="r")["a"]
    assert np.array_equal(array[17], VALUES[17])
    if is_native():
        assert (nodes["whole"], nodes["nodes"] <= 6) == (0, True)


def test_everything_is_read_by_the_whole_index(tmp_path, nodes):
    array = omnizarr.open(made(tmp_path / "a.h5"), mode="r")["a"]
    assert np.array_equal(array[17], VALUES[17])
    assert np.array_equal(array[...], VALUES)
    before = nodes.copy()
    assert np.array_equal(array[3:9, 4], VALUES[3:9, 4])
    assert nodes == before


def test_many_small_selections_lead_to_the_whole_index(tmp_path, nodes):
    array = omnizarr.open(made(tmp_path / "a.h5"), mode="r")["a"]
    for t in range(0, 60, 2):
        assert np.array_equal(array[t, 3:9, 8:30], VALUES[t, 3:9, 8:30])
    before = nodes.copy()
    for t in range(1, 60, 2):
        assert np.array_equal(array[t, 3:9, 8:30], VALUES[t, 3:9, 8:30])
    assert nodes == before


INDEXES = "fixed", "extensible", "tree 2"


def made_late(path, index, grid, numbers, **options):
    """Write some chunks of two elements, and return the expected values."""
    shape = grid[0], 2 * grid[1]
    expected = np.full(shape, -1, "i2")
    most = {"fixed": shape, "extensible": (None, shape[1]), "tree 2": (None, None)}[index]
    with h5py.File(path, "w", libver="latest") as file:
        dataset = file.create_dataset("a", shape, "i2", chunks=(1, 2), maxshape=most, fillvalue=-1, **options)
        for number in numbers:
            y, x = divmod(int(number), grid[1])
            expected[y, 2 * x : 2 * x + 2] = y + 1, x
            raw = np.array([y + 1, x], "i2").tobytes()
            dataset.id.write_direct_chunk((y, 2 * x), raw, filter_mask=int(bool(options)))
    return expected


def dataset_of(path_or_raw):
    raw = path_or_raw if isinstance(path_or_raw, bytes) else path_or_raw.read_bytes()
    file = File(MemoryStore({"a.h5": raw}), "a.h5")
    return file.dataset(file.find("a"))


@pytest.mark.parametrize("index", INDEXES)
def test_windows_of_a_large_index_take_few_of_its_parts(tmp_path, nodes, index):
    """Of a million chunks some are stored: in the index block, in blocks, and in pages of blocks."""
    grid = 5000, 200
    some = np.random.default_rng(7).choice(10**6, 1500, replace=False)
    numbers = np.unique(np.concatenate([np.arange(40), some, np.arange(700_000, 702_000)]))
    expected = made_late(tmp_path / "a.h5", index, grid, numbers)
    dataset = dataset_of(tmp_path / "a.h5")
    assert dataset.layout.index == index
    reads = []
    dataset.header.source.read = lambda address, length, read=dataset.header.source.read: (
        reads.append(length) or read(address, length)
    )
    seeker = Seeker.of(dataset)
    whole = dense(chunks.read(dataset))
    in_all = sum(reads)
    reads.clear()
    wanted = np.array([5, 0, 700_400, 999_999, *some[:3], 1999], np.uint64)
    offsets, lengths = seeker.seek(memoryview(wanted))
    assert np.array_equal(np.asarray(lengths), whole.lengths[wanted])
    is_stored = whole.lengths[wanted] != NOT_STORED
    assert np.array_equal(np.asarray(offsets)[is_stored], whole.offsets[wanted][is_stored])
    if index != "tree 2":  # which has no parts without chunks
        assert sum(reads) < in_all / 2
    array = omnizarr.open(tmp_path / "a.h5", mode="r")["a"]
    nodes["whole"] = 0
    for y, x in ((0, 0), (3500, 7), (4999, 390), (2, 380), (3501, 100)):
        assert np.array_equal(array[y : y + 9, x : x + 10], expected[y : y + 9, x : x + 10])
    assert nodes["whole"] == (0 if is_native() else 1)


@pytest.mark.parametrize("index", INDEXES)
def test_chunks_of_other_indexes_that_skip_filters_are_decoded(tmp_path, nodes, index):
    expected = made_late(tmp_path / "a.h5", index, (60, 40), range(2400), compression="gzip")
    array = omnizarr.open(tmp_path / "a.h5", mode="r")["a"]
    assert np.array_equal(array[17], expected[17])
    assert np.array_equal(array[...], expected)
    assert nodes["whole"] == 1


@pytest.mark.parametrize("index", ["extensible", "tree 2"])
def test_chunks_beyond_the_shape_are_left_out_by_other_indexes(tmp_path, index):
    expected = made_late(tmp_path / "a.h5", index, (60, 40), range(2400))
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["a"].resize((41, 80) if index == "extensible" else (41, 71))
    array = omnizarr.open(tmp_path / "a.h5", mode="r")["a"]
    assert np.array_equal(array[40], expected[40, : array.shape[1]])
    assert np.array_equal(array[...], expected[: array.shape[0], : array.shape[1]])


@pytest.mark.parametrize("name", ["tree", *INDEXES])
def test_changed_indexes_are_errors_or_lead_somewhere(tmp_path, name, monkeypatch):
    """No change makes a loop, a crash, or an extent beyond the file, even where all checksums are right."""
    if name == "tree":
        made(tmp_path / "a.h5")
    else:
        made_late(tmp_path / "a.h5", name, (150, 40), range(0, 6000, 2 if name == "extensible" else 1))
    monkeypatch.setattr(seeking, "_LEAST_NEAR", {})
    raw, rng = (tmp_path / "a.h5").read_bytes(), random.Random(name)
    heads = {"tree": [b"TREE\x01"], "fixed": [b"FAHD", b"FADB"], "tree 2": [b"BTHD", b"BTIN", b"BTLF"]}
    heads = heads.get(name, [b"EAHD", b"EAIB", b"EASB", b"EADB"])
    places = [at for head in heads for at in range(len(raw)) if raw.startswith(head, at)]
    refused, start = 0, time.process_time()
    with seals.unchecked():
        for _ in range(120):
            changed = bytearray(raw)
            for _ in range(rng.randint(1, 3)):
                at = rng.choice(places) + rng.randrange(120)
                new = rng.choice([b"\xff" * 8, bytes(8), rng.choice(places).to_bytes(8, "little"), rng.randbytes(1)])
                changed[at : at + len(new)] = new
            try:
                dataset = dataset_of(bytes(changed[: len(raw)]))
                seeker = Seeker.of(dataset)
                count = np.prod(seeking.grid_of(dataset))
                numbers = np.array([rng.randrange(count) for _ in range(30)], np.uint64)
                found = seeker.seek(memoryview(numbers))
                if found is not None:
                    offsets, lengths = map(np.asarray, found)
                    is_stored = lengths != NOT_STORED
                    assert (offsets[is_stored] + lengths[is_stored] <= len(raw)).all()
                whole, again = seeker.whole(), dense(chunks.read(dataset))
                if whole is not None:
                    assert np.array_equal(again.offsets, whole.offsets)
                    assert np.array_equal(again.lengths, whole.lengths)
            except MetadataError:
                refused += 1
    assert 0 < refused < 120
    assert time.process_time() - start < 60


@pytest.mark.parametrize("index", INDEXES)
def test_small_indexes_on_a_disk_are_read_whole_at_once_by_python(tmp_path, nodes, monkeypatch, index):
    """Several windows by parts of them would take longer than all of the index."""
    monkeypatch.setattr(seeking, "_near", lambda *_: None)
    expected = made_late(tmp_path / "a.h5", index, (150, 40), range(0, 6000, 3))
    array = omnizarr.open(tmp_path / "a.h5", mode="r")["a"]
    for y in (17, 90, 141):
        assert np.array_equal(array[y : y + 9, 3:40], expected[y : y + 9, 3:40])
    assert nodes["whole"] == 1


# -- files of this machine, which the native engine reads ------------------------------


def near_of(path):
    file = File(LocalStore(path.parent, read_only=True), path.name)
    dataset = file.dataset(file.find("a"))
    return dataset, Seeker.of(dataset)


def compared(path, rounds=3):
    """Compare what parts of an index say with what all of it does, in any order."""
    dataset, seeker = near_of(path)
    if is_native():
        assert seeker.near is not None
    whole, rng = dense(chunks.read(dataset)), np.random.default_rng(4)
    wanted = np.arange(len(whole), dtype=np.uint64)
    for number in range(rounds):
        offsets, lengths = map(np.asarray, seeker.seek(memoryview(wanted)))
        assert np.array_equal(lengths, whole.lengths[wanted])
        is_stored = lengths != NOT_STORED
        assert np.array_equal(offsets[is_stored], whole.offsets[wanted][is_stored])
        wanted = rng.integers(0, len(whole), 1000 * number + 1).astype(np.uint64)
    return seeker


needs_native = pytest.mark.skipif(not is_native(), reason="only the native engine does this")


@needs_native
@pytest.mark.parametrize(
    ("sizes", "userblock", "is_full"), [(None, 0, False), ((4, 4), 512, True), ((8, 4), 0, False), ((4, 8), 0, False)]
)
@pytest.mark.parametrize("index", ["tree", *INDEXES])
def test_each_chunk_is_found_where_the_whole_index_says(tmp_path, index, is_full, sizes, userblock):
    """Also with short addresses, behind a user block, and where most chunks are missing."""
    path = tmp_path / "a.h5"
    space = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    space.set_userblock(userblock)
    if sizes:
        space.set_sizes(*sizes)
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    bound = h5py.h5f.LIBVER_EARLIEST if index == "tree" else h5py.h5f.LIBVER_LATEST
    access.set_libver_bounds(bound, h5py.h5f.LIBVER_LATEST)
    shape, numbers = (150, 80), range(6000) if is_full else range(0, 6000, 17)
    most = {"extensible": (200, None), "tree 2": (None, None), "fixed": (300, 100)}.get(index, shape)
    with h5py.File(h5py.h5f.create(bytes(path), h5py.h5f.ACC_TRUNC, space, access)) as file:
        dataset = file.create_dataset("a", shape, "i2", chunks=(1, 2), maxshape=most, shuffle=True)
        for number in numbers:
            y, x = divmod(number, 40)
            dataset.id.write_direct_chunk((y, 2 * x), np.array([y, x], "i2").tobytes())
    assert near_of(path)[0].layout.index == index
    compared(path)


@needs_native
@pytest.mark.parametrize("index", ["fixed", "extensible"])
def test_pages_of_large_arrays_are_found(tmp_path, index):
    grid = 400, 200
    made_late(tmp_path / "a.h5", index, grid, [*range(5000), *range(5000, 80_000, 4001)])
    compared(tmp_path / "a.h5")


@needs_native
@pytest.mark.parametrize("index", ["tree", *INDEXES])
def test_parts_that_are_here_are_not_read_again(tmp_path, index):
    """A part that is here is not read again."""
    made(tmp_path / "a.h5") if index == "tree" else made_late(tmp_path / "a.h5", index, (150, 40), range(6000))
    seeker = compared(tmp_path / "a.h5")
    wanted = np.zeros(1, np.uint64)
    for _ in range(3000):
        assert seeker.seek(memoryview(wanted)) is not None


@needs_native
@pytest.mark.parametrize("name", ["tree", *INDEXES])
def test_changed_indexes_of_files_on_a_disk_are_refused_or_lead_somewhere(tmp_path, name):
    path = tmp_path / "a.h5"
    made(path) if name == "tree" else made_late(path, name, (150, 40), range(0, 6000, 2 if name == "extensible" else 1))
    raw, rng = path.read_bytes(), random.Random(name)
    heads = {"tree": [b"TREE\x01"], "fixed": [b"FAHD", b"FADB"], "tree 2": [b"BTHD", b"BTIN", b"BTLF"]}
    heads = heads.get(name, [b"EAHD", b"EAIB", b"EASB", b"EADB"])
    places = [at for head in heads for at in range(len(raw)) if raw.startswith(head, at)]
    known = seals.of(raw)
    refused, found, start = 0, 0, time.process_time()
    for _ in range(120):
        changed = bytearray(raw)
        for _ in range(rng.randint(1, 3)):
            at = rng.choice(places) + rng.randrange(120)
            new = rng.choice([b"\xff" * 8, bytes(8), rng.choice(places).to_bytes(8, "little"), rng.randbytes(1)])
            changed[at : at + len(new)] = new
        path.write_bytes(seals.renewed(bytes(changed[: len(raw)]), known))
        try:
            dataset, seeker = near_of(path)
        except MetadataError:
            refused += 1
            continue
        numbers = np.array([rng.randrange(int(np.prod(seeking.grid_of(dataset)))) for _ in range(300)], np.uint64)
        places_of = None if seeker.near is None else seeker.seek(memoryview(numbers))
        refused, found = refused + (places_of is None), found + (places_of is not None)
        if places_of is not None:
            offsets, lengths = map(np.asarray, places_of)
            is_stored = lengths != NOT_STORED
            assert (offsets[is_stored] + lengths[is_stored] <= len(raw)).all()
    assert refused > 0
    assert found > 0
    assert time.process_time() - start < 60


@needs_native
def test_a_file_that_changes_while_it_is_open_is_an_error(tmp_path, nodes):
    path = made(tmp_path / "a.h5")
    array = omnizarr.open(path, mode="r")["a"]
    assert np.array_equal(array[17], VALUES[17])
    data = path.read_bytes()
    path.write_bytes(data[:-1] + b"X")
    for t in (17, 40):
        with pytest.raises(StaleError):
            array[t]


@needs_native
def test_threads_find_chunks_at_the_same_time(tmp_path):
    array = omnizarr.open(made(tmp_path / "a.h5"), mode="r")["a"]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda t: array[t, 3:9], list(range(60)) * 3))
    for t, values in zip(list(range(60)) * 3, found, strict=True):
        assert np.array_equal(values, VALUES[t, 3:9])


@pytest.mark.parametrize("index", INDEXES)
def test_changed_parts_of_files_on_a_disk_are_errors(tmp_path, index):
    """Whether the whole index is read, or some parts of it at once."""
    grid = 400, 200
    made_late(tmp_path / "a.h5", index, grid, range(0, 80_000, 40))
    raw = bytearray((tmp_path / "a.h5").read_bytes())
    head = {"fixed": b"FADB", "extensible": b"EADB", "tree 2": b"BTLF"}[index]
    last = max(at for at in range(len(raw)) if raw.startswith(head, at))
    page = 28 + 78 * (1024 * 8 + 4) if index == "fixed" else 0  # the last one, which follows the others
    raw[last + page + 30] ^= 1
    (tmp_path / "a.h5").write_bytes(raw)
    for selection in (np.s_[399, :], np.s_[...]):
        with pytest.raises(MetadataError, match="checksum"):
            omnizarr.open(tmp_path / "a.h5", mode="r")["a"][selection]


def test_structures_of_a_file_do_not_overlap(tmp_path):
    source = dataset_of(made(tmp_path / "a.h5")).header.source
    with pytest.raises(MetadataError, match="a node is where another one is"):
        source.sealed_each([(0, source.size - 8)] * 2, "a node")


def test_conversions_and_orders_are_the_same(tmp_path):
    array = omnizarr.open(made(tmp_path / "a.h5"), mode="r")["a"]
    out = np.empty((30, 40), "f8")
    array.get_basic_selection(5, out=out)
    assert np.array_equal(out, VALUES[5])
    assert np.array_equal(array.vindex[[3, 50, 3], [2, 2, 29], [9, 0, 39]], VALUES[[3, 50, 3], [2, 2, 29], [9, 0, 39]])
    assert np.array_equal(array[...], VALUES)


def test_chunks_that_are_not_stored_are_the_fill_value(tmp_path, nodes):
    path = tmp_path / "a.h5"
    expected = np.full(SHAPE, -1, "i4")
    with h5py.File(path, "w", libver="earliest") as file:
        dataset = file.create_dataset("a", SHAPE, "i4", chunks=CHUNK, fillvalue=-1)
        for t, y, x in np.random.default_rng(3).permutation(np.argwhere(np.ones((30, 6, 8))))[:700].tolist():
            part = np.s_[2 * t : 2 * t + 2, 5 * y : 5 * y + 5, 5 * x : 5 * x + 5]
            dataset[part] = expected[part] = VALUES[part]
    array = omnizarr.open(path, mode="r")["a"]
    assert np.array_equal(array[31], expected[31])
    assert nodes["whole"] == (0 if is_native() else 1)
    assert np.array_equal(array[...], expected)


def test_chunks_that_skip_filters_are_decoded(tmp_path, nodes):
    path = made(tmp_path / "a.h5", compression="gzip", shuffle=True)
    other = np.full(CHUNK, 9, "i4")
    with h5py.File(path, "r+") as file:
        file["a"].id.write_direct_chunk((16, 0, 0), other.tobytes(), filter_mask=3)
    expected = VALUES.copy()
    expected[16:18, :5, :5] = other
    array = omnizarr.open(path, mode="r")["a"]
    assert np.array_equal(array[17], expected[17])
    assert np.array_equal(array[...], expected)
    assert nodes["whole"] == 1


def test_chunks_beyond_the_shape_are_left_out(tmp_path):
    path = made(tmp_path / "a.h5", maxshape=(None, None, None))
    with h5py.File(path, "r+") as file:
        file["a"].resize((58, 26, 39))
        expected = file["a"][...]
    array = omnizarr.open(path, mode="r")["a"]
    assert np.array_equal(array[17], expected[17])
    assert np.array_equal(array[...], expected)


def test_a_broken_node_is_an_error_for_those_who_need_it(tmp_path):
    path = made(tmp_path / "a.h5")
    data = path.read_bytes()
    leaves = [at for at in range(len(data)) if data.startswith(b"TREE\x01\x00", at)]
    assert len(leaves) > 10
    path.write_bytes(data[: leaves[-1]] + b"X" + data[leaves[-1] + 1 :])
    array = omnizarr.open(path, mode="r")["a"]
    errors = 0
    for t in range(0, 60, 2):
        try:
            assert np.array_equal(array[t], VALUES[t])
        except MetadataError:
            errors += 1
    assert errors > 0
    with pytest.raises(MetadataError, match="B-tree"):
        array[...]


@pytest.fixture
def far(tmp_path):
    """A file of two datasets behind a web server, and the server."""
    pytest.importorskip("obstore.store", reason="the extra cloud is not installed")
    path = made(tmp_path / "a.h5")
    with h5py.File(path, "r+") as file:
        file.create_dataset("b", data=-VALUES, chunks=CHUNK)
    with recording() as server:
        server.values["/d/a.h5"] = path.read_bytes()
        yield omnizarr.open(server.url("/d/a.h5"), mode="r", storage_options=FAST), server


def test_several_selections_of_a_far_array_are_fetched_together(far, nodes):
    group, server = far
    starts = range(0, 60, 7)
    server.requests()
    found = omnizarr.read_many([(group["a"], np.s_[t : t + 3]) for t in starts])
    for t, values in zip(starts, found, strict=True):
        assert np.array_equal(values, VALUES[t : t + 3])
    if is_native():
        assert len(server.requests()) <= 30  # one or two for each selection; there are 1,152 chunks


def test_one_selection_of_each_of_several_far_arrays_takes_the_nodes_that_lead_to_it(far, nodes):
    group, server = far
    server.requests()
    first, second = omnizarr.read_many([(group["a"], 17), (group["b"], np.s_[40:42])])
    assert np.array_equal(first, VALUES[17])
    assert np.array_equal(second, -VALUES[40:42])
    if is_native():
        assert nodes["whole"] == 0
        assert len(server.requests()) <= 20


def test_a_loader_reads_the_whole_index_and_fetches_as_from_other_files(far, nodes):
    group, _ = far
    loader = omnizarr.data.Loader({"x": group["a"], "i": np.arange(60)}, batch=7, shuffle="full")
    for batch in loader:
        assert np.array_equal(batch["x"], VALUES[batch["i"]])
    assert nodes["whole"] == (0 if is_native() else 1)
    assert Part(group["a"]).is_remote == is_native()
