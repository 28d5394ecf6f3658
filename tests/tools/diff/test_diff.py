"""`omnizarr.diff`: equal is what NumPy says, whatever the formats; what differs is named."""

import json
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import omnizarr
from omnizarr.errors import NodeNotFoundError, OmnizarrError
from omnizarr.stores import MemoryStore
from omnizarr.tools.streaming import walking
from tests.fakes import FaultyStore
from tests.tools import hierarchies

CORPUS = Path(__file__).parents[2] / "corpus"
CASES = sorted(path.parent for path in CORPUS.glob("*/*/expected.json"))
WIDER = {"float32", "int8", "uint8"}
"""Data types that replace those of fewer bits, which some formats lack."""
DTYPES = ["?", "i1", "u2", ">i4", "u8", "i8", "f2", "<f4", ">f8", "c8", "M8[s]", "m8[ms]", "S3", "U2"]


def array(values, store=None, **options):
    values = np.asarray(values)
    made = omnizarr.create_array({} if store is None else store, shape=values.shape, dtype=values.dtype, **options)
    made[...] = values
    return made


def kinds(found):
    return [(each.path, each.kind, each.name) for each in found]


def is_equal(left, right):
    """Return where elements are equal, as the manual says, by plain NumPy."""
    if left.dtype.kind == "c":
        return is_equal(left.real, right.real) & is_equal(left.imag, right.imag)
    if left.dtype.kind in "fmM":
        is_missing = np.isnan if left.dtype.kind == "f" else np.isnat
        return (left == right) | (is_missing(left) & is_missing(right))
    return left == right


