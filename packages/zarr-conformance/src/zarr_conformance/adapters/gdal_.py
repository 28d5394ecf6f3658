"""GDAL, by its C interface: ``GDAL_LIBRARY`` names the library, else that of rasterio is taken."""

import ctypes
import glob
import importlib.util
import os

import numpy as np
from contract import UnsupportedError, serve

PLACE = importlib.util.find_spec("rasterio")
FOUND = glob.glob(os.path.dirname(PLACE.origin) + ".libs/libgdal*") if PLACE else []
if PLACE:
    import rasterio  # noqa: F401 - loads what the library needs
GDAL = ctypes.CDLL(os.environ.get("GDAL_LIBRARY") or FOUND[0])
POINTER, SIZES = ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64)
TYPES = {
    1: "u1",
    2: "u2",
    3: "i2",
    4: "u4",
    5: "i4",
    6: "f4",
    7: "f8",
    10: "c8",
    11: "c16",
    12: "u8",
    13: "i8",
    14: "i1",
    15: "f2",
}
for name in (
    "GDALOpenEx",
    "GDALDatasetGetRootGroup",
    "GDALGroupGetMDArrayNames",
    "GDALGroupOpenMDArray",
    "GDALMDArrayGetDimensions",
    "GDALMDArrayGetDataType",
):
    getattr(GDAL, name).restype = POINTER
GDAL.GDALDimensionGetSize.restype = ctypes.c_uint64
GDAL.GDALExtendedDataTypeGetSize.restype = ctypes.c_size_t
GDAL.GDALVersionInfo.restype = GDAL.CPLGetLastErrorMsg.restype = ctypes.c_char_p
GDAL.GDALAllRegister()


def failed():
    return OSError(GDAL.CPLGetLastErrorMsg().decode(errors="replace") or "GDAL gives no reason")


def read(path, selection):
    if path.endswith(".zip") or path.startswith("http"):
        raise UnsupportedError("not tried")
    GDAL.CPLErrorReset()
    drivers = (ctypes.c_char_p * 2)(b"Zarr", None)
    dataset = POINTER(GDAL.GDALOpenEx(path.encode(), 0x10, drivers, None, None))
    if not dataset:
        raise failed()
    group = POINTER(GDAL.GDALDatasetGetRootGroup(dataset))
    names = GDAL.GDALGroupGetMDArrayNames(group, None)
    if not names:
        raise failed()
    first = ctypes.cast(names, ctypes.POINTER(ctypes.c_char_p))[0]
    array = POINTER(GDAL.GDALGroupOpenMDArray(group, first, None))
    if not array:
        raise failed()
    count = ctypes.c_size_t()
    dimensions = ctypes.cast(GDAL.GDALMDArrayGetDimensions(array, ctypes.byref(count)), ctypes.POINTER(POINTER))
    shape = [GDAL.GDALDimensionGetSize(POINTER(dimensions[axis])) for axis in range(count.value)]
    kind = POINTER(GDAL.GDALMDArrayGetDataType(array))
    if GDAL.GDALExtendedDataTypeGetClass(kind) != 0:
        raise UnsupportedError("texts and records need more than this adapter does")
    dtype = TYPES[GDAL.GDALExtendedDataTypeGetNumericDataType(kind)]
    steps = (
        [slice(None)] * len(shape)
        if selection is ...
        else [each if isinstance(each, slice) else slice(each, each + 1) for each in selection]
    )
    spans = [range(*each.indices(n)) for each, n in zip(steps, shape, strict=True)]
    out = np.zeros([len(span) for span in spans], dtype)
    if out.size:
        rank = len(shape)
        start, counts = (
            (ctypes.c_uint64 * rank)(*(span.start for span in spans)),
            (ctypes.c_size_t * rank)(*out.shape),
        )
        step = (ctypes.c_int64 * rank)(*(span.step for span in spans))
        if not GDAL.GDALMDArrayRead(
            array, start, counts, step, None, kind, out.ctypes.data_as(POINTER), None, ctypes.c_size_t(0)
        ):
            raise failed()
    drop = () if selection is ... else tuple(axis for axis, each in enumerate(selection) if not isinstance(each, slice))
    return out.squeeze(drop) if drop else out


def unsupported(error):
    words = (
        "not supported",
        "no supported",
        "Unsupported codec",
        "not handled",
        "Invalid or unsupported format",
        "Only chunk_grid.name",
    )
    return any(word in str(error) for word in words)


serve("GDAL", GDAL.GDALVersionInfo(b"RELEASE_NAME").decode(), read=read, unsupported=unsupported)
