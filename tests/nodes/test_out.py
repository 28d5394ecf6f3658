"""What fills memory of the caller (`out=`) leaves memory alone that must not be written, with a ValueError."""

import array as stdlib_array
import asyncio
import ctypes
import inspect
import mmap
from contextlib import suppress

import numpy as np
import pytest

import omnizarr
from omnizarr import aio
from omnizarr.errors import ReadOnlyError, ShapeError, ValueTypeError
from omnizarr.stores import verbs
from tests.engine.both import ENGINES

VALUES = np.arange(12, dtype="i4").reshape(3, 4)
POINTS = tuple(np.indices((3, 4)))
CODECS = {"raw": None, "compressed": "auto"}

WAYS = {
    "Array.get_basic_selection": lambda a, out: a.get_basic_selection(out=out),
    "Array.get_orthogonal_selection": lambda a, out: a.get_orthogonal_selection(([0, 1, 2], slice(None)), out=out),
    "Array.get_coordinate_selection": lambda a, out: a.get_coordinate_selection(POINTS, out=out),
    "Array.get_mask_selection": lambda a, out: a.get_mask_selection(np.ones((3, 4), "?"), out=out.reshape(12)),
    "Array.get_block_selection": lambda a, out: a.get_block_selection(..., out=out),
    "read_many": lambda a, out: omnizarr.read_many([(a, ...)], out=[out]),
    "LazyArray.read": lambda a, out: a.lazy[...].read(out=out),
}
WAYS |= {
    f"Async{name}": lambda a, out, way=way: asyncio.run(_awaited(way(aio.AsyncArray(a), out)))
    for name, way in WAYS.items()
    if name.startswith("Array")
}
WAYS["aio.read_many"] = lambda a, out: asyncio.run(aio.read_many([(aio.AsyncArray(a), ...)], out=[out]))


async def _awaited(waiting):
    return await waiting


def _locked(tmp_path):
    out = np.zeros((3, 4), "i4")
    out.flags.writeable = False
    return out


def _mapped(tmp_path):
    (tmp_path / "mapped").write_bytes(bytes(48))
    return np.memmap(tmp_path / "mapped", "i4", "r", shape=(3, 4))


UNFIT = {
    "a view without the right to write": (_locked, ReadOnlyError),
    "constant bytes": (lambda _: np.frombuffer(bytes(48), "i4").reshape(3, 4), ReadOnlyError),
    "a file mapped for reading": (_mapped, ReadOnlyError),
    "one row for all": (lambda _: np.broadcast_to(np.zeros(4, "i4"), (3, 4)), ReadOnlyError),
    "read-only, of another type": (lambda _: np.frombuffer(bytes(96), "i8").reshape(3, 4), ReadOnlyError),
    "one row for all, to be written": (
        lambda _: np.lib.stride_tricks.as_strided(np.zeros(4, "i4"), (3, 4), (0, 4)),
        ShapeError,
    ),
    "windows": (
        lambda _: np.lib.stride_tricks.sliding_window_view(np.zeros(6, "i4"), 4, writeable=True),
        ShapeError,
    ),
    "another kind of type": (lambda _: np.zeros((3, 4), "?"), ValueTypeError),
    "another shape": (lambda _: np.zeros((4, 3), "i4"), ShapeError),
    "more dimensions": (lambda _: np.zeros((1, 3, 4), "i4"), ShapeError),
}
RESHAPED = ("another shape", "more dimensions", "one row for all", "one row for all, to be written", "windows")
"""Fits a mask when it is reshaped, or is a copy then."""


@pytest.fixture(params=CODECS)
def codec(request):
    return CODECS[request.param]


