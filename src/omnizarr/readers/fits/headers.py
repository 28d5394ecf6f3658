"""Headers of a FITS file: cards of 80 characters, and where the data of each unit (HDU) lie.

Units follow one another: to find the next one, the header of this one must be read. All sizes are checked before
anything is made of them, and a file has at most `MOST_UNITS` units that are shown.

Spec: FITS Standard 4.0.
"""

from __future__ import annotations

import math
import re
from math import prod
from typing import Any, Final, NamedTuple

from omnizarr.errors import MetadataError
from omnizarr.model import JSON
from omnizarr.readers.hdf5.source import Source as Bytes
from omnizarr.stores.manifests.file import File

SPEC: Final = "FITS Standard 4.0"
BLOCK: Final = 2880
MOST_UNITS: Final = 1 << 14
"""Units of a file that are shown. Those behind them are named as not shown."""
_MOST_HEADERS: Final = 1 << 26  # bytes of all headers together
_MOST_HEADER: Final = 1 << 24
_CARD: Final = 80
_MOST_AXES: Final = 999
_END: Final = 1 << 62
_FIRST: Final = b"SIMPLE  ="

_NAME: Final = re.compile(r"(?!__)[!-.0-~][ -.0-~]*")
_TEXT: Final = re.compile(r"'((?:[^']|'')*)'")
_INTEGER: Final = re.compile(r"[+-]?\d+")
_REAL: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[EeDd][+-]?\d+)?")
_COMPLEX: Final = re.compile(r"\(([^,()]*),([^,()]*)\)")
_COMMENTARY: Final = ("COMMENT", "HISTORY")
STRUCTURE: Final = re.compile(r"SIMPLE|XTENSION|BITPIX|NAXIS\d*|PCOUNT|GCOUNT|EXTEND|GROUPS|BSCALE|BZERO|BLANK|TFIELDS")
"""Keywords that say how a unit is stored. All others are attributes."""


class Source(Bytes):
    """The bytes of a FITS file."""

    spec = SPEC

    def __init__(self, file: File, head: bytes) -> None:
        super().__init__(file)
        self._keep(0, head)  # which has been read to recognise the file


class Unit(NamedTuple):
    """A header and data unit.

    Attributes
    ----------
    number : int
    cards : dict
        Values by keyword; of keywords that come several times, the first. Texts of COMMENT and HISTORY are lists.
    text : str
        The cards as they are stored, one a line.
    start, size : int
        The bytes of its data.
    address : int
        Where its header begins.
    """

    number: int
    cards: dict[str, JSON]
    text: str
    start: int
    size: int
    address: int

    @property
    def kind(self) -> str:
        """``IMAGE``, ``TABLE``, ``BINTABLE``, ``GROUPS``, or what the unit says that it is."""
        if not self.number:
            is_groups = self.cards.get("GROUPS") is True and self.cards.get("NAXIS1") == 0
            return "GROUPS" if is_groups else "IMAGE"
        said = str(self.cards.get("XTENSION", "")).strip().upper()
        return {"IUEIMAGE": "IMAGE", "A3DTABLE": "BINTABLE"}.get(said, said)

    @property
    def shape(self) -> tuple[int, ...]:
        """The axes in the order of NumPy: the one that varies fastest is last."""
        return tuple(self.integer(f"NAXIS{axis}") for axis in range(self.integer("NAXIS"), 0, -1))

    def integer(self, name: str, default: int = 0) -> int:
        """Return an integer; the default if it is missing or something else."""
        found = self.cards.get(name, default)
        if isinstance(found, float) and found.is_integer():
            return int(found)
        return found if isinstance(found, int) and not isinstance(found, bool) else default

    def number_of(self, name: str, default: float) -> float:
        """Return a number; the default if it is missing or something else."""
        found = self.cards.get(name, default)
        return found if isinstance(found, int | float) and not isinstance(found, bool) else default

    def string(self, name: str) -> str:
        """Return a text; nothing if it is missing or something else."""
        found = self.cards.get(name, "")
        return found if isinstance(found, str) else ""

    def title(self) -> str:
        """Return what messages call it."""
        name = self.string("EXTNAME").strip()
        return f"unit {self.number} ({name})" if name else f"unit {self.number}"


