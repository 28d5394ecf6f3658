"""The structure of HDF5 files, compared with what h5py finds in them."""

import ctypes
import pickle
import zlib
from contextlib import contextmanager
from math import prod
from pathlib import Path

import h5py
import numpy as np
import pytest

from omnizarr.readers.hdf5 import chunks, elements
from omnizarr.readers.hdf5.file import File
from omnizarr.stores import LocalStore
from tests.readers.hdf5 import samples

SHARED = 1 << 1 | 1 << 3 | 1 << 5 | 1 << 11 | 1 << 12  # dataspaces, datatypes, fill values, filters, attributes
CLASSES = {h5py.HardLink: "hard", h5py.SoftLink: "soft", h5py.ExternalLink: "external"}
FILES = [
    path
    for path in sorted((Path(__file__).parents[2] / "netcdf" / "data" / "files").iterdir())
    if path.suffix in {".nc", ".h5"} and path.read_bytes()[:4] == b"\x89HDF"
]


@pytest.fixture(scope="module", params=samples.VERSIONS, ids="-".join)
def sample(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("hdf5") / "x.h5"
    samples.write(path, request.param, userblock_size=512 if request.param[0] == "v108" else 0)
    return path


def opened(path):
    return File(LocalStore(path.parent, read_only=True), path.name)


def library():
    """Return libhdf5 with all its functions."""
    libraries = [*Path(h5py.__file__).parents[1].glob("h5py.libs/libhdf5-*")]
    if not libraries:
        pytest.skip("h5py cannot make such files, and the library that it uses is not beside it")
    return ctypes.CDLL(libraries[0])


@contextmanager
def both(path):
    with h5py.File(path) as theirs:
        yield opened(path), theirs


def objects(file, theirs):
    """Yield each object once: our header, and the object of h5py."""
    seen = set()
    left = [(file.root, theirs["/"])]
    while left:
        header, each = left.pop()
        if header.address in seen:
            continue
        seen.add(header.address)
        yield header, each
        if isinstance(each, h5py.Group):
            links = [name for name in each if isinstance(each.get(name, getlink=True), h5py.HardLink)]
            left += [(file.follow(header, name), each[name]) for name in links]


def check_links(file, theirs):
    for header, each in objects(file, theirs):
        if isinstance(each, h5py.Group):
            links = file.links(header)
            assert list(links) == list(each)
            for name, link in links.items():
                other = each.get(name, getlink=True)
                assert link.kind == CLASSES[type(other)]
                assert (link.target, link.file) == (getattr(other, "path", ""), getattr(other, "filename", ""))


def check_attributes(file, theirs):
    names = file.paths()
    for header, each in objects(file, theirs):
        found = file.attributes(header)
        assert {attribute.name for attribute in found} == set(each.attrs), each.name
        for attribute in found:
            expected = each.attrs[attribute.name]
            if isinstance(expected, h5py.Empty):
                assert attribute.dataspace.shape is None
                continue
            value = elements.values(file.source, attribute.datatype, attribute.raw, lambda at: f"/{names[at]}")
            if attribute.name in {"DIMENSION_LIST", "REFERENCE_LIST"}:
                assert "/" in str(value[0])
                assert theirs[str(value[0][0])].name
                continue
            value = elements.shaped(value, attribute.dataspace.shape)
            assert value.shape == np.shape(expected)
            if isinstance(expected, bytes):
                expected = expected.decode()
            if isinstance(expected, str) or value.dtype == object:
                texts = [item.decode() if isinstance(item, bytes) else item for item in np.ravel(expected).tolist()]
                assert [each.split("\0")[0] for each in value.ravel().tolist()] == texts  # h5py ends texts at a NUL
            else:
                np.testing.assert_array_equal(value, expected)


def elements_of(path, file, dataset, compression):
    """Return the elements of a dataset of numbers, by what the reader says of it alone."""
    dtype, shape = dataset.datatype.dtype(), dataset.shape
    raw, layout = path.read_bytes(), dataset.layout
    fill = np.frombuffer(dataset.fill.raw or bytes(dtype.itemsize), dtype)[0]
    if layout.storage == "compact":
        return np.frombuffer(layout.data, dtype, prod(shape)).reshape(shape)
    if layout.storage == "contiguous":
        if layout.address is None:
            return np.full(shape, fill)
        return np.frombuffer(raw, dtype, prod(shape), layout.address + file.source.base).reshape(shape)
    table = chunks.read(dataset)
    found = np.full([step * count for step, count in zip(layout.chunk_shape, table.grid, strict=True)], fill)
    for number, offset, length in zip(table.numbers, table.offsets.tolist(), table.lengths.tolist(), strict=True):
        data = raw[offset : offset + length]
        place = zip(np.unravel_index(number, table.grid), layout.chunk_shape, strict=True)
        data = zlib.decompress(data) if compression else data
        found[tuple(slice(at * step, at * step + step) for at, step in place)] = np.frombuffer(data, dtype).reshape(
            layout.chunk_shape
        )
    return found[tuple(map(slice, shape))]


def check_datasets(path, file, theirs):
    for header, each in objects(file, theirs):
        if not isinstance(each, h5py.Dataset):
            continue
        dataset = file.dataset(header)
        assert dataset.dataspace.shape == each.shape, each.name
        if each.shape is None:
            continue
        assert dataset.dataspace.most == each.maxshape
        assert (dataset.layout.chunk_shape or None) == each.chunks
        assert len(dataset.filters) == each.id.get_create_plist().get_nfilters()
        if dataset.layout.storage == "chunked":
            assert len(chunks.read(dataset)) == each.id.get_num_chunks()
        dtype = dataset.datatype.dtype()
        if dtype is not None and not each.dtype.hasobject:
            assert dtype == each.dtype, each.name
            if each.compression in {None, "gzip"} and not each.shuffle and not each.fletcher32:
                found = elements_of(path, file, dataset, each.compression)
                np.testing.assert_array_equal(found, each[...], err_msg=each.name)
        elif dataset.datatype.kind == "vlen" and dataset.layout.storage == "contiguous" and dataset.layout.address:
            raw = path.read_bytes()[dataset.layout.address + file.source.base :][: each.size * dataset.datatype.size]
            found = elements.values(file.source, dataset.datatype, raw, str)
            for mine, other in zip(found, each[...].ravel(), strict=True):
                np.testing.assert_array_equal(mine, other.decode() if isinstance(other, bytes) else other)


def test_links_are_those_of_h5py(sample):
    with both(sample) as found:
        check_links(*found)


def test_attributes_are_those_of_h5py(sample):
    with both(sample) as found:
        check_attributes(*found)


def test_datasets_are_those_of_h5py(sample):
    with both(sample) as found:
        check_datasets(sample, *found)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_netcdf_files_are_those_of_h5py(path):
    with both(path) as found:
        check_links(*found)
    with both(path) as found:
        check_attributes(*found)
        check_datasets(path, *found)


def test_all_indexes_of_chunks_are_used(tmp_path):
    found = set()
    for version in (("earliest", "v108"), ("latest", "latest")):
        samples.write(tmp_path / "x.h5", version)
        with both(tmp_path / "x.h5") as (file, theirs):
            found |= {
                file.dataset(header).layout.index
                for header, each in objects(file, theirs)
                if isinstance(each, h5py.Dataset) and each.chunks
            }
    with h5py.File(tmp_path / "y.h5", "w", libver="latest") as other:
        space, created = h5py.h5s.create_simple((6, 4)), h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        created.set_chunk((2, 3))
        created.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        h5py.h5d.create(other.id, b"implicit", h5py.h5t.STD_I32LE, space, created)
        other["implicit"][...] = np.arange(24).reshape(6, 4)
    with both(tmp_path / "y.h5") as (file, theirs):
        check_datasets(tmp_path / "y.h5", file, theirs)
    found.add(file.dataset(file.find("implicit")).layout.index)
    assert found == {"tree", "single", "implicit", "fixed", "extensible", "tree 2"}


def test_filters_that_chunks_skip_are_found(tmp_path):
    path = tmp_path / "x.h5"
    for version in ("earliest", "latest"):
        with h5py.File(path, "w", libver=version) as theirs:
            dataset = theirs.create_dataset("x", (4,), "i4", chunks=(2,), compression="gzip", shuffle=True)
            dataset.id.write_direct_chunk((0,), np.array([1, 2], "i4").tobytes(), filter_mask=0b11)
            dataset[2:] = [3, 4]
        file = opened(path)
        assert chunks.read(file.dataset(file.find("x"))).skipped.tolist() == [3, 0]


def test_chunks_beyond_a_shape_that_shrank_are_left_out(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as theirs:
        theirs.create_dataset("x", data=np.arange(12).reshape(4, 3), chunks=(1, 2), maxshape=(None, 3))
        theirs["x"].resize((2, 3))
    file = opened(path)
    assert chunks.read(file.dataset(file.find("x"))).numbers.tolist() == [0, 1, 2, 3]


def test_shared_messages_are_found(tmp_path):
    path = tmp_path / "x.h5"
    hdf5 = library()
    created = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    assert hdf5.H5Pset_shared_mesg_nindexes(ctypes.c_int64(created.id), 1) == 0
    assert hdf5.H5Pset_shared_mesg_index(ctypes.c_int64(created.id), 0, SHARED, 1) == 0
    file_id = h5py.h5f.create(bytes(path), h5py.h5f.ACC_TRUNC, created)
    with h5py.File(file_id) as theirs:
        for name in "abc":
            theirs.create_dataset(name, data=np.arange(6, dtype="i4").reshape(2, 3), fillvalue=3)
            for number in range(20):
                theirs[name].attrs[f"units {number}"] = "a text that is long enough to be shared"
    with both(path) as found:
        check_attributes(*found)
        check_datasets(path, *found)
    with h5py.File(path) as theirs:
        again = pickle.loads(pickle.dumps(opened(path)))
        check_attributes(again, theirs)
        check_datasets(path, again, theirs)


class ImageConfiguration(ctypes.Structure):
    """``H5AC_cache_image_config_t``."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("generate_image", ctypes.c_bool),
        ("save_resize_status", ctypes.c_bool),
        ("entry_ageout", ctypes.c_int),
    )


def test_metadata_that_are_kept_in_an_image_of_the_cache_are_found(tmp_path):
    path, hdf5 = tmp_path / "x.h5", library()
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_libver_bounds(h5py.h5f.LIBVER_LATEST, h5py.h5f.LIBVER_LATEST)
    configuration = ImageConfiguration(1, True, False, -1)
    assert hdf5.H5Pset_mdc_image_config(ctypes.c_int64(access.id), ctypes.byref(configuration)) == 0
    with h5py.File(h5py.h5f.create(bytes(path), h5py.h5f.ACC_TRUNC, None, access)) as theirs:
        theirs.create_dataset("group/x", data=np.arange(60).reshape(6, 10), chunks=(2, 3), maxshape=(None, None))
        theirs["group"].attrs["text"] = "in the image"
    raw = path.read_bytes()
    assert b"MDCI" in raw
    with both(path) as found:
        check_attributes(*found)
        check_datasets(path, *found)


def test_an_object_has_more_messages_than_its_header_says(tmp_path):
    """As ``tbad_msg_count.h5`` of the HDF5 library; releases of it differ in how wrong the number may be."""
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as theirs:
        group = theirs.create_group("x")
        for number in range(3):
            group.attrs[f"{number}"] = number
    at = opened(path).find("x").address
    raw = bytearray(path.read_bytes())
    raw[at + 2] = 2
    path.write_bytes(raw)
    file = opened(path)
    assert [each.name for each in file.attributes(file.find("x"))] == ["0", "1", "2"]


def test_the_own_path_of_an_object_is_the_first_to_it(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as theirs:
        theirs["a/b"] = [1, 2]
        theirs["c"] = theirs["a/b"]
        theirs["a/circle"] = theirs["/"]
    file = opened(path)
    assert sorted(file.paths().values()) == ["", "a", "c"]
    assert file.find("a/circle/a/circle/c").address == file.find("/a/b").address
    assert file.find("a/d") is None
    assert file.find("c/x") is None


@pytest.mark.parametrize("chunk", [1, 3])
def test_few_chunks_are_found_wherever_they_are(tmp_path, chunk):
    """Pages of an extensible array that hold chunks are marked bit by bit, across the blocks that they are in."""
    path, most = tmp_path / "x.h5", 300_000
    for seed in range(6):
        wanted = np.unique(np.random.default_rng(seed).integers(0, most, 25 + 10 * seed) ** (1 + seed % 2) % most)
        with h5py.File(path, "w", libver="latest") as theirs:
            dataset = theirs.create_dataset("x", (most * chunk,), "u1", chunks=(chunk,), maxshape=(None,))
            for each in wanted.tolist():
                dataset[each * chunk] = 1
        file = opened(path)
        found = file.dataset(file.find("x"))
        assert found.layout.index == "extensible"
        assert chunks.read(found).numbers.tolist() == wanted.tolist()