def make(engine, codec, **options):
    array = omnizarr.create_array({}, data=VALUES, chunks=(2, 4), compressors=codec, **options)
    return array.with_config({"engine": engine})


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("way", WAYS)
def test_memory_that_must_not_be_written_is_left_alone(way, engine, codec, tmp_path):
    array = make(engine, codec)
    for unfit, (lay, error) in UNFIT.items():
        if "mask" in way and unfit in RESHAPED:
            continue
        out = lay(tmp_path)
        before = out.tobytes()
        with pytest.raises(ValueError, match="out") as caught:  # what zarr-python and NumPy raise
            WAYS[way](array, out)
        assert type(caught.value) is error, unfit
        assert out.tobytes() == before, unfit


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("way", WAYS)
def test_memory_of_any_layout_is_filled(way, engine, codec):
    layouts = {
        "C": np.zeros((3, 4), "i4"),
        "F": np.zeros((3, 4), "i4", order="F"),
        "every second": np.zeros((6, 8), "i4")[::2, ::2],
        "backwards": np.zeros((3, 4), "i4")[::-1, ::-1],
        "a field": np.zeros((3, 4), [("a", "i1"), ("b", "i4")])["b"],
        "a diagonal": np.einsum("iij->ij", np.zeros((3, 3, 4), "i4")),
        "another type": np.zeros((3, 4), "f8"),
    }
    if "mask" in way:
        layouts = {name: out for name, out in layouts.items() if np.shares_memory(out.reshape(12), out)}
    for name, out in layouts.items():
        WAYS[way](make(engine, codec), out)
        np.testing.assert_array_equal(out, VALUES, err_msg=name)


def test_all_functions_that_fill_memory_are_tried():
    found = set()
    for prefix, scope in (
        ("", omnizarr),
        ("aio.", aio),
        ("Array.", omnizarr.Array),
        ("AsyncArray.", aio.AsyncArray),
        ("LazyArray.", omnizarr.LazyArray),
    ):
        for name, function in inspect.getmembers(scope, callable):
            with suppress(ValueError, TypeError):
                if not name.startswith("_") and "out" in inspect.signature(function).parameters:
                    found.add(prefix + name)
    assert found == set(WAYS)


@pytest.mark.parametrize("engine", ENGINES)
def test_fields_that_are_arrays_are_put_into_memory(engine):
    values = np.zeros(3, [("a", "i4", (2,)), ("b", "f4")])
    values["a"] = np.arange(6).reshape(3, 2)
    array = omnizarr.create_array({}, data=values, chunks=(2,), zarr_format=2).with_config({"engine": engine})
    out = np.zeros((3, 2), "i8")
    assert array.get_basic_selection(fields="a", out=out) is out
    np.testing.assert_array_equal(out, values["a"])
    with pytest.raises(ShapeError):
        array.get_basic_selection(fields="a", out=np.zeros(3, "i8"))


class Exported:
    """An array of a library whose only way to share its memory is DLPack."""

    def __init__(self, values, device=(1, 0), **options):
        self.values, self.device, self.options = values, device, options

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options | self.options)


class OldExported(Exported):
    """The same, before version 1 of DLPack: without keywords, and silent about what may be written."""

    def __dlpack__(self, stream=None):
        return self.values.__dlpack__()


class Tensor(OldExported):
    """The same, which also shares its memory by NumPy's protocol, as torch does."""

    def __array__(self, dtype=None, copy=None):
        return self.values


class Interface:
    def __init__(self, values):
        self.__array_interface__ = values.__array_interface__
        self.values = values


class Elsewhere:
    __cuda_array_interface__ = None  # no memory of the host


class OnlyValues:
    """Its values may be made only now."""

    def __array__(self, dtype=None, copy=None):
        return np.zeros((3, 4), "i4")


