"""`omnizarr.tools.convert.temporary`: rechunking in several passes, and what is about meanwhile."""

import threading
from collections import Counter

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import omnizarr
from omnizarr import errors
from omnizarr.cli.convert import convert as command
from omnizarr.stores import LocalStore, MemoryStore, SQLiteStore, WrapperStore, ZipStore, verbs
from omnizarr.stores.base import answers
from omnizarr.tools.convert import moving, temporary
from omnizarr.tools.convert.temporary import TemporaryObjects
from tests.traced import peak_of

VALUES = np.arange(64 * 24 * 24, dtype="i4").reshape(64, 24, 24)
LAYOUT = {"chunks": (64, 2, 2), "max_memory": 16_000}


class Counting(WrapperStore):
    """Counts how often the value of each key is read and set; fails at a certain one."""

    def __init__(self, store=None, fail_after=None):
        super().__init__(store or MemoryStore())
        self.gets, self.sets = Counter(), Counter()
        self.fail_after = fail_after
        self._guard = threading.Lock()

    def _note(self, counter, key):
        with self._guard:
            counter[key] += 1

    def get(self, key, span=None):
        self._note(self.gets, key)
        return super().get(key, span)

    @answers(verbs.get_many)
    def _get_many(self, requests):
        requests = list(requests)
        for key, _ in requests:
            self._note(self.gets, key)
        return verbs.get_many(self.store, requests)

    @answers(verbs.get_spans)
    def _get_spans(self, key, spans):
        self._note(self.gets, key)
        return verbs.get_spans(self.store, key, spans)

    @answers(verbs.read_into)
    def _read_into(self, key, out, start=0):
        self._note(self.gets, key)
        return verbs.read_into(self.store, key, out, start)

    def set(self, key, value):
        if self.fail_after is not None and sum(self.sets.values()) >= self.fail_after:
            raise errors.StoreError("the disk is full", key=key)
        self._note(self.sets, key)
        super().set(key, value)


def chunks_of(counter):
    return Counter({key: n for key, n in counter.items() if key.startswith("c/") or key == "c"})


def temporary_of(counter):
    return Counter({key: n for key, n in counter.items() if temporary.NAME + "/" in key})


def leftovers(store):
    return [key for key in store.list() if f"{temporary.NAME}/" in key]


def make(values=VALUES, chunks=(2, 24, 24), store=None, **options):
    store = Counting() if store is None else store
    omnizarr.create_array(store, data=values, chunks=chunks, **options)
    return store


def test_route_of_these_tests_has_several_passes():
    (node,) = omnizarr.rechunk(make(), dry_run=True, **LAYOUT).nodes
    assert [(each.reads, each.writes) for each in node.passes] == [("source", "temporary"), ("temporary", "target")]


@pytest.mark.parametrize("verify", [False, True])
def test_each_chunk_is_read_once_to_be_moved_and_once_to_be_compared(verify):
    source, target = make(), Counting()
    source.gets.clear()
    assert omnizarr.rechunk(source, target, verify=verify, **LAYOUT).verified == verify
    np.testing.assert_array_equal(omnizarr.open(target)[...], VALUES)
    assert set(chunks_of(source.gets).values()) == {1 + verify}
    assert len(chunks_of(source.gets)) == 32
    assert set(temporary_of(target.sets).values()) == {1}
    assert set(chunks_of(target.sets).values()) == {1}
    assert not leftovers(target)


@st.composite
def layouts(draw):
    ndim = draw(st.integers(1, 3))
    shape = tuple(draw(st.integers(1, 24)) for _ in range(ndim))
    before, after = (tuple(draw(st.integers(1, length)) for length in shape) for _ in range(2))
    shards = tuple(length * draw(st.integers(1, 3)) for length in after) if draw(st.booleans()) else None
    chunk = np.prod(shards or after) * 8
    return shape, before, after, shards, int(chunk * draw(st.floats(1, 6)))


