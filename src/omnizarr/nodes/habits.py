"""What users of other libraries type: keywords of h5py, and what to type instead of names that are not here.

`docs/differences.md` lists the names; `tests/api/test_idioms.py` types them.
"""

from __future__ import annotations

from typing import Any, Final

from omnizarr.codecs import values
from omnizarr.errors import CodecError


def _each(names: str, instead: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), instead)


ARRAY: Final = {
    **_each("values data load compute read", "array[...]"),
    **_each("copy flatten ravel reshape round clip", "array[...].{}(...)"),
    **_each("mean sum std var any all argmax argmin", "numpy.{}(array), which reads it whole"),
    **_each("min max", "numpy.{}(array), or omnizarr.stat(array) for one larger than memory"),
    **_each("transpose", "array.lazy[...].{}(...), which reads nothing"),
    **_each("isel sel coords", "xarray.open_dataset(..., engine='omnizarr')"),
    **_each("len", "len(array)"),
    **_each("rank", "array.ndim"),
    **_each("fillvalue _FillValue", "array.fill_value"),
    **_each("compression", "array.compressors"),
    **_each("write", "array[selection] = values"),
    **_each("view", "array.astype(dtype) or array.lazy[...]"),
    **_each("hexdigest digest", "omnizarr.digest(array)"),
    **_each("initialized", "array.nchunks_initialized"),
    **_each("write_empty_chunks is_view", "array.config"),
    **_each("ncattrs getncattr setncattr", "array.attrs"),
    **_each("parent file group", "omnizarr.open_group(array.store)"),
    **_each("domain chunk_layout", "array.shape and array.chunks"),
}
"""Names that other libraries have for their arrays, with what does the same here."""

GROUP: Final = {
    **_each("parent", "omnizarr.open_group(group.store)"),
    **_each("filepath", "group.filename"),
    **_each("flush sync", "group.close() for a zip archive; other stores keep everything at once"),
    **_each("variables dimensions ncattrs createVariable createDimension", "omnizarr.netcdf.Dataset, which has it"),
    **_each("data_vars coords sel isel", "xarray.open_dataset(..., engine='omnizarr')"),
}
"""The same for groups."""

PACKAGE: Final = {
    **_each("FSStore FsspecStore ABSStore", "omnizarr.storage.FsspecStore"),
    **_each("ObjectStore", "omnizarr.storage.ObjectStore"),
    **_each("LMDBStore DBMStore", "omnizarr.stores.LMDBStore"),
    **_each("SQLiteStore", "omnizarr.stores.SQLiteStore"),
    **_each("LRUStoreCache", "omnizarr.stores.CacheStore"),
    **_each("ThreadSynchronizer ProcessSynchronizer", "nothing: writers are kept apart without it"),
    **_each("Blosc Zstd GZip numcodecs blosc", "omnizarr.codecs"),
    **_each("Dataset MFDataset num2date date2num", "omnizarr.netcdf.{}"),
    **_each("open_dataset open_zarr open_datatree", "xarray.open_dataset(path, engine='omnizarr')"),
    **_each("asarray", "omnizarr.array(values)"),
    **_each("concatenate", "omnizarr.concat(arrays)"),
}
"""The same for the package."""


def missing(what: str, name: str, known: dict[str, str], owner: object = None) -> AttributeError:
    """Return the error for a missing name, which says what does the same.

    >>> missing("an Array", "rank", ARRAY).args[0]
    "an Array has no attribute 'rank': type array.ndim"
    """
    instead = known.get(name)
    text = f"{what} has no attribute {name!r}"
    if instead is not None:
        text += f": type {instead.replace('{}', name)}"
    return AttributeError(text, name=name, obj=owner)


def from_h5py(compression: Any, level: Any, fillvalue: Any, *, shuffle: bool, fletcher32: bool) -> dict[str, Any]:
    """Return the keywords of `create_array` for those of h5py's ``create_dataset``.

    gzip with the shuffle filter becomes Blosc, which does both and is read by every program; a checksum is CRC-32C.

    >>> from_h5py("gzip", 9, None, shuffle=False, fletcher32=False)
    {'compressors': [GzipCodec(level=9)]}
    """
    options: dict[str, Any] = {}
    if fillvalue is not None:
        options["fill_value"] = fillvalue
    codecs: list[Any] = []
    if compression is True or (isinstance(compression, int) and not isinstance(compression, bool)):
        compression, level = "gzip", 4 if compression is True else compression
    if compression == "gzip":
        level = 4 if level is None else level
        codecs.append(
            values.BloscCodec(cname="zlib", clevel=level, shuffle="shuffle")
            if shuffle
            else values.GzipCodec(level=level)
        )
    elif compression in {"lzf", "szip"}:
        raise CodecError(
            f"HDF5 alone has the compression {compression!r}",
            found=repr(compression),
            expected="'gzip', or a codec of omnizarr.codecs",
            remedy="leave it out: the default is Zstandard, which is faster and compresses better",
        )
    elif compression:
        codecs.append(compression)
    if fletcher32:
        codecs = [*(codecs or [values.ZstdCodec()]), values.Crc32cCodec()]
    if codecs:
        options["compressors"] = codecs
    return options