FOREIGN = {
    "DLPack": Exported,
    "pinned memory by DLPack": lambda values: Exported(values, (3, 0), dl_device=(1, 0)),
    "an old tensor": Tensor,
    "array interface": Interface,
    "memoryview": memoryview,
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("way", [way for way in WAYS if "mask" not in way])
@pytest.mark.parametrize("kind", FOREIGN)
def test_memory_of_other_libraries_is_filled(way, engine, codec, kind):
    layouts = {
        "C": np.zeros((3, 4), "i4"),
        "F": np.zeros((3, 4), "i4", order="F"),
        "every second": np.zeros((6, 8), "i4")[::2, ::2],
        "backwards": np.zeros((3, 4), "i4")[::-1, ::-1],
        "another type": np.zeros((3, 4), "f8"),
    }
    for name, values in layouts.items():
        out = FOREIGN[kind](values)
        found = WAYS[way](make(engine, codec), out)
        assert (found[0] if "read_many" in way else found) is out
        np.testing.assert_array_equal(values, VALUES, err_msg=name)


def test_memory_of_the_buffer_protocol_is_filled(tmp_path):
    array = omnizarr.create_array({}, data=np.arange(4, dtype="i4"))
    numbers, raw, shared = stdlib_array.array("i", [0] * 4), (ctypes.c_int32 * 4)(), bytearray(16)
    (tmp_path / "mapped").write_bytes(bytes(16))
    for out in (numbers, raw, memoryview(shared).cast("i")):
        assert array.get_basic_selection(out=out) is out
    assert numbers.tolist() == list(raw) == [0, 1, 2, 3]
    assert np.frombuffer(shared, "i4").tolist() == [0, 1, 2, 3]
    with (tmp_path / "mapped").open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        with memoryview(mapped) as view, view.cast("i") as numbers:
            array.get_basic_selection(out=numbers)
        mapped.flush()
    assert np.fromfile(tmp_path / "mapped", "i4").tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("way", [way for way in WAYS if "mask" not in way])
def test_memory_of_other_libraries_that_cannot_be_filled_is_left_alone(way):
    zeros = np.zeros((3, 4), "i4")
    locked = zeros.copy()
    locked.flags.writeable = False
    unfit = {
        "constant": (Exported(locked), ReadOnlyError),
        "may be constant": (OldExported(zeros), ReadOnlyError),  # as those of jax are
        "constant bytes": (memoryview(zeros).toreadonly(), ReadOnlyError),
        "constant, by NumPy's protocol": (Interface(locked), ReadOnlyError),
        "a device": (Exported(zeros, (2, 1)), ValueTypeError),
        "a device without DLPack": (Elsewhere(), ValueTypeError),
        "values that may be copies": (OnlyValues(), ValueTypeError),
        "a list": ([[0] * 4] * 3, ValueTypeError),
        "text": ("0" * 12, ValueTypeError),
        "another shape": (memoryview(bytearray(48)), ShapeError),
    }
    for name, (out, error) in unfit.items():
        with pytest.raises(ValueError, match="out ") as caught:
            WAYS[way](make(None, None), out)
        assert type(caught.value) is error, name
        assert not zeros.any(), name


def test_what_is_no_array_is_refused():
    with pytest.raises(ValueTypeError, match=r"numpy\.ndarray"):
        make(None, None).get_basic_selection(out=[[0] * 4] * 3)


def test_device_is_named():
    with pytest.raises(ValueTypeError, match=r"memory of the host: found .*Exported on the device 1 of CUDA.*pinned"):
        make(None, None).get_basic_selection(out=Exported(np.zeros((3, 4), "i4"), (2, 1)))


@pytest.mark.parametrize("kind", ["", "memory", "zip", "sqlite", "lmdb"])
def test_stores_do_not_fill_memory_that_is_read_only(kind, tmp_path):
    if kind == "lmdb":
        pytest.importorskip("lmdb")
    place = {} if kind == "memory" else tmp_path / f"x.{kind or 'zarr'}"
    store = omnizarr.create_array(place, name="a", data=VALUES, chunks=(3, 4), compressors=None).store
    for size in (8, 48, 100):
        out = bytes(size)
        with pytest.raises((TypeError, BufferError)):  # as file.readinto does
            verbs.read_into(store, "a/c/0/0", memoryview(out))
        assert out == bytes(size)
