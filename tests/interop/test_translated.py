"""zarr-python and TensorStore read formats that they do not know, through a view."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnizarr
from omnizarr.errors import NotRepresentableError
from omnizarr.netcdf import Dataset
from omnizarr.storage import LocalStore, MemoryStore, TranslatedStore
from omnizarr.web.keys import Keys
from omnizarr.web.serving import running
from tests.corpus.test_corpus import CORPUS, bits, document_of, expected_array, unpacked  # noqa: F401 - a fixture

zarr = pytest.importorskip("zarr", reason="zarr-python is not installed")

from omnizarr.interop.zarr_python import to_zarr_python  # noqa: E402

# zarr-python warns of types and of consolidated metadata that Zarr v3 does not define.
pytestmark = pytest.mark.filterwarnings("ignore")

WRITERS = ("zarr0", "zarr1", "draft_zarr", "draft_gdal", "xtensor", "zarrita")
KNOWN = {
    "blosc_snappy": "the Blosc of numcodecs has no snappy; chunks are passed on unchanged",
    "zstd_1_1/zstd": "the Blosc of numcodecs does not decode what zstd was in 2016; chunks are passed on unchanged",
    "filters/quantize": "zarr-python forgets the shape of what it decodes",
    "objects/categorize": "zarr-python does not know the codec",
    "structured_nested": "zarr-python does not know fixed_size_list, which is proposed",
}
"""What zarr-python does not read, though Zarr v3 can say it."""


def marks_of(name):
    is_stored = name.endswith("level0")  # and not compressed
    reasons = [reason for part, reason in KNOWN.items() if part in name and not is_stored]
    return [pytest.mark.xfail(strict=True, reason=reason) for reason in reasons]


NODES = [
    pytest.param(
        path.parent,
        node,
        expected,
        marks=marks_of(f"{path.parent.relative_to(CORPUS).as_posix()}/{node}"),
        id=f"{path.parent.relative_to(CORPUS).as_posix()}/{node}",
    )
    for writer in WRITERS
    for path in sorted((CORPUS / writer).glob("*/expected.json"))
    for node, expected in json.loads(path.read_text(encoding="utf-8"))["nodes"].items()
    if expected["node_type"] == "array" and "open" not in expected and document_of(path.parent).get("open") != "root"
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("case", "path", "expected"), NODES)
def test_zarr_python_reads_old_arrays_of_others(case, path, expected, unpacked):  # noqa: F811
    values, fill_value = expected_array(case, path, expected)
    array = omnizarr.open_array(unpacked(case), path=path, mode="r")
    try:
        theirs = to_zarr_python(array)
    except NotRepresentableError:
        assert omnizarr.convert(array, dry_run=True).losses
        return
    found = theirs[...]
    assert theirs.shape == values.shape
    if values.dtype.kind in "OT":
        assert np.asarray(found).ravel().tolist() == values.ravel().tolist()
        return
    # Elements may have another byte order in memory, and arrays without dimensions are scalars.
    assert bits(np.asarray(found).astype(values.dtype)) == bits(values)
    assert (fill_value is None) or bits(np.asarray(theirs.fill_value).astype(values.dtype)) == bits(fill_value)


def old(store, zarr_format):
    omnizarr.create_array(store, name="ocean/temp", data=np.arange(6.0).reshape(2, 3), zarr_format=zarr_format)
    return omnizarr.open(store)


@pytest.mark.parametrize("zarr_format", [1, "3-draft2019", "3-draft2020"])
def test_group_that_zarr_python_does_not_know_is_a_group_that_may_not_be_written(zarr_format):
    group = old(MemoryStore(), zarr_format)
    theirs = to_zarr_python(group)
    assert isinstance(theirs, zarr.Group)
    assert (theirs.metadata.zarr_format, list(theirs), list(theirs["ocean"])) == (3, ["ocean"], ["temp"])
    np.testing.assert_array_equal(theirs["ocean/temp"][1, ::2], [3, 5])
    with pytest.raises(ValueError, match="read-only"):
        theirs["ocean/temp"][0] = 1
    with pytest.raises(ValueError, match="read-only"):
        theirs.create_array("new", shape=(1,), dtype="i1")
    np.testing.assert_array_equal(group["ocean/temp"][0], [0, 1, 2])


def test_group_that_would_lose_something_is_refused():
    group = old(MemoryStore(), "3-draft2020")
    group.store.set("meta/root/ocean/broken.array.json", b"{")
    with pytest.raises(NotRepresentableError, match="broken"):
        to_zarr_python(group)
    theirs = zarr.open_group(to_zarr_python(TranslatedStore(group)), mode="r")
    np.testing.assert_array_equal(theirs["ocean/temp"][0], [0, 1, 2])


def test_nczarr_is_read_with_its_dimensions(tmp_path):
    with Dataset(tmp_path / "tides.zarr", "w") as dataset:
        dataset.createDimension("time", 3)
        dataset.createVariable("level", "i2", ("time",), zlib=True)[:] = [1, 2, 3]
    array = zarr.open_group(to_zarr_python(TranslatedStore(tmp_path / "tides.zarr")), mode="r")["level"]
    assert array.metadata.dimension_names == ("time",)
    np.testing.assert_array_equal(array[:], [1, 2, 3])


def test_references_of_kerchunk_are_read(tmp_path):
    data = np.arange(12, dtype=">i4")
    (tmp_path / "data.bin").write_bytes(b"head" + data.tobytes())
    array = {"zarr_format": 2, "shape": [12], "chunks": [6], "dtype": ">i4", "compressor": None, "filters": None}
    references = {"a/.zarray": json.dumps({**array, "order": "C", "fill_value": 0})}
    references |= {f"a/{at}": [str(tmp_path / "data.bin"), 4 + 24 * at, 24] for at in range(2)}
    (tmp_path / "refs.json").write_text(json.dumps({".zgroup": '{"zarr_format": 2}', **references}))
    view = TranslatedStore(tmp_path / "refs.json", storage_options={"allow_local": True})
    np.testing.assert_array_equal(zarr.open_array(to_zarr_python(view), path="a", mode="r")[3:9], data[3:9])


@pytest.mark.parametrize("zarr_format", [1, 2, 3, "3-draft2020"])
@pytest.mark.parametrize(("target", "driver"), [(2, "zarr"), (3, "zarr3")])
def test_tensorstore_reads_what_is_kept_of_a_view(zarr_format, target, driver, tmp_path):
    tensorstore = pytest.importorskip("tensorstore", reason="TensorStore is not installed")
    group = old(MemoryStore(), zarr_format)
    omnizarr.copy_store(TranslatedStore(group, target), LocalStore(tmp_path))
    spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{tmp_path}/ocean/temp/"}}
    found = tensorstore.open(spec, open=True).result().read().result()
    np.testing.assert_array_equal(found, group["ocean/temp"][...])


@pytest.mark.parametrize("zarr_format", [1, "3-draft2020"])
def test_tensorstore_reads_a_view_that_is_served(zarr_format):
    tensorstore = pytest.importorskip("tensorstore", reason="TensorStore is not installed")
    group = old(MemoryStore(), zarr_format)
    with running(Keys(TranslatedStore(group))) as url:
        spec = {"driver": "zarr3", "kvstore": {"driver": "http", "base_url": url, "path": "/ocean/temp/"}}
        found = tensorstore.open(spec, open=True).result().read().result()
    np.testing.assert_array_equal(found, group["ocean/temp"][...])


@given(
    st.sampled_from([1, 2, 3, "3-draft2019", "3-draft2020"]),
    st.sampled_from([2, 3]),
    st.sampled_from(["<i2", ">i4", "<f8", ">f4", "|b1", "|u1"]),
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 5)), min_size=1, max_size=3),
    st.sampled_from([None, {"id": "zlib", "level": 1}, {"id": "blosc", "cname": "lz4", "clevel": 1}]),
    st.data(),
)
def test_zarr_python_reads_any_array_as_we_do(zarr_format, target, dtype, axes, compressor, data):
    shape, chunks = zip(*axes, strict=True)
    keywords = {"shape": shape, "chunks": chunks, "dtype": dtype, "compressors": compressor, "fill_value": 1}
    array = omnizarr.create_array(MemoryStore(), zarr_format=zarr_format, **keywords)
    part = tuple(slice(data.draw(st.integers(0, length)), length) for length in shape)
    array[part] = (np.arange(np.prod(shape)) % 100).reshape(shape)[part].astype(dtype)
    theirs = zarr.open_array(to_zarr_python(TranslatedStore(array, target)), mode="r")
    assert theirs.metadata.zarr_format == target
    np.testing.assert_array_equal(theirs[...], array[...])
    np.testing.assert_array_equal(theirs[part], array[part])
