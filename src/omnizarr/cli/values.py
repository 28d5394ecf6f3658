"""Output of elements: as NumPy prints them, as CSV, as JSON, or as a .npy file.

Everything larger than a screen is read and written in blocks, so arrays can be larger than memory.
"""

from __future__ import annotations

import base64
import csv
from typing import IO, Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.cli.selections import Part
from omnizarr.cli.text import fit, to_json
from omnizarr.errors import NotRepresentableError, SelectionError
from omnizarr.model.datatypes.optional import is_optional
from omnizarr.support.progress import Tick
from omnizarr.support.text import text_of_time, visible

# Elements at a time; few for text, so that the first ones appear soon.
_TEXT_BLOCK: Final = 2**16
_BLOCK_BYTES: Final = 32 * 2**20


def as_numpy_prints(part: Part) -> str:
    """Return the output of ``print``; only the elements that NumPy shows are read.

    NumPy itself shortens the output; it gets an array that is just large enough to be shortened.
    """
    options = np.get_printoptions()
    if not part.shape:
        value = part.read()[()]
        return visible(str(value) if value is np.ma.masked else text_of_time(value))
    if part.size <= options["threshold"]:
        return _printed(part.read())
    values = part.edges(options["edgeitems"]).read()
    return _printed(values, threshold=0, edgeitems=options["edgeitems"])


def _printed(values: NDArray[Any], **options: Any) -> str:
    if isinstance(values, np.ma.MaskedArray):
        with np.printoptions(**options):
            return str(values)
    if values.dtype.kind == "M" and np.datetime_data(values.dtype)[0] == "generic":
        options["formatter"] = {"datetime": text_of_time}
    return str(np.array2string(values, **options))


def write_csv(part: Part, out: IO[str], tick: Tick) -> None:
    """Write one line per index of the first dimension, one column per index of the second (or per field).

    Raises SelectionError if there are more dimensions.
    """
    names = _field_names(part)
    if len(part.shape) > (1 if names else 2):
        raise SelectionError(
            "CSV has lines and columns only", found=f"shape {part.shape}", remedy="select two dimensions, or use --json"
        )
    writer = csv.writer(out, lineterminator="\n")
    if names:
        writer.writerow(names)
    width = part.shape[1] if len(part.shape) == 2 else 1
    row: list[Any] = []
    for block in part.blocks(_TEXT_BLOCK):
        for cell in _cells(block):
            row.extend(map(_cell, cell)) if names else row.append(_cell(cell))
            if names or len(row) == width:
                writer.writerow(row)
                row = []
        tick(block.size)


def _field_names(part: Part) -> tuple[str, ...]:
    if isinstance(part.fields, str) or is_optional(part.array.dtype):
        return ()
    return tuple(part.fields) if part.fields else part.array.dtype.names or ()


def _cells(block: NDArray[Any]) -> list[Any]:
    """Return elements as Python objects, None for missing ones, and times in ISO 8601 form."""
    if isinstance(block, np.ma.MaskedArray):
        mask: NDArray[Any] = np.ma.getmaskarray(block)
        missing = mask if mask.dtype.names is None else mask[mask.dtype.names[0]]
        return [None if is_missing else cell for is_missing, cell in zip(missing, _cells(block.data), strict=True)]
    if block.dtype.kind in "mM":
        return [text_of_time(value) for value in block]
    if block.dtype.names is not None:
        columns = [_cells(block[name]) if block[name].ndim == 1 else list(block[name]) for name in block.dtype.names]
        return list(zip(*columns, strict=True))
    if block.dtype.kind == "f" and block.dtype.itemsize < 8:
        # The shortest decimal that gives this number in its own type: 0.1, not 0.10000000149011612.
        return [float(text) for text in block.astype(str).tolist()]
    return list(block.tolist())


def _cell(value: Any) -> object:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return str(value).strip("()") if isinstance(value, complex) else value


def write_json(part: Part, out: IO[str], tick: Tick) -> None:
    """Write nested lists, an element alone for a selection without dimensions.

    Numbers without a JSON form are the strings of Zarr v3 ("NaN", "Infinity"), complex numbers pairs, fields lists,
    byte strings text if they are text and base64 if not.
    """
    shape = part.shape
    if not part.size:
        out.write(f"{to_json(np.empty(shape, np.int8).tolist())}\n")
        return
    count = 0
    width = shape[-1] if shape else 1
    for block in part.blocks(_TEXT_BLOCK):
        cells = [_json(cell) for cell in _cells(block)]
        start = 0
        while start < len(cells):
            stop = min(len(cells), start + width - count % width)
            out.write(_opening(count, shape) + to_json(cells[start:stop])[1:-1])
            count += stop - start
            start = stop
        tick(block.size)
    out.write("]" * len(shape) + "\n")


def _opening(count: int, shape: tuple[int, ...]) -> str:
    """Return the separator before element number `count` in nested lists."""
    if not count:
        return "[" * len(shape)
    closed = 0
    for length in reversed(shape):
        count, place = divmod(count, length)
        if place:
            break
        closed += 1
    return f"{']' * closed}, {'[' * closed}"


def _json(value: Any) -> Any:
    if isinstance(value, complex):
        return [value.real, value.imag]
    if isinstance(value, (tuple, list, np.ndarray)):
        return [_json(item) for item in value]
    if isinstance(value, np.generic):
        return _json(value.item())
    if isinstance(value, bytes):
        try:
            return value.decode("ascii")
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    return value if value is None or isinstance(value, (bool, int, float, str, dict)) else str(value)


def write_npy(part: Part, out: BinaryIO, tick: Tick) -> None:
    """Write a file that ``numpy.load`` reads.

    Raises NotRepresentableError for elements without a fixed size.
    """
    if not part.fields:
        dtype = part.array.dtype
    elif isinstance(part.fields, str):
        dtype = part.array.dtype[part.fields]
    else:
        dtype = np.dtype([(name, part.array.dtype[name]) for name in part.fields])
    if dtype.hasobject or dtype.kind == "T":
        raise NotRepresentableError(
            "a .npy file cannot store elements of variable length", found=str(dtype), remedy="use --json or --csv"
        )
    if is_optional(dtype):
        raise NotRepresentableError(
            "a .npy file cannot leave out elements", found="optional", remedy="use --json or --csv"
        )
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": part.shape}
    np.lib.format.write_array_header_2_0(out, header)
    for block in part.blocks(max(1, _BLOCK_BYTES // max(1, dtype.itemsize))):
        out.write(np.ascontiguousarray(block, dtype).tobytes())
        tick(block.size)


def write_text(part: Part, out: IO[str]) -> None:
    """Write what ``print`` shows."""
    out.write(f"{fit(as_numpy_prints(part))}\n")