class Found(NamedTuple):
    """The units of a file, and what of it is not shown."""

    units: list[Unit]
    notes: list[str]


def is_fits(head: bytes) -> bool:
    """Return whether a file that begins so is a FITS file."""
    return head.startswith(_FIRST)


def walk(file: File) -> tuple[Source, Found] | None:
    """Return the units of a file; None if it is no FITS file.

    Raises
    ------
    MetadataError
        If the first header is broken.
    """
    head = bytes(file.head(1 << 16))
    if not is_fits(head):
        return None
    source = Source(file, head)
    units: list[Unit] = []
    notes: list[str] = []
    address = total = 0
    while address < source.size:
        if len(units) == MOST_UNITS or total > _MOST_HEADERS:
            notes.append(f"what follows the first {len(units)} units, at byte {address}, is not shown")
            break
        try:
            unit, stop = _unit(source, address, len(units))
        except MetadataError as error:
            if not units:
                raise
            found = "" if error.found is None else f": {error.found}"
            notes.append(f"what follows the first {len(units)} units, at byte {address}, is not shown: "
                         f"{error.message}{found}")  # fmt: skip
            break
        if unit is None:
            notes.append(f"{source.size - address} bytes at the end of the file, which are no unit, are not shown")
            break
        units.append(unit)
        total += stop - address
        address = unit.start + -(-unit.size // BLOCK) * BLOCK
    return source, Found(units, notes)


def _unit(source: Source, address: int, number: int) -> tuple[Unit | None, int]:
    """Return the unit at an address, None if there is none, and where its header ends."""
    first = source.read(address, min(len(_FIRST), source.size - address))
    if number and not first.startswith(b"XTENSION"):
        return None, address
    lines, stop = _lines(source, address)
    cards = _parse(lines)
    unit = Unit(number, cards, "\n".join(lines), stop, 0, address)
    return unit._replace(size=_size(source, unit)), stop


def _lines(source: Source, address: int) -> tuple[list[str], int]:
    """Return the cards of a header, and where it ends."""
    lines: list[str] = []
    at = address
    while at - address < _MOST_HEADER:
        block = source.read(at, min(BLOCK, source.size - at)).decode("latin-1")
        at += BLOCK
        for start in range(0, len(block) - 2, _CARD):
            card = block[start : start + _CARD].rstrip()
            if card == "END":
                while lines and not lines[-1]:
                    lines.pop()
                return lines, at
            lines.append(card)
        if at >= source.size:
            break
    raise source.broken(address, "a header has no END", found=f"{min(at, source.size) - address} bytes",
                        expected="a card END", remedy="is the file complete?")  # fmt: skip


def _size(source: Source, unit: Unit) -> int:
    """Return how many bytes the data have."""
    axes = unit.integer("NAXIS", -1)
    if not 0 <= axes <= _MOST_AXES:
        raise source.broken(unit.address, "the number of axes is impossible", found=unit.cards.get("NAXIS"),
                            expected="NAXIS from 0 to 999")  # fmt: skip
    bits = unit.integer("BITPIX")
    if bits not in (8, 16, 32, 64, -32, -64):
        raise source.broken(unit.address, "the size of elements is impossible", found=unit.cards.get("BITPIX"),
                            expected="BITPIX of 8, 16, 32, 64, -32 or -64")  # fmt: skip
    shape = [unit.integer(f"NAXIS{axis}", -1) for axis in range(1, axes + 1)]
    if min(shape, default=0) < 0:
        raise source.broken(unit.address, "an axis has no length", found=shape, expected="NAXIS1, NAXIS2, ... from 0")
    parameters, groups = unit.integer("PCOUNT"), unit.integer("GCOUNT", 1)
    if parameters < 0 or groups < 0:
        raise source.broken(unit.address, "a count is below 0", found=(parameters, groups), expected="PCOUNT, GCOUNT")
    lengths = shape[1:] if unit.kind == "GROUPS" else shape
    count = prod(lengths) if lengths or unit.kind == "GROUPS" else 0
    size = abs(bits) // 8 * groups * (parameters + count)
    if size > _END:
        raise source.broken(unit.address, "the data are larger than any file", found=f"{size} bytes",
                            expected="less than 2**62")  # fmt: skip
    return size


# -- cards ---------------------------------------------------------------------------------


def _parse(lines: list[str]) -> dict[str, JSON]:
    """Return the values of cards by keyword."""
    found: dict[str, JSON] = {}
    last = ""
    comments: dict[str, list[JSON]] = {}
    for line in lines:
        name, rest = line[:8].rstrip(), line[8:]
        if name in _COMMENTARY:
            comments.setdefault(name, []).append(rest.rstrip())
        elif name == "CONTINUE":
            before = found.get(last)
            match = _TEXT.match(rest.lstrip())
            if isinstance(before, str) and before.endswith("&") and match is not None:
                found[last] = before[:-1] + _text(match)
        elif name == "HIERARCH" and "=" in rest:
            name, _, rest = rest.partition("=")
            last = _first(found, " ".join(name.split()), rest)
        elif name and rest.startswith("="):
            last = _first(found, name, rest[1:])
    found |= comments
    return {name: _joined(value) for name, value in found.items()}


def _first(found: dict[str, JSON], name: str, text: str) -> str:
    """Add a value, unless there is one with the same keyword. Return what a card CONTINUE continues."""
    if not name or name in found:
        return ""
    found[name] = _value(text.strip())
    return name


def _joined(value: JSON) -> JSON:
    return value.rstrip(" ") if isinstance(value, str) else value


def _text(match: re.Match[str]) -> str:
    return match[1].replace("''", "'")


def _value(text: str) -> JSON:
    """Return the value that a card has: a text, a boolean, a number, two numbers if it is complex, or None."""
    if text.startswith("'"):
        match = _TEXT.match(text)
        if match is None:
            return text[1:]
        found = _text(match)
        return found.rstrip(" ") or found[:1].strip()
    word = text.split("/", 1)[0].strip()
    if word in ("", "T", "F"):
        return {"": None, "T": True, "F": False}[word]
    if (match := _COMPLEX.fullmatch(word)) is not None:
        return [_number(match[1].strip()), _number(match[2].strip())]
    return _number(word)


def _number(word: str) -> JSON:
    """Return a number; the word itself if it is none, or if JSON has none like it."""
    if _INTEGER.fullmatch(word):
        return int(word) if len(word) < 20 else word
    if _REAL.fullmatch(word):
        value = float(word.upper().replace("D", "E"))
        return value if math.isfinite(value) else word
    return word


def attributes(unit: Unit) -> dict[str, Any]:
    """Return the attributes of a unit: its cards, but for those that say how it is stored; and all as one text."""
    found: dict[str, Any] = {name: value for name, value in unit.cards.items() if not STRUCTURE.fullmatch(name)}
    found["fits_header"] = unit.text
    return found


def is_name(name: str) -> bool:
    """Return whether a node can have a name.

    >>> is_name("SCI"), is_name("a/b"), is_name(".."), is_name("zarr.json")
    (True, False, False, False)
    """
    return _NAME.fullmatch(name) is not None and name != "zarr.json" and bool(name.strip("."))


def name_of_column(said: str, number: int, taken: set[str]) -> str:
    """Return the name of the array of a column, which is added to those that are taken.

    >>> name_of_column("a/b", 1, set()), name_of_column("x", 2, {"x"}), name_of_column("..", 3, set())
    ('a_b', 'x_2', 'column 3')
    """
    name = said.replace("/", "_")
    if not is_name(name) or name in taken:
        name = f"{name}_{number}" if is_name(name) else f"column {number}"
    taken.add(name)
    return name
