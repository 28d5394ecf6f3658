"""What people type from memory: idioms of zarr-python, h5py, netCDF4-python, xarray, NumPy, TensorStore, fsspec.

Each row is a program as its users type it, with `zarr` or `nc` for omnizarr, and the value that its last line has in
the library of the habit; or, if omnizarr does not do that, what the error says that you type instead. Before it, these
names exist: `X`, `z` (an array with the values of `X`, in chunks of (4, 3)), `g` (a consolidated group with ``a/b`` and
``t``), its `path`, and `np`.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import omnizarr
import omnizarr.netcdf
from omnizarr.nodes import habits

X = np.arange(60.0).reshape(10, 6)


class Idiom(NamedTuple):
    whose: str
    typed: str
    gives: object
    instead: str | None = None
    """What the error says; for those that do not work."""


Z3, Z2, H5, NC, XR, NP, TS, RS, FS = (
    "zarr-python 3", "zarr-python 2", "h5py", "netCDF4-python", "xarray", "NumPy", "TensorStore", "zarrs", "fsspec",
)  # fmt: skip

# fmt: off
IDIOMS = [
    # -- zarr-python 3
    Idiom(Z3, "z.info.__class__.__name__", "ArrayInfo"),
    Idiom(Z3, "'No. bytes' in str(z.info_complete())", True),
    Idiom(Z3, "z[:]", X),
    Idiom(Z3, "z[2:5, ::2]", X[2:5, ::2]),
    Idiom(Z3, "z[:] = 42\nz[0, 0]", 42.0),
    Idiom(Z3, "g['a/b'][:]", np.arange(4)),
    Idiom(Z3, "g['a']['b'][:]", np.arange(4)),
    Idiom(Z3, "str(g.tree()).splitlines()[0]", "/"),
    Idiom(Z3, "zarr.open_consolidated(path)['t'].shape", (3,)),
    Idiom(Z3, "zarr.consolidate_metadata(path).metadata.consolidated_metadata is not None", True),
    Idiom(Z3, "z.nbytes_stored() > 0", True),
    Idiom(Z3, "z.nchunks, z.nchunks_initialized, z.cdata_shape", (6, 6, (3, 2))),
    Idiom(Z3, "z.chunks, z.shards", ((4, 3), None)),
    Idiom(Z3, "z.attrs.update({'units': 'K', 'n': 3})\ndict(z.attrs)", {"units": "K", "n": 3}),
    Idiom(Z3, "z.attrs['foo'] = 'bar'\nz.attrs.asdict()", {"foo": "bar"}),
    Idiom(Z3, "z.attrs.put({'only': 1})\nz.attrs.asdict()", {"only": 1}),
    Idiom(Z3, "z.update_attributes({'a': 1}).attrs['a']", 1),
    Idiom(Z3, "z.append(X[:, :2], axis=1)", (10, 8)),
    Idiom(Z3, "z.append(np.zeros((2, 6)))\nz.shape", (12, 6)),
    Idiom(Z3, "z.resize((20, 6))\nz.shape", (20, 6)),
    Idiom(Z3, "z.oindex[[0, 2], [1, 3]]", X[np.ix_([0, 2], [1, 3])]),
    Idiom(Z3, "z.vindex[[0, 2], [1, 3]]", X[[0, 2], [1, 3]]),
    Idiom(Z3, "z.blocks[1, 0]", X[4:8, :3]),
    Idiom(Z3, "z.get_orthogonal_selection(([0, 2], slice(None)))", X[[0, 2]]),
    Idiom(Z3, "z.set_basic_selection((0, slice(None)), 7)\nz[0]", np.full(6, 7.0)),
    Idiom(Z3, "z.get_mask_selection(X > 50)", X[X > 50]),
    Idiom(Z3, "zarr.create_array(store=path + '/n.zarr', shape=(4, 4), chunks=(2, 2), dtype='int32').dtype", np.dtype("int32")),
    Idiom(Z3, "zarr.create_array('memory://idiom', shape=(4,), shards=(4,), chunks=(2,), dtype='f4', overwrite=True).shards", (4,)),
    Idiom(Z3, "zarr.zeros((3, 2), chunks=(2, 2), dtype='i4')[:]", np.zeros((3, 2), "i4")),
    Idiom(Z3, "zarr.ones(shape=(3,))[:]", np.ones(3)),
    Idiom(Z3, "zarr.full(shape=(3,), fill_value=7)[:]", np.full(3, 7.0)),
    Idiom(Z3, "zarr.array([1, 2, 3])[:]", np.array([1, 2, 3])),
    Idiom(Z3, "zarr.zeros_like(z).chunks", (4, 3)),
    Idiom(Z3, "zarr.open(path, mode='r')['t'][0]", 1.5),
    Idiom(Z3, "zarr.open_array(path + '/t', mode='r')[:]", np.array([1.5, 2.5, 3.5])),
    Idiom(Z3, "zarr.open_group(path, mode='r').read_only", True),
    Idiom(Z3, "zarr.open_group(store=path, path='a', mode='r+').name", "/a"),
    Idiom(Z3, "zarr.group().store.__class__.__name__", "MemoryStore"),
    Idiom(Z3, "zarr.group(path + '/n.zarr', zarr_format=2).metadata.zarr_format", 2),
    Idiom(Z3, "zarr.save('a.zarr', a=np.arange(3), b=np.ones(2))\nsorted(zarr.load('a.zarr'))", ["a", "b"]),
    Idiom(Z3, "zarr.save('a.zarr', X)\nzarr.load('a.zarr')", X),
    Idiom(Z3, "zarr.save_group('a.zarr', X, y=X)\nsorted(zarr.open('a.zarr', mode='r').array_keys())", ["arr_0", "y"]),
    Idiom(Z3, "g.create_group('new/deep').path", "new/deep"),
    Idiom(Z3, "g.require_group('a').path", "a"),
    Idiom(Z3, "g.create_array('n', shape=(2,), dtype='i2')[:]", np.zeros(2, "i2")),
    Idiom(Z3, "g.create_array('n', data=X)[:]", X),
    Idiom(Z3, "g.require_array('t', shape=(3,), dtype='f8')[:]", np.array([1.5, 2.5, 3.5])),
    Idiom(Z3, "dict(g.members()).keys()", {"a", "t"}),
    Idiom(Z3, "sorted(k for k, _ in g.arrays()), sorted(g.group_keys())", (["t"], ["a"])),
    Idiom(Z3, "g.nmembers(max_depth=None)", 3),
    Idiom(Z3, "[name for name in g]", ["a", "t"]),
    Idiom(Z3, "z.metadata.to_dict()['zarr_format']", 3),
    Idiom(Z3, "z.compressors[0].__class__.__name__", "ZstdCodec"),
    Idiom(Z3, "zarr.create_array({}, shape=4, dtype='f4', compressors=zarr.codecs.BloscCodec(cname='zstd', clevel=3, shuffle=zarr.codecs.BloscShuffle.bitshuffle)).compressors[0].cname.value", "zstd"),
    Idiom(Z3, "zarr.create_array({}, shape=4, dtype='f4', compressors=None).compressors", ()),
    Idiom(Z3, "zarr.config.get('async.concurrency', None)", None),
    Idiom(Z3, "with zarr.config.set({'array.order': 'F'}):\n    order = zarr.zeros((2, 2)).order\norder", "F"),
    Idiom(Z3, "zarr.print_debug_info() is None", True),
    Idiom(Z3, "store = zarr.storage.ZipStore('x.zip', mode='w')\nzarr.create_array(store, data=X)\nstore.close()\nzarr.open_array(zarr.storage.ZipStore('x.zip', mode='r'))[:]", X),
    Idiom(Z3, "zarr.create_array(zarr.storage.LocalStore('l.zarr'), data=X)\nzarr.open('l.zarr')[:]", X),
    Idiom(Z3, "zarr.storage.MemoryStore().read_only", False),
    Idiom(Z3, "z.store_path.path, z.path, z.name, z.basename", ("", "", "/", "")),
    Idiom(Z3, "z.fill_value", 0.0),
    Idiom(Z3, "sorted(path for path, _ in zarr.create_hierarchy(store=zarr.storage.MemoryStore(), nodes={'a/b': z.metadata}))", ["", "a", "a/b"]),
    # -- zarr-python 2
    Idiom(Z2, "zarr.open(path, 'r')['t'][0]", 1.5),
    Idiom(Z2, "zarr.open_group(path, 'r')['t'][0]", 1.5),
    Idiom(Z2, "zarr.open_array('n.zarr', 'w', shape=(3,), dtype='i4').shape", (3,)),
    Idiom(Z2, "zarr.open('n.zarr', 'w', shape=(3,), dtype='i4').shape", (3,)),
    Idiom(Z2, "zarr.DirectoryStore('d.zarr').__class__.__name__", "LocalStore"),
    Idiom(Z2, "zarr.ZipStore('d.zip', mode='w').__class__.__name__", "ZipStore"),
    Idiom(Z2, "with zarr.ZipStore('d.zip', mode='w') as store:\n    root = zarr.group(store=store)\n    root['x'] = X\nzarr.open('d.zip', mode='r')['x'][:]", X),
    Idiom(Z2, "zarr.group(store=zarr.MemoryStore()).create_dataset('x', shape=(3,), dtype='f8', chunks=(2,)).chunks", (2,)),
    Idiom(Z2, "g.require_dataset('t', shape=(3,), dtype='f8')[:]", np.array([1.5, 2.5, 3.5])),
    Idiom(Z2, "g.visit(print) is None", True),
    Idiom(Z2, "seen = []\ng.visititems(lambda name, node: seen.append(name))\nsorted(seen)", ["a", "a/b", "t"]),
    Idiom(Z2, "seen = []\ng.visitkeys(seen.append)\nsorted(seen)", ["a", "a/b", "t"]),
    Idiom(Z2, "seen = []\ng.visitvalues(lambda node: seen.append(node.path))\nsorted(seen)", ["a", "a/b", "t"]),
    Idiom(Z2, "z.nbytes_stored > 0", True, "not supported between instances of 'method'"),
    Idiom(Z2, "z.compressor.__class__.__name__", "ZstdCodec"),
    Idiom(Z2, "from numcodecs import Blosc\nzarr.open_array('v2.zarr', mode='w', shape=4, dtype='i4', compressor=Blosc('lz4'), zarr_format=2)[:]", np.zeros(4, "i4")),
    Idiom(Z2, "zarr.zeros((4, 4), chunks=True).ndim", 2),
    Idiom(Z2, "zarr.copy(g['t'], g, name='t2')\ng['t2'][:]", np.array([1.5, 2.5, 3.5])),
    Idiom(Z2, "zarr.copy_store(g.store, other := {})\nlen(other) > 3", True),
    Idiom(Z2, "zarr.tree(g).__class__.__name__", "Tree"),
    Idiom(Z2, "z.hexdigest() == z.hexdigest() and len(z.hexdigest())", 40, "omnizarr.digest(array)"),
    Idiom(Z2, "z.view()[:]", X, "array.astype(dtype) or"),
    Idiom(Z2, "z.get_basic_selection((0, 1))", 1.0),
    Idiom(Z2, "z.set_coordinate_selection(([0, 1], [1, 2]), [5, 6])\nz[1, 2]", 6.0),
    Idiom(Z2, "z.islice(2, 4).__class__.__name__ and [row[0] for row in z.islice(2, 4)]", [12.0, 18.0]),
    Idiom(Z2, "g.array('n', X).shape", (10, 6)),
    Idiom(Z2, "g.move('t', 'moved')\n'moved' in g, 't' in g", (True, False)),
    Idiom(Z2, "z.write_empty_chunks", False, "array.config"),
    Idiom(Z2, "z.is_view", False, "array.config"),
    Idiom(Z2, "z.initialized", 6, "array.nchunks_initialized"),
    # -- h5py
    Idiom(H5, "f = zarr.open_group('n.zarr', mode='w')\nd = f.create_dataset('x', data=X, compression='gzip', compression_opts=4)\nd[:]", X),
    Idiom(H5, "g.create_dataset('x', shape=(3, 4), dtype='f4', chunks=True)[:]", np.zeros((3, 4), "f4")),
    Idiom(H5, "g.create_dataset('x', (3, 4), 'f4').shape", (3, 4)),
    Idiom(H5, "g.create_dataset('x', data=X, maxshape=(None, 6)).shape", (10, 6)),
    Idiom(H5, "g.create_dataset('x', data=X, fillvalue=-1).fill_value", -1.0),
    Idiom(H5, "with zarr.open_group(path, mode='r') as f:\n    v = f['t'][()]\nv", np.array([1.5, 2.5, 3.5])),
    Idiom(H5, "f = zarr.open_group('n.zarr', mode='a')\nf['x'] = X\nf.close()\nzarr.open_group('n.zarr', mode='r')['x'][()]", X),
    Idiom(H5, "list(g.keys())", ["a", "t"]),
    Idiom(H5, "[v.name for v in g.values()]", ["/a", "/t"]),
    Idiom(H5, "[(k, v.name) for k, v in g.items()]", [("a", "/a"), ("t", "/t")]),
    Idiom(H5, "'a/b' in g", True),
    Idiom(H5, "len(g)", 2),
    Idiom(H5, "del g['t']\n't' in g", False),
    Idiom(H5, "g.get('nothing')", None),
    Idiom(H5, "g['/a/b'][:]", np.arange(4)),
    Idiom(H5, "g['a']['/t'][0]", 1.5, "there is no node here"),
    Idiom(H5, "g['a/b'].parent.name", "/a", "omnizarr.open_group(array.store)"),
    Idiom(H5, "g.attrs['title'] = 'x'\nlist(g.attrs.items())", [("title", "x")]),
    Idiom(H5, "z.attrs.create('n', np.arange(3))\nz.attrs['n']", [0, 1, 2]),
    Idiom(H5, "z.attrs.get('nothing', 5)", 5),
    Idiom(H5, "z.resize(20, axis=0)\nz.shape", (20, 6)),
    Idiom(H5, "z.len()", 10, "len(array)"),
    Idiom(H5, "z.fillvalue", 0.0, "array.fill_value"),
    Idiom(H5, "z.astype('i4')[0]", np.arange(6, dtype="i4")),
    Idiom(H5, "out = np.empty((2, 6))\nz.read_direct(out, np.s_[2:4])\nout", X[2:4]),
    Idiom(H5, "z.write_direct(np.ones((2, 6)), dest_sel=np.s_[2:4])\nz[3, 3]", 1.0),
    Idiom(H5, "[s for s in z.iter_chunks()][:2]", [(slice(0, 4), slice(0, 3)), (slice(0, 4), slice(3, 6))]),
    Idiom(H5, "g.flush() is None", True, "group.close()"),
    Idiom(H5, "g.filename == path", True),
    Idiom(H5, "g.file.name", "/"),
    Idiom(H5, "g.copy('t', 'c')\ng['c'][0]", 1.5),
    Idiom(H5, "isinstance(g['a'], zarr.Group), isinstance(g['t'], zarr.Array)", (True, True)),
    Idiom(H5, "zarr.File(path, 'r')['t'][0]", 1.5),
    # -- netCDF4-python
    Idiom(NC, "ds = nc.Dataset('n.zarr', 'w')\nds.createDimension('x', 3)\nv = ds.createVariable('t', 'f4', ('x',))\nv[:] = [1, 2, 3]\nds.close()\nnc.Dataset('n.zarr').variables['t'][:].tolist()", [1.0, 2.0, 3.0]),
    Idiom(NC, "ds = nc.Dataset('n.zarr', 'w')\nds.createDimension('time', None)\nds.dimensions['time'].isunlimited()", True),
    Idiom(NC, "ds = nc.Dataset('n.zarr', 'w')\nds.title = 'hello'\nds.ncattrs(), ds.getncattr('title')", (["title"], "hello")),
    Idiom(NC, "nc.Dataset(path)['t'][:].tolist()", [1.5, 2.5, 3.5]),
    Idiom(NC, "with nc.Dataset(path) as ds:\n    names = list(ds.variables)\nnames", ["t"]),
    Idiom(NC, "nc.Dataset(path).groups['a'].variables['b'].dimensions.__class__", tuple),
    Idiom(NC, "nc.num2date(1, 'days since 2000-01-01').isoformat()", "2000-01-02T00:00:00"),
    Idiom(NC, "nc.Dataset(path).variables['t'].shape", (3,)),
    # -- xarray
    Idiom(XR, "z.values", X, "array[...]"),
    Idiom(XR, "z.dims", ("dim_0", "dim_1")),
    Idiom(XR, "z.sizes", {"dim_0": 10, "dim_1": 6}),
    Idiom(XR, "z.to_numpy()", X),
    Idiom(XR, "z.isel(dim_0=0)", X[0], "xarray"),
    Idiom(XR, "import xarray as xr\nxr.DataArray([1, 2], dims='x', name='v').to_dataset().to_zarr('x.zarr')\nzarr.open('x.zarr', mode='r')['v'].dimension_names", ("x",)),
    Idiom(XR, "import xarray as xr\nxr.open_zarr(path).t.values", np.array([1.5, 2.5, 3.5])),
    Idiom(XR, "import xarray as xr\nxr.open_dataset(path, engine='omnizarr').t.values", np.array([1.5, 2.5, 3.5])),
    # -- NumPy
    Idiom(NP, "np.asarray(z)", X),
    Idiom(NP, "np.array(z, dtype='f4')", X.astype("f4")),
    Idiom(NP, "z[...]", X),
    Idiom(NP, "z[-1]", X[-1]),
    Idiom(NP, "z[::-1, ::-1]", X[::-1, ::-1]),
    Idiom(NP, "z[[0, 2, 5]]", X[[0, 2, 5]]),
    Idiom(NP, "z[np.ix_([0, 2], [1, 3])]", X[np.ix_([0, 2], [1, 3])]),
    Idiom(NP, "z[z[:] > 50]", X[X > 50]),
    Idiom(NP, "z[None, 0].shape, z[..., np.newaxis].shape", ((1, 6), (10, 6, 1))),
    Idiom(NP, "z[2:4] += 1\nz[2]", X[2] + 1),
    Idiom(NP, "z.mean()", X.mean(), "numpy.mean(array)"),
    Idiom(NP, "np.mean(z, axis=0)", X.mean(axis=0)),
    Idiom(NP, "z.sum(axis=0)", X.sum(axis=0), "numpy.sum(array)"),
    Idiom(NP, "z.max(), z.min()", (59.0, 0.0), "omnizarr.stat(array)"),
    Idiom(NP, "z.T.shape", (6, 10)),
    Idiom(NP, "z + 1", X + 1, "unsupported operand"),
    Idiom(NP, "z.ndim, z.size, z.shape, z.dtype, z.nbytes", (2, 60, (10, 6), np.dtype("f8"), 480)),
    Idiom(NP, "z.itemsize", 8),
    Idiom(NP, "len(z)", 10),
    Idiom(NP, "[row.sum() for row in z][:2]", [15.0, 51.0]),
    Idiom(NP, "z.tolist()[0][:2]", [0.0, 1.0]),
    Idiom(NP, "np.array_equal(z, X)", True),
    Idiom(NP, "z.item(0)", 0.0),
    Idiom(NP, "z.reshape(6, 10)", X.reshape(6, 10), "array[...].reshape"),
    Idiom(NP, "z.flatten()[:3]", np.arange(3.0), "array[...].flatten"),
    Idiom(NP, "z.copy()", X, "array[...].copy"),
    # -- TensorStore
    Idiom(TS, "z.rank", 2, "array.ndim"),
    Idiom(TS, "z.read().result()", X, "array[...]"),
    Idiom(TS, "z[2:4].read().result()", X[2:4], "no attribute 'read'"),
    Idiom(TS, "z.domain.shape", (10, 6), "array.shape"),
    Idiom(TS, "z.chunk_layout.read_chunk.shape", (4, 3), "array.chunks"),
    # -- zarrs
    Idiom(RS, "zarr.config.set({'codec_pipeline.path': 'zarrs.ZarrsCodecPipeline'})\nz[:]", X),
    Idiom(RS, "zarr.config.set({'threading.max_workers': 2, 'array.write_empty_chunks': False})\nz[:]", X),
    # -- fsspec
    Idiom(FS, "import fsspec\nzarr.open_group(fsspec.get_mapper(path), mode='r')['t'][0]", 1.5),
    Idiom(FS, "zarr.open('file://' + path, mode='r')['t'][0]", 1.5),
    Idiom(FS, "zarr.open('memory://idiom-fs', mode='w').name", "/"),
    Idiom(FS, "import fsspec\nzarr.storage.FsspecStore(fsspec.filesystem('file', asynchronous=False), path=path).__class__.__name__", "FsspecStore"),
    Idiom(FS, "zarr.storage.FsspecStore.from_url('file://' + path).__class__.__name__", "FsspecStore"),
    Idiom(FS, "zarr.open(path, mode='r', storage_options=None)['t'][0]", 1.5),
]
# fmt: on


@pytest.fixture
def given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = str(tmp_path / "given.zarr")
    g = omnizarr.create_group(path)
    g["a/b"] = np.arange(4)
    g.create_array("t", data=[1.5, 2.5, 3.5], dimension_names=["x"])
    omnizarr.consolidate_metadata(path)
    z = omnizarr.create_array(str(tmp_path / "z.zarr"), data=X, chunks=(4, 3))
    group = omnizarr.open_group(path)
    yield {"zarr": omnizarr, "nc": omnizarr.netcdf, "np": np, "X": X, "z": z, "g": group, "path": path}
    omnizarr.config.reset()


def value_of(typed, names):
    tree = ast.parse(typed)
    last = tree.body.pop()
    assert isinstance(last, ast.Expr)
    exec(compile(tree, "<typed>", "exec"), names)
    return eval(compile(ast.Expression(last.value), "<typed>", "eval"), names)


def agrees(found, gives):
    """Whether a value is the expected one: of the same type and data type, where it is an array."""
    if isinstance(gives, np.ndarray):
        return isinstance(found, np.ndarray) and found.dtype == gives.dtype and np.array_equal(found, gives)
    return type(gives)(found) == gives if isinstance(gives, set | dict) else bool(found == gives)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of zarr-python, about consolidated metadata
@pytest.mark.parametrize("idiom", IDIOMS, ids=lambda idiom: f"{idiom.whose}: {idiom.typed}")
def test_idiom_works_or_says_what_does(idiom, given):
    if idiom.instead is None:
        assert agrees(value_of(idiom.typed, given), idiom.gives)
        return
    with pytest.raises((AttributeError, TypeError, KeyError)) as caught:
        value_of(idiom.typed, given)
    assert idiom.instead in str(caught.value)


def test_most_idioms_work():
    works = [idiom for idiom in IDIOMS if idiom.instead is None]
    assert (len(works), len(IDIOMS)) == (157, 182), "the manual (docs/differences.md) has the numbers too"


PAGE = (Path(__file__).parents[2] / "docs" / "differences.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("table", "owner"), [(habits.ARRAY, omnizarr.Array), (habits.GROUP, omnizarr.Group)])
def test_names_of_others_are_not_ours_and_on_the_page(table, owner):
    for name in table:
        assert not hasattr(owner, name), name
        assert f"`{name}`" in PAGE, name


def test_names_of_others_for_the_package_are_not_ours_and_on_the_page():
    for name in habits.PACKAGE:
        assert not hasattr(omnizarr, name), name
        assert f"`{name}`" in PAGE, name


def test_misspelt_name_is_an_attribute_error_without_advice(given):
    with pytest.raises(AttributeError, match=r"^Array has no attribute 'shap'$") as caught:
        given["z"].shap  # noqa: B018
    assert (caught.value.name, caught.value.obj) == ("shap", given["z"])


@pytest.mark.parametrize(
    ("keywords", "codecs", "fill"),
    [
        ({"compression": "gzip"}, [("gzip", 4)], 0),
        ({"compression": "gzip", "compression_opts": 0}, [("gzip", 0)], 0),
        ({"compression": 7}, [("gzip", 7)], 0),
        ({"compression": True}, [("gzip", 4)], 0),
        ({"compression": "gzip", "fletcher32": True, "fillvalue": -5}, [("gzip", 4), ("crc32c", None)], -5),
        ({"compression": "gzip", "shuffle": True}, [("blosc", None)], 0),
        ({"fletcher32": True}, [("zstd", None), ("crc32c", None)], 0),
        ({"compression": "lz4"}, [("lz4", None)], 0),
    ],
)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_keywords_of_h5py_choose_codecs(keywords, codecs, fill, zarr_format):
    if zarr_format == 2 and len(codecs) > 1:
        pytest.skip("Zarr v2 has one compressor")
    root = omnizarr.create_group({}, zarr_format=zarr_format)
    array = root.create_dataset("x", (100,), "i4", **keywords)
    array[:50] = np.arange(50)
    chain = [codec.to_dict() for codec in array.compressors]
    names = [(codec.get("name") or codec["id"]).removeprefix("numcodecs.") for codec in chain]
    assert names == [name for name, _ in codecs]
    levels = [codec.get("configuration", codec).get("level") for codec in chain]
    assert [level for level, name in zip(levels, names, strict=True) if name == "gzip"] == [
        level for name, level in codecs if name == "gzip"
    ]
    np.testing.assert_array_equal(array[:], [*range(50), *[fill] * 50])


def test_shuffled_bytes_compress_as_those_of_hdf5():
    root = omnizarr.create_group({})
    plain = root.create_dataset("plain", data=np.arange(100_000), compression="gzip")
    shuffled = root.create_dataset("shuffled", data=np.arange(100_000), compression="gzip", shuffle=True)
    assert shuffled.nbytes_stored() < plain.nbytes_stored() / 2


@pytest.mark.parametrize("compression", ["lzf", "szip"])
def test_compression_of_hdf5_alone_is_refused_with_advice(compression):
    root = omnizarr.create_group({})
    with pytest.raises(omnizarr.errors.CodecError, match="Zstandard"):
        root.create_dataset("x", (4,), "i4", compression=compression)
    assert "x" not in root


def test_keywords_of_both_are_refused():
    root = omnizarr.create_group({})
    with pytest.raises(TypeError, match="compression are both given"):
        root.create_dataset("x", (4,), "i4", compression="gzip", compressors=None)
    with pytest.raises(TypeError, match="fillvalue are both given"):
        root.create_dataset("x", (4,), "i4", fillvalue=1, fill_value=2)


@pytest.mark.parametrize(("length", "axis"), [(3, 2), (3, -3), ((3, 4), 0)])
def test_axis_that_there_is_not_is_refused(given, length, axis):
    with pytest.raises(omnizarr.errors.ShapeError, match="one dimension"):
        given["z"].resize(length, axis=axis)
    assert given["z"].shape == (10, 6)


@pytest.mark.parametrize(("start", "end"), [(None, None), (3, 7), (0, 4), (4, 8), (9, 100), (-3, None), (7, 3), (5, 5)])
def test_rows_of_a_part_are_those_of_the_part(given, start, end):
    rows = list(given["z"].islice(start, end))
    assert np.array_equal(np.reshape(rows, (-1, 6)), X[start:end])


def test_each_chunk_is_visited_once(given):
    seen = np.zeros(X.shape, int)
    for place in given["z"].iter_chunks():
        seen[place] += 1
    assert (seen == 1).all()
    array = omnizarr.create_array({}, shape=(), dtype="i4")
    assert list(array.iter_chunks()) == [()]


@pytest.mark.parametrize("name", ["closed.zip", "closed.sqlite", "closed.zarr"])
def test_closed_group_is_complete_and_can_be_closed_again(tmp_path, name):
    group = omnizarr.open_group(tmp_path / name, "w")
    group["x"] = X
    group.close()
    group.close()
    assert np.array_equal(omnizarr.open(tmp_path / name, "r")["x"][:], X)
