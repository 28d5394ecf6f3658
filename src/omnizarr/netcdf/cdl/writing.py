r"""CDL of a dataset, as ncdump prints it.

The text equals that of ncdump 4.10, byte for byte, except where ncdump is wrong. There, ncgen reads this text
as the same dataset:

- a dimension that another one hides is called by the group that defines it; ncdump may take a group below
- a ``%`` in a name is escaped, as ncgen needs it
- an empty string is empty, or the fill value; ncdump has NIL for one that was never written, or that NCZarr holds
- names of enum members are escaped in data as they are in declarations; members of 2^63 and more are not negative;
  a value without a name is a number, where ncdump stops
- in strings, a vertical tab is not a newline, and NUL is ``\000``, where ncdump ends the string; in strings within
  compounds, control characters are escaped
- rows of a char variable with several dimensions are not split behind newlines: each part would be a row
- ``C_format`` of char variables, and one that does not fit the type of its variable, is ignored
- NULs at the end of a row of characters are written if ncgen would fill it up with another fill value
- special attributes of a variable that is called like a section (``data``) have a blank before their colon
- text of special attributes is escaped in full
- a number that would be read as the fill value but is not, or as infinity (the largest double), has more digits
- with `times`, all variables that are named as ``bounds`` show times, not only the last

Spec: netcdf-c, ncdump/ncdump.c, ncdump/vardata.c, ncdump/dumplib.c; the manual page ncdump(1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import ArrayNotFoundError, GroupNotFoundError, SettingError
from omnizarr.netcdf import types
from omnizarr.netcdf.cdl import numbers, values
from omnizarr.netcdf.cdl.data import Comments, Rows, Texts, itemsize_of
from omnizarr.netcdf.cdl.lines import Lines, escaped_name, quoted, quoted_json, width
from omnizarr.netcdf.cdl.numbers import Precision
from omnizarr.netcdf.header import Attribute, GroupHeader, Selection, Source, VariableHeader
from omnizarr.netcdf.types import AnyType, NcType, UserType
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from omnizarr.netcdf.cdl import times as dates
    from omnizarr.netcdf.cdl.times import Times
else:  # imported when dates are asked for
    dates = Lazy("omnizarr.netcdf.cdl.times")

_SECTIONS: Final = frozenset(("variables", "dimensions", "data", "group", "types"))


@dataclass(frozen=True, slots=True)
class _Options:
    header_only: bool
    special: bool
    variables: frozenset[str] | None
    groups: frozenset[str] | None
    coordinates_only: bool
    separator: Literal[" ", "T"] | None
    precision: Precision
    width: int
    comments: Comments | None


def dump(
    source: Source,
    *,
    name: str,
    header_only: bool = False,
    special: bool = False,
    variables: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    coordinates_only: bool = False,
    times: bool | Literal["T"] = False,
    precision: tuple[int | None, int | None] | None = None,
    width: int = 80,
    comments: Literal["brief", "full"] | None = None,
    language: Literal["c", "f"] = "c",
) -> Iterator[str]:
    """Return the CDL of a dataset, part by part: joined, the parts are what ncdump prints.

    At most some megabytes of data are in memory at once.

    Parameters
    ----------
    source : Source
    name : str
        Name of the dataset, like ``ncdump -n``.
    header_only : bool
        Whether to omit all data, like ``-h``.
    special : bool
        Whether to include attributes that state how values are stored, like ``-s``.
    variables : sequence of str, optional
        Variables with data, like ``-v``: names (in any group), ends of full names or full names (``"/g/v"``).
    groups : sequence of str, optional
        Groups with data, like ``-g``: names (at any depth), ends of full names or full names; ``"/"`` is the root.
    coordinates_only : bool
        Whether to include only the data of coordinate variables, like ``-c``.
    times : bool or "T"
        Whether to write numbers whose units contain "since" as dates, like ``-t``; "T": with a T between date
        and time, like ``-i``.
    precision : tuple of (int, int), optional
        Significant digits of float and double, like ``-p``. The default is 7 and 15.
    width : int
        Maximum length of lines in the data section, like ``-l``.
    comments : {"brief", "full"}, optional
        Comments with the indices of each row, like ``-b``, or of each value, like ``-f``.
    language : {"c", "f"}
        How these indices are counted: from 0, or from 1 with the fastest first.

    Raises
    ------
    ArrayNotFoundError, GroupNotFoundError
        If a given variable or group does not exist.
    SettingError
        If width or precision is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from omnizarr.netcdf.header import Attribute, DimensionHeader, GroupHeader, Source, VariableHeader
    >>> time = VariableHeader(
    ...     name="time", type=types.FLOAT, dimensions=("/time",), attributes={"units": Attribute.of("days")}
    ... )
    >>> root = GroupHeader(dimensions={"time": DimensionHeader("time", 3, unlimited=True)}, variables={"time": time})
    >>> source = Source(root, lambda name, selection: np.array([0, 0.5, 1], "f4"))
    >>> print("".join(dump(source, name="days")).expandtabs())
    netcdf days {
    dimensions:
            time = UNLIMITED ; // (3 currently)
    variables:
            float time(time) ;
                    time:units = "days" ;
    data:
    <BLANKLINE>
     time = 0, 0.5, 1 ;
    }
    <BLANKLINE>
    """
    options = _Options(
        header_only=header_only,
        special=special,
        variables=None if variables is None else _named_variables(source.root, variables),
        groups=None if groups is None else _named_groups(source.root, groups),
        coordinates_only=coordinates_only,
        separator={False: None, True: " ", "T": "T"}[times],
        precision=_precision(precision),
        width=_at_least_10(width),
        comments=None if comments is None else Comments(each=comments == "full", fortran=language == "f"),
    )
    return _Writer(source, options).dataset(name)


def _precision(given: tuple[int | None, int | None] | None) -> Precision:
    precision = Precision(*(given or ()))
    if any(digits is not None and not 1 <= digits <= 20 for digits in precision):
        raise SettingError("no such number of significant digits", found=given, expected="1 to 20")
    return precision


def _at_least_10(given: int) -> int:
    if given < 10:
        raise SettingError("lines are too short", found=given, expected="10 or more")
    return given


def _is_meant(full_name: str, name: str) -> bool:
    return full_name == name if name.startswith("/") else full_name.endswith(f"/{name}")


def _named_variables(root: GroupHeader, names: Sequence[str]) -> frozenset[str]:
    known = [f"{path}/{name}" for path, group in root.walk() for name in group.variables]
    for name in names:
        if not any(_is_meant(each, name) for each in known):
            raise ArrayNotFoundError("there is no such variable", found=name, expected=", ".join(known) or None)
    return frozenset(each for each in known if any(_is_meant(each, name) for name in names))


def _named_groups(root: GroupHeader, names: Sequence[str]) -> frozenset[str]:
    names = ["" if name == "/" else name for name in names]
    known = [path for path, _ in root.walk()]
    for name in names:
        if name not in known and not any(_is_meant(each, name) for each in known):
            raise GroupNotFoundError("there is no such group", found=name, expected=", ".join(known[1:]) or None)
    return frozenset(each for each in known if any(each == name or (name and _is_meant(each, name)) for name in names))


class _Writer:
    """Prints one dataset; groups before those in them, the header of each before its data."""

    def __init__(self, source: Source, options: _Options) -> None:
        self._root = source.root
        self._read = source.read
        self._options = options
        self._lines = Lines(options.width)
        self._dimensions = source.root.sizes()
        # Strings of attributes go on in a new line behind each newline, unless several strings could be meant.
        form = source.root.special.get("_Format")
        self._is_classic = form is not None and form.value != "netCDF-4"
        # Variables that are named as bounds of another one, by the path of their group and their name.
        self._bounds: dict[tuple[str, str], VariableHeader] = {}

    def dataset(self, name: str) -> Iterator[str]:
        yield f"netcdf {escaped_name(name)} {{\n"
        yield from self._group((self._root,), "")
        yield "}\n"

    def _group(self, above: tuple[GroupHeader, ...], path: str) -> Iterator[str]:
        """Yield what is in a group; `above` are the groups from the root to it."""
        group = above[-1]
        yield from self._types(above, path)
        margin = self._lines.margin
        if group.dimensions:
            yield f"{margin}dimensions:\n"
        for name, dimension in group.dimensions.items():
            size = f"UNLIMITED ; // ({dimension.size} currently)" if dimension.unlimited else f"{dimension.size} ;"
            yield f"{margin}\t{escaped_name(name)} = {size}\n"
        yield from self._variables(above, path)
        yield from self._group_attributes(above)
        if not self._options.header_only and (self._options.groups is None or path in self._options.groups):
            yield from self._data(above, path)
        for name, each in group.groups.items():
            yield f"\n{self._lines.margin}group: {escaped_name(name)} {{\n"
            self._lines.indent += 2
            yield from self._group((*above, each), f"{path}/{name}")
            yield f"{self._lines.margin}}} // group {escaped_name(name)}\n"
            self._lines.indent -= 2

    # Types and dimensions

    def _types(self, above: tuple[GroupHeader, ...], path: str) -> Iterator[str]:
        defined = [each for each in above[-1].types.values() if isinstance(each, UserType)]
        if not defined:
            return
        yield f"{self._lines.margin}types:\n"
        self._lines.indent += 2
        for each in defined:
            yield from getattr(self, f"_{each.kind}")(each, above)
        self._lines.indent -= 2

    def _enum(self, each: UserType, above: tuple[GroupHeader, ...]) -> Iterator[str]:
        base = each.base or types.of_dtype(each.dtype)
        members = [f"{escaped_name(name)} = {value}" for name, value in each.members.items()]
        yield self._lines.margin + self._lines.put(f"{base.name} enum {escaped_name(each.name)} {{")
        yield from (self._lines.put(f"{member}, ") for member in members[:-1])
        yield self._lines.put(f"{''.join(members[-1:])}}} ;\n")

    def _opaque(self, each: UserType, above: tuple[GroupHeader, ...]) -> Iterator[str]:
        yield f"{self._lines.margin}opaque({each.dtype.itemsize}) {escaped_name(each.name)} ;\n"

    def _vlen(self, each: UserType, above: tuple[GroupHeader, ...]) -> Iterator[str]:
        yield f"{self._lines.margin}{(each.base or types.INT).name}(*) {escaped_name(each.name)} ;\n"

    def _compound(self, each: UserType, above: tuple[GroupHeader, ...]) -> Iterator[str]:
        margin, name = self._lines.margin, escaped_name(each.name)
        yield f"{margin}compound {name} {{\n"
        for member in each.dtype.names or ():
            dtype = each.dtype[member]
            shape = f"({', '.join(map(str, dtype.shape))})" if dtype.shape else ""
            yield f"{margin}  {self._member_type(dtype.base, above)} {escaped_name(member)}{shape} ;\n"
        yield f"{margin}}}; // {name}\n"

    def _member_type(self, dtype: np.dtype[Any], above: tuple[GroupHeader, ...]) -> str:
        """Return the name of the type of a member: a type of a program is known by what it is in memory."""
        for group in reversed(above):
            for each in group.types.values():
                if isinstance(each, UserType) and dtype.kind == "V" and each.dtype == dtype:
                    return escaped_name(each.name)
        return escaped_name(values.base_of(dtype).name)

    def _type_name(self, of_type: AnyType, above: tuple[GroupHeader, ...]) -> str:
        """Return the name of a type as it is known in a group: in full if the group is not below that of the type."""
        if isinstance(of_type, UserType):
            nearest = next((each for each in reversed(above) if of_type.name in each.types), None)
            if nearest is None or nearest.types[of_type.name] != of_type:
                for path, group in self._root.walk():
                    if group.types.get(of_type.name) == of_type:
                        return escaped_name(f"{path}/{of_type.name}")
        return escaped_name(of_type.name)

    def _dimension_name(self, full_name: str, above: tuple[GroupHeader, ...], path: str) -> str:
        """Return what a dimension is called in a group: its name if that is the nearest one of this name, else all."""
        home, _, name = full_name.rpartition("/")
        nearest = path
        for group in reversed(above):
            if name in group.dimensions:
                break
            nearest = nearest.rpartition("/")[0]
        return escaped_name(name if nearest == home else full_name)

    # Variables and attributes

    def _variables(self, above: tuple[GroupHeader, ...], path: str) -> Iterator[str]:
        margin = self._lines.margin
        variables = above[-1].variables
        if variables:
            yield f"{margin}variables:\n"
        for name, each in variables.items():
            dimensions = ", ".join([self._dimension_name(dimension, above, path) for dimension in each.dimensions])
            shape = f"({dimensions})" if dimensions else ""
            yield f"{margin}\t{self._type_name(each.type, above)} {escaped_name(name)}{shape} ;\n"
            times = self._times(each.attributes)
            for attribute_name, attribute in each.attributes.items():
                yield self._attribute(name, attribute_name, attribute, above, times)
            for attribute_name, attribute in each.special.items():
                # An attribute that is not hidden states that values were rounded.
                if self._options.special or attribute_name.startswith("_Quantize"):
                    yield self._special(name, attribute_name, attribute)
            if "bounds" in each.attributes:
                self._bounds[path, str(each.attributes["bounds"].python)] = each

    def _group_attributes(self, above: tuple[GroupHeader, ...]) -> Iterator[str]:
        group, is_root = above[-1], len(above) == 1
        if group.attributes or self._options.special:
            yield f"\n{self._lines.margin}// {'global' if is_root else 'group'} attributes:\n"
        for name, each in group.attributes.items():
            yield self._attribute("", name, each, above, None)
        if is_root and self._options.special:
            for name, each in group.special.items():
                yield self._special("", name, each)

    def _attribute(
        self, owner: str, name: str, attribute: Attribute, above: tuple[GroupHeader, ...], times: Times | None
    ) -> str:
        of_type: AnyType = attribute.type
        is_named = isinstance(of_type, UserType) or of_type == types.STRING
        head = f"{self._lines.margin}\t\t{f'{self._type_name(of_type, above)} ' if is_named else ''}"
        value, comment = self._attribute_value(attribute), _comment(attribute, times, self._lines)
        return f"{head}{_of(owner, name)} = {value} ;{comment}\n"

    def _attribute_value(self, attribute: Attribute) -> str:
        of_type: AnyType = attribute.type
        value = attribute.value
        if isinstance(value, str):
            text = quoted(value.rstrip("\0"))
            return text.replace("\\n", '\\n",\n\t\t\t"') if self._is_classic else text
        if len(value) == 0:
            return '""'
        if isinstance(of_type, NcType):
            if of_type == types.STRING:
                return ", ".join(map(quoted, value))
            return ", ".join(numbers.attribute(value, of_type, self._options.precision))
        texts = values.texts(value, of_type, self._options.precision)
        if of_type.kind in {"enum", "opaque"}:
            return ", ".join(texts)
        return self._lines.items(texts[:-1]) + self._lines.put(texts[-1])

    def _special(self, owner: str, name: str, attribute: Attribute) -> str:
        value = attribute.value
        if isinstance(value, str):
            text = quoted_json(value)
        elif attribute.type == types.STRING:
            text = ", ".join(map(quoted_json, value))
        else:
            text = ", ".join(map(str, value.tolist()))
        return f"{self._lines.margin}\t\t{_of(owner, name)} = {text} ;\n"

    # Data

    def _data(self, above: tuple[GroupHeader, ...], path: str) -> Iterator[str]:
        variables = above[-1].variables
        if variables:
            yield f"{self._lines.margin}data:\n"
        for name, each in variables.items():
            dimensions = tuple(self._dimensions[dimension] for dimension in each.dimensions)
            if self._is_wanted(each, f"{path}/{name}", above) and all(dimension.size for dimension in dimensions):
                texts = self._texts(each, path)
                rows = Rows(
                    name, dimensions, texts, self._lines, self._options.comments, pads=_is_padded_with_nul(each)
                )
                yield from rows.printed(self._reader(f"{path}/{name}"), itemsize_of(each.type.dtype))

    def _reader(self, full_name: str) -> Callable[[Selection], NDArray[Any]]:
        return lambda selection: self._read(full_name, selection)

    def _is_wanted(self, variable: VariableHeader, full_name: str, above: tuple[GroupHeader, ...]) -> bool:
        if self._options.variables is not None and full_name not in self._options.variables:
            return False
        if not self._options.coordinates_only:
            return True
        return len(variable.dimensions) == 1 and any(variable.name in group.dimensions for group in above)

    def _times(self, attributes: Any) -> Times | None:
        separator = self._options.separator
        return None if separator is None else dates.Times.of(attributes, separator)

    def _texts(self, variable: VariableHeader, path: str) -> Texts | None:
        """Return what makes texts of the values of a variable; None if rows are strings."""
        of_type, precision = variable.type, self._options.precision
        if of_type == types.CHAR:
            return None
        if isinstance(of_type, UserType) or of_type == types.STRING:
            return _with_fills(variable, lambda array: values.texts(array, of_type, precision))
        bounded = self._bounds.get((path, variable.name), variable)
        times = self._times(bounded.attributes)
        if times is not None:
            return _with_fills(variable, times.texts)
        attribute = variable.attributes.get("C_format")
        conversion = numbers.data_format(
            of_type, precision, attribute.value if attribute is not None and isinstance(attribute.value, str) else None
        )
        fill = _fill(variable)
        number = None if fill is None else fill[0]
        return _with_fills(variable, lambda array: numbers.data(array, of_type, conversion, number))


def _of(owner: str, name: str) -> str:
    """Return the name of an attribute; sections begin with a word and a colon as well."""
    return f"{escaped_name(owner)}{' ' if owner in _SECTIONS else ''}:{escaped_name(name)}"


def _comment(attribute: Attribute, times: Times | None, lines: Lines) -> str:
    """Return the numbers of an attribute as times, in a comment: more than two in lines of their own."""
    of_type: AnyType = attribute.type
    if times is None or isinstance(attribute.value, str) or isinstance(of_type, UserType) or of_type.is_text:
        return ""
    texts = times.texts(attribute.value)
    if len(texts) <= 2:
        return f" // {', '.join(texts)}" if texts else ""
    # Tabs count for eight, and the length of lines that was asked for is what fits.
    start = f"\n{lines.margin}\t\t  // "
    parts, position = [start], 21
    for number, text in enumerate(texts):
        item = text if number == len(texts) - 1 else f"{text},"
        if number and position + 1 + width(item) > lines.length:
            parts.append(start)
            position = 21
        elif number:
            parts.append(" ")
            position += 1
        parts.append(item)
        position += width(item)
    return "".join(parts)


def _is_padded_with_nul(variable: VariableHeader) -> bool:
    """Return whether ncgen fills up a row of characters with NULs: it takes the fill value."""
    own = variable.attributes.get("_FillValue")
    return own is None or not isinstance(own.value, str) or own.value in {"", "\0"}


def _fill(variable: VariableHeader) -> NDArray[Any] | None:
    """Return the fill value of a variable, as a vector: its own one, else that of its type; bytes have none."""
    of_type = variable.type
    own = variable.attributes.get("_FillValue")
    if own is not None and own.type == of_type and not isinstance(own.value, str) and len(own.value) == 1:
        return own.value
    if isinstance(of_type, UserType) or of_type in {types.BYTE, types.UBYTE}:
        return None
    return np.array([of_type.default_fill], of_type.dtype)


def _with_fills(variable: VariableHeader, texts: Texts) -> Texts:
    """Return `texts`, but of fill values ``_``."""
    fill = _fill(variable)
    if fill is None:
        return texts
    if isinstance(variable.type, UserType):
        fill_text = texts(fill)[0]
        return lambda array: ["_" if text == fill_text else text for text in texts(array)]
    return lambda array: _filled(array, _is_fill(array, fill[0]), texts)


def _is_fill(array: NDArray[Any], fill: Any) -> NDArray[np.bool_]:
    return np.asarray(array == fill) if array.dtype == object else numbers.is_fill(array, fill)


def _filled(array: NDArray[Any], mask: NDArray[np.bool_], texts: Texts) -> list[str]:
    if not mask.any():
        return texts(array)
    result = ["_"] * len(array)
    for index, text in zip(np.flatnonzero(~mask).tolist(), texts(array[~mask]), strict=True):
        result[index] = text
    return result