@settings(deadline=None, max_examples=60)
@given(layouts(), st.booleans(), st.booleans(), st.sampled_from(["i2", "f8", "T"]))
def test_values_are_those_of_numpy_whatever_the_layout(layout, verify, is_sparse, dtype):
    shape, before, after, shards, max_memory = layout
    values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    if is_sparse:
        values[: shape[0] // 2] = np.zeros((), dtype) if dtype != "T" else ""
    if dtype == "T":
        max_memory *= 40  # elements of variable size are taken to have 256 bytes
    source, target = make(values, before), Counting()
    source.gets.clear()
    done = omnizarr.rechunk(source, target, chunks=after, shards=shards, max_memory=max_memory, verify=verify)
    assert done.verified == verify
    np.testing.assert_array_equal(omnizarr.open(target)[...], values)
    stored = sum(1 for key in source.store.list() if key.startswith("c"))
    assert sum(chunks_of(source.gets).values()) <= 2 * (1 + verify) * omnizarr.open(source).nchunks
    (node,) = done.nodes
    if len(node.passes) > 1:
        assert chunks_of(source.gets) == Counter(dict.fromkeys(chunks_of(source.gets), 1 + verify))
        assert len(chunks_of(source.gets)) <= omnizarr.open(source).nchunks
    assert max(temporary_of(target.sets).values(), default=1) == 1
    assert not leftovers(target)
    assert stored <= omnizarr.open(source).nchunks


def test_missing_chunks_stay_missing_and_hold_the_fill_value():
    source = Counting()
    array = omnizarr.create_array(source, shape=(64, 24, 24), chunks=(2, 24, 24), dtype="i4", fill_value=-7)
    array[10:12] = 5
    target = Counting()
    assert omnizarr.rechunk(source, target, chunks=(8, 2, 2), max_memory=3000).verified
    expected = np.full((64, 24, 24), -7)
    expected[10:12] = 5
    np.testing.assert_array_equal(omnizarr.open(target)[...], expected)
    assert len(chunks_of(target.sets)) == 12 * 12


@pytest.mark.slow
def test_no_more_memory_than_allowed_is_taken(tmp_path):
    values = np.random.default_rng(0).integers(0, 99, (256, 128, 128), dtype="i4")
    omnizarr.create_array(tmp_path / "a", data=values, chunks=(4, 128, 128))
    del values
    max_memory = 2_000_000
    options = {"chunks": (256, 8, 8), "max_memory": max_memory, "overwrite": True}
    (node,) = omnizarr.rechunk(tmp_path / "a", tmp_path / "b", **options).nodes  # imports, too
    assert len(node.passes) > 1
    chunk = 4 * 128 * 128 * 4
    most = max_memory + 4 * chunk + 500_000  # chunks that are being decoded or encoded, and Python's own
    assert peak_of(lambda: omnizarr.rechunk(tmp_path / "a", tmp_path / "b", **options), most) < most


# -- interrupted -----------------------------------------------------------------------


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("fail_after", [1, 2, 5, 20, 40, 60, 100, 150])
def test_what_is_interrupted_is_resumed_and_nothing_is_written_twice(fail_after, verify):
    source, target = make(), Counting(fail_after=fail_after)
    with pytest.raises(errors.StoreError, match="full"):
        omnizarr.rechunk(source, target, verify=verify, **LAYOUT)
    with pytest.raises(errors.NodeNotFoundError):
        omnizarr.open(target)
    target.fail_after = None
    assert omnizarr.rechunk(source, target, verify=verify, resume=True, **LAYOUT).verified == verify
    np.testing.assert_array_equal(omnizarr.open(target)[...], VALUES)
    assert not leftovers(target)
    whole = [n for key, n in chunks_of(target.sets).items()] + list(temporary_of(target.sets).values())
    assert sum(n - 1 for n in whole) <= 12  # those of the block in which it happened


def test_ctrl_c_leaves_what_can_be_resumed(monkeypatch):
    source, target = make(), Counting()
    read = TemporaryObjects.read
    monkeypatch.setattr(TemporaryObjects, "read", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        omnizarr.rechunk(source, target, **LAYOUT)
    assert leftovers(target)
    monkeypatch.setattr(TemporaryObjects, "read", read)
    source.gets.clear()
    assert omnizarr.rechunk(source, target, resume=True, verify=False, **LAYOUT).nodes[0].how == "encoded"
    assert sum(chunks_of(source.gets).values()) == 32  # to find broken ones, as nothing is compared
    assert not leftovers(target)


def test_other_memory_makes_other_temporary_objects_and_leaves_none_of_the_first():
    source, target = make(), Counting(fail_after=30)
    with pytest.raises(errors.StoreError):
        omnizarr.rechunk(source, target, **LAYOUT)
    target.fail_after = None
    assert omnizarr.rechunk(source, target, resume=True, chunks=(64, 2, 2), max_memory=22_000).verified
    assert not leftovers(target)


def test_beginning_again_removes_temporary_objects():
    source, target = make(), Counting(fail_after=30)
    with pytest.raises(errors.StoreError):
        omnizarr.rechunk(source, target, **LAYOUT)
    assert leftovers(target)
    target.fail_after = None
    assert omnizarr.rechunk(source, target, overwrite=True, chunks=(64, 24, 24)).verified
    assert not leftovers(target)


@pytest.mark.parametrize("change", ["drop", "cut"])
def test_temporary_object_that_is_lost_or_cut_is_an_error_and_made_again(monkeypatch, change):
    source, target = make(), MemoryStore()
    write = TemporaryObjects.write

    def spoiled(self, *args):
        write(self, *args)
        key = next(iter(self.where.store.list_prefix(self.where.prefix)))
        if change == "drop":
            self.where.store.delete(key)
        else:
            self.where.store.set(key, self.where.store.get(key)[:-1])

    monkeypatch.setattr(TemporaryObjects, "write", spoiled)
    with pytest.raises(errors.StoreError, match=r"temporary object.*missing or broken"):
        omnizarr.rechunk(source, target, verify=False, **LAYOUT)
    monkeypatch.setattr(TemporaryObjects, "write", write)
    options = {"resume": True} if change == "drop" else {"overwrite": True}
    assert omnizarr.rechunk(source, target, **options, **LAYOUT).verified
    np.testing.assert_array_equal(omnizarr.open(target)[...], VALUES)


@pytest.mark.parametrize("spoil", ["temporary", "target"])
def test_what_is_altered_on_the_way_is_found_by_verification(monkeypatch, spoil):
    source, target = make(), MemoryStore()
    run = moving.Move.run

    def spoiled(self, *args):
        moved = run(self, *args)
        found = leftovers(target) if spoil == "temporary" else [key for key in target.list() if key.startswith("c/")]
        value = bytearray(target.get(found[0]))
        value[-1] ^= 1
        target.set(found[0], bytes(value))
        return moved

    monkeypatch.setattr(moving.Move, "run", spoiled)
    with pytest.raises(errors.ChunkError):
        omnizarr.convert(source, target, compressors=None, **LAYOUT)
    with pytest.raises(errors.NodeNotFoundError):
        omnizarr.open(target)
    assert not leftovers(target)


@pytest.mark.parametrize("verify", [False, True])
def test_broken_chunk_of_the_source_is_named_and_the_others_are_carried(verify):
    source, target = make(), MemoryStore()
    source.store.set("c/3/0/0", b"garbage")
    done = omnizarr.rechunk(source, target, verify=verify, **LAYOUT)
    assert done.unreadable == ("c/3/0/0",)
    expected = VALUES.copy()
    expected[6:8] = 0
    np.testing.assert_array_equal(omnizarr.open(target)[...], expected)
    assert not leftovers(target)


def test_check_names_temporary_objects_of_what_was_interrupted():
    root = MemoryStore()
    group = omnizarr.create_group(root)
    group.create_array("a", data=VALUES, chunks=(2, 24, 24))
    target = Counting(fail_after=30)
    with pytest.raises(errors.StoreError):
        omnizarr.rechunk(root, target, **LAYOUT)
    found = {finding.code for finding in omnizarr.check(target.store).findings}
    assert {"temporary-file", "unfinished-conversion"} <= found
    assert not found & {"orphan-chunks", "foreign-file", "foreign-chunk-key"}


# -- where they are ----------------------------------------------------------------------


def test_temporary_objects_are_where_the_user_wants_them(tmp_path):
    source, target, seen = make(), Counting(), []
    place = tmp_path / "scratch"
    done = omnizarr.rechunk(source, target, temporary=place, progress=lambda **_: Watching(place, seen), **LAYOUT)
    assert done.verified
    assert max(seen) > 10
    assert not temporary_of(target.sets)
    assert not place.exists()


class Watching:
    """A progress bar that counts the files below a directory."""

    def __init__(self, place, seen):
        self.place, self.seen = place, seen

    def update(self, _):
        self.seen.append(sum(path.is_file() for path in self.place.rglob("*")))

    def close(self):
        pass


def test_place_that_others_share_is_left_as_it_was(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    assert omnizarr.rechunk(make(), {}, temporary=tmp_path, **LAYOUT).verified
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_another_place_is_another_conversion(tmp_path):
    source, target = make(), Counting(fail_after=30)
    with pytest.raises(errors.StoreError):
        omnizarr.rechunk(source, target, **LAYOUT)
    target.fail_after = None
    with pytest.raises(errors.NodeExistsError, match="options"):
        omnizarr.rechunk(source, target, resume=True, temporary=tmp_path / "t", **LAYOUT)


@pytest.mark.parametrize("kind", [ZipStore, SQLiteStore])
def test_archive_and_database_do_not_hold_them(tmp_path, kind):
    place = tmp_path / "target.file"
    with kind(place, **({"mode": "w"} if kind is ZipStore else {})) as store:
        assert omnizarr.rechunk(make(), store, **LAYOUT).verified
        np.testing.assert_array_equal(omnizarr.open(store)[...], VALUES)
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith("target.file")] == []
    assert not (tmp_path / "target.file.temporary").exists()


# -- told before ---------------------------------------------------------------------------


def test_command_line_tells_the_passes_in_a_dry_run(tmp_path):
    make(store=LocalStore(tmp_path / "a"))
    asked = [str(tmp_path / "a"), str(tmp_path / "b"), "--chunks", "64,2,2", "--max-memory", "16000", "--dry-run"]
    result = CliRunner().invoke(command, asked)
    assert result.exit_code == 0
    assert "pass 1 of 2: reads 144.0 KiB from the source (32 chunks), writes" in result.output
    assert "temporary objects take 144.0 KiB until the array is complete" in result.output
    assert not (tmp_path / "b").exists()


def test_dry_run_tells_what_is_done():
    source, target = make(), Counting()
    told = omnizarr.rechunk(source, dry_run=True, **LAYOUT).passes
    done = omnizarr.rechunk(source, target, verify=True, **LAYOUT).passes
    assert told == done
    assert told[0].requests_written == sum(temporary_of(target.sets).values())
    assert told[0].bytes_read == told[0].bytes_written == VALUES.nbytes
    assert told[1].requests_written == sum(chunks_of(target.sets).values())