@st.composite
def pairs(draw):
    """Return two arrays of one shape and type, of which few elements differ."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, max_side=9))
    left = draw(hnp.arrays(dtype, shape))
    right = left.copy()
    for place in draw(st.lists(st.integers(0, max(left.size - 1, 0)), max_size=3)):
        right.reshape(-1)[place] = draw(hnp.from_dtype(dtype))
    return left, right


def lengths(draw, shape):
    return tuple(draw(st.integers(1, max(length, 1))) for length in shape)


@settings(deadline=None)
@given(pairs(), st.data())
def test_differing_elements_are_those_of_numpy(pair, data):
    left, right = pair
    one = array(left, chunks=lengths(data.draw, left.shape), zarr_format=data.draw(st.sampled_from([2, 3])))
    other = array(right, chunks=lengths(data.draw, left.shape), fill_value=data.draw(hnp.from_dtype(left.dtype)))
    found = omnizarr.diff(one, other, max_memory=data.draw(st.sampled_from([None, 2 * 9**3 * left.itemsize])))
    differs = ~is_equal(left, right)
    assert not found.problems
    if not differs.any():
        assert found.equal
        return
    (difference,) = found
    assert difference.kind == "values"
    assert difference.values.count == np.count_nonzero(differs)
    assert difference.values.first == tuple(int(at) for at in np.argwhere(differs)[0])
    assert repr(difference.values.left) == repr(left.astype(left.dtype.newbyteorder("="))[difference.values.first])


@settings(deadline=None)
@given(st.data())
def test_tolerance_is_that_of_numpy(data):
    shape = (7,)
    finite = st.floats(-100, 100, width=32) | st.just(float("nan")) | st.just(float("inf"))
    left, right = (data.draw(hnp.arrays("f4", shape, elements=finite)) for _ in range(2))
    rtol, atol = data.draw(st.floats(0, 1)), data.draw(st.floats(0, 10))
    found = omnizarr.diff(array(left, chunks=2), array(right, chunks=3), rtol=rtol, atol=atol)
    expected = ~np.isclose(left.astype("f8"), right.astype("f8"), rtol=rtol, atol=atol, equal_nan=True)
    assert (found[0].values.count if found else 0) == np.count_nonzero(expected)


@pytest.mark.parametrize(
    ("left", "right", "largest"),
    [
        (np.array([0, 200], "u1"), np.array([255, 0], "u1"), 255),
        (np.array([-(2**63)]), np.array([2**63 - 1]), 2**64 - 1),
        (np.array([1.5, 2.0]), np.array([1.5, -2.0]), 4.0),
        (np.array([1 + 1j]), np.array([4 + 5j]), 5.0),
        (np.array([np.nan]), np.array([1.0]), None),
        (np.array([0, 5], "M8[s]"), np.array([60, 5], "M8[s]"), np.timedelta64(60, "s")),
        (np.array([True]), np.array([False]), None),
        (np.array(["a"], "T"), np.array(["b"], "T"), None),
    ],
    ids=["bytes", "integers", "floats", "complex", "nan", "times", "bool", "text"],
)
def test_largest_difference_is_exact(left, right, largest):
    assert omnizarr.diff(array(left), array(right))[0].values.largest == largest


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (np.array([0.0]), np.array([-0.0])),
        (hierarchies.nan_with_payload("f4"), np.array([np.nan, 0, np.nan], "f4")),
        (np.array([complex(np.nan, 0.0)]), np.array([complex(-np.nan, -0.0)])),
        (np.array(["NaT"], "M8[s]"), np.array(["NaT"], "M8[s]")),
        (np.array([(1, np.nan)], "i2,f4"), np.array([(1, np.nan)], "i2,f4")),
    ],
    ids=["zero", "payload", "complex", "nat", "records"],
)
def test_elements_that_mean_the_same_are_equal(left, right):
    assert omnizarr.diff(array(left), array(right)).equal


def test_part_of_a_complex_number_counts():
    assert not omnizarr.diff(array([complex(np.nan, 1)]), array([complex(np.nan, 2)])).equal


def test_numbers_of_other_types_are_compared_as_numbers():
    found = omnizarr.diff(array(np.array([1, 2], "i2")), array(np.array([1.0, 2.5], "f8")))
    assert kinds(found) == [("", "data_type", ""), ("", "values", "")]
    assert found[1].values.largest == 0.5


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
@pytest.mark.parametrize("zarr_format", [2, 3, "3-draft2020"])
def test_what_is_converted_without_loss_is_equal_and_has_the_same_digest(case, zarr_format, tmp_path):
    source = tmp_path / "source"
    if json.loads((case / "expected.json").read_text(encoding="utf-8"))["store"] == "zip":
        source = case / "store.zip"
    else:
        with zipfile.ZipFile(case / "store.zip") as archive:
            archive.extractall(source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            done = omnizarr.convert(source, tmp_path / "target", zarr_format=zarr_format, allow_pickle=True)
            found = omnizarr.diff(source, tmp_path / "target", allow_pickle=True)
        except (NodeNotFoundError, OmnizarrError) as error:
            pytest.skip(f"cannot be converted as a whole: {error.message}")
        if not found.problems:
            both = [omnizarr.digest(place, allow_pickle=True) for place in (source, tmp_path / "target")]
            assert (both[0] == both[1]) is found.equal
    if done.is_lossless and not done.unreadable:
        assert not found.problems
        assert [each for each in found if each.right not in WIDER] == []


@pytest.mark.parametrize("zarr_format", hierarchies.FORMATS)
def test_every_type_and_codec_is_equal_to_itself(zarr_format):
    store = {}
    made = hierarchies.make(store, zarr_format)
    found = omnizarr.diff(store, dict(store))
    assert found.equal
    assert found.elements == sum(values.size for values in made.values())
    changed = dict(store)
    for path, values in made.items():
        if path == "fills/minus_zero":
            continue  # two zeros
        if values.size and repr(values.reshape(-1)[0]) != repr(values.reshape(-1)[-1]):
            omnizarr.open_array(changed, path=path, mode="r+")[(-1,) * values.ndim] = values.reshape(-1)[0]
            (found,) = omnizarr.diff(store, changed, left_path=path, right_path=path)
            assert (found.values.count, found.values.first) == (1, tuple(length - 1 for length in values.shape))


class TestMeaning:
    def test_nodes_of_one_side_are_named(self):
        left, right = omnizarr.create_group({}), omnizarr.create_group({})
        left["a/x"] = [1]
        right["a/y"] = [1]
        right.create_group("b")
        found = omnizarr.diff(left, right)
        assert [(each.path, each.only, each.left or each.right) for each in found] == [
            ("a/x", "left", "array"),
            ("a/y", "right", "array"),
            ("b", "right", "group"),
        ]

    def test_kind_shape_and_attributes(self):
        left, right = omnizarr.create_group({}, attributes={"a": 1, "b": None, "same": [1]}), omnizarr.create_group({})
        right.attrs.put({"a": 1.0, "c": None, "same": [1]})
        left["x"] = [1, 2]
        right["x"] = [1, 2, 3]
        left.create_group("y")
        right["y"] = [1]
        found = omnizarr.diff(left, right)
        assert kinds(found) == [
            ("", "attribute", "a"),
            ("", "attribute", "b"),
            ("", "attribute", "c"),
            ("x", "shape", ""),
            ("y", "kind", ""),
        ]
        assert [each.only for each in found][:3] == ["", "left", "right"]

    def test_dimension_names_are_the_same_in_all_formats(self):
        left = array([1], zarr_format=2, attributes={"_ARRAY_DIMENSIONS": ["x"]}, fill_value=None)
        assert omnizarr.diff(left, array([1], dimension_names=["x"])).equal
        assert kinds(omnizarr.diff(left, array([1], dimension_names=["y"]))) == [("", "dimension_names", "")]
        assert omnizarr.diff(array([1]), array([1], dimension_names=[None])).equal

    def test_storage_counts_only_if_asked_for(self):
        left = array(np.arange(6), chunks=2, zarr_format=2, compressors=None)
        right = array(np.arange(6), chunks=3, fill_value=5)
        found = omnizarr.diff(left, right)
        assert found.equal
        names = [each.name for each in found.storage]
        assert names == ["format", "chunk_grid", "chunk_key_encoding", "codecs", "fill_value"]
        assert [each.name for each in omnizarr.diff(left, right, storage=True)] == names

    def test_without_values_no_chunk_is_read(self, monkeypatch):
        monkeypatch.setattr("omnizarr.tools.streaming.walking.read", lambda *_: pytest.fail("a chunk was read"))
        assert omnizarr.diff(array(np.arange(100)), array(np.zeros(100, int)), values=False).equal


class TestReading:
    def test_equal_chunks_are_not_decoded(self, monkeypatch):
        left, right = {}, {}
        array(np.arange(100.0), store=left, chunks=10, compressors={"id": "zstd", "level": 1})
        array(np.arange(100.0), store=right, chunks=10, compressors={"id": "zstd", "level": 1})
        with monkeypatch.context() as patched:
            patched.setattr("omnizarr.tools.streaming.walking.read", lambda *_: pytest.fail("a chunk was decoded"))
            assert omnizarr.diff(left, right).equal

    def test_only_chunks_that_differ_are_decoded(self, monkeypatch):
        boxes = []
        read = walking.read
        monkeypatch.setattr(
            walking, "read", lambda binding, box, n, **more: boxes.append(box) or read(binding, box, n, **more)
        )
        values = np.arange(100.0)
        left = array(values, chunks=10)
        values[57] = -1
        found = omnizarr.diff(left, array(values, chunks=10))
        assert found[0].values.first == (57,)
        assert boxes == [(slice(50, 60),)] * 2

    def test_missing_chunks_hold_the_fill_value(self):
        left = omnizarr.create_array({}, shape=(10**9, 10**9), chunks=(10, 10), dtype="i4", fill_value=1)
        right = omnizarr.create_array({}, shape=(10**9, 10**9), chunks=(10, 10), dtype="i4", fill_value=2)
        left[:10, :10] = right[:10, :10] = 7
        (found,) = omnizarr.diff(left, right)
        assert (found.values.count, found.values.first) == (10**18 - 100, (0, 10))
        assert (found.values.left, found.values.right, found.values.largest) == (1, 2, 1)

    @pytest.mark.parametrize(("one", "other", "equal"), [(0, 0, True), (0, 1, False), (np.nan, np.nan, True)])
    def test_arrays_without_chunks_in_remote_stores_hold_their_fill_values(self, one, other, equal):
        stores = MemoryStore(), MemoryStore()
        for store, fill in zip(stores, (one, other), strict=True):
            root = omnizarr.create_group(store)
            for name in "ab":
                root.create_array(name, shape=(3, 2), dtype="f4", fill_value=fill)
        found = omnizarr.diff(*(FaultyStore(store, concurrency=8) for store in stores))
        assert found.equal == equal
        assert [each.values.count for each in found.differences if each.values] == ([] if equal else [6, 6])

    def test_written_fill_values_equal_missing_chunks(self):
        left = omnizarr.create_array({}, shape=100, chunks=10, dtype="i4", fill_value=3, write_empty_chunks=True)
        left[...] = 3
        right = omnizarr.create_array({}, shape=100, chunks=10, dtype="i4", fill_value=3)
        assert omnizarr.diff(left, right).equal
        assert omnizarr.diff(right, left).equal

    def test_chunk_that_cannot_be_read_is_a_problem_not_a_difference(self):
        store = {}
        array(np.arange(100.0), store=store, chunks=10)
        store["c/3"] = store["c/3"][:5]
        found = omnizarr.diff(store, array(np.arange(100.0), chunks=20))
        assert (len(found), found.equal) == (0, False)
        assert "c/3" in found.problems[0][1]

    def test_memory_is_bounded(self):
        with pytest.raises(ValueError, match="max_memory=1000"):
            omnizarr.diff(array(np.arange(500.0), chunks=500), array(np.arange(500.0), chunks=50), max_memory=1000)

    def test_negative_tolerance_is_refused(self):
        with pytest.raises(ValueError, match="rtol=-1"):
            omnizarr.diff(array([1]), array([1]), rtol=-1)

    def test_nothing_there(self, tmp_path):
        with pytest.raises(NodeNotFoundError):
            omnizarr.diff(tmp_path / "no", array([1]))

    def test_progress_reaches_its_total(self):
        bar = Bar()
        omnizarr.diff(array(np.arange(1000.0), chunks=10), array(np.arange(1000.0), chunks=30), progress=bar)
        assert (bar.total, bar.done, bar.is_closed) == (8000, 8000, True)


class Bar:
    """What ``tqdm.tqdm`` is called as."""

    def __init__(self):
        self.done, self.is_closed = 0, False

    def __call__(self, total, **_):
        self.total = total
        return self

    def update(self, n):
        self.done += n

    def close(self):
        self.is_closed = True


def test_report_is_strict_json_and_prints():
    found = omnizarr.diff(array([np.nan, 1]), array([np.inf, 1], attributes={"a": b"".decode()}))
    assert json.loads(found.to_json())["differences"][1]["values"]["right"] == "Infinity"
    assert str(found).splitlines()[-1] == "2 differences · 1 node, 2 elements compared"
    assert bool(found)
    assert not omnizarr.diff(array([1]), array([1]))
