"""Compiling CDL to a dataset, like ncgen.

`grammar.lark` defines the language, `literals.py` and `datalists.py` read lists of values; this module resolves
names. If ncgen accepts input that has no valid meaning (numbers that do not fit, lists that are too long), this
raises an error.

Spec: NetCDF User's Guide, "CDL"; facts from netCDF-C's ncgen (ncgen.y, semantics.c).
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import MetadataError, MissingDependencyError, NotRepresentableError, OmnizarrError
from omnizarr.netcdf import types
from omnizarr.netcdf.cdl import literals
from omnizarr.netcdf.cdl.datalists import DataList, Values, unbalanced
from omnizarr.netcdf.cdl.literals import Literal, Text
from omnizarr.netcdf.cdl.times import Times
from omnizarr.netcdf.header import Attribute, DimensionHeader, GroupHeader, Selection, Source, VariableHeader
from omnizarr.netcdf.types import AnyType, NcType, UserType
from omnizarr.support import extras

if TYPE_CHECKING:
    import lark

_MAXIMUM_DEPTH: Final = 100
_MAXIMUM_RANK: Final = 32

PRIMITIVES: Final[Mapping[str, NcType]] = {
    **types.TYPES,
    "real": types.FLOAT,
    "long": types.INT,
    "integer": types.INT,
    "ulong": types.UINT,
    "uinteger": types.UINT,
}
"""The atomic types by all their names in CDL."""

_FORMATS: Final = frozenset({
    "classic", "nc3", "1", "64-bit offset", "64-bit-offset", "nc6", "2",
    "netCDF-4", "netcdf-4", "netCDF4", "netcdf4", "nc4", "hdf5", "enhanced", "3",
    "netCDF-4 classic model", "netCDF-4-classic", "netCDF-4_classic", "netCDF4_classic", "nc7", "hdf5-nc3",
    "enhanced-nc3", "4", "64-bit data", "64-bit-data", "nc5", "cdf5", "cdf-5", "5",
})  # fmt: skip
_TRUTH: Final = {"true": "true", "1": "true", "false": "false", "0": "false"}

# The values of special attributes: one number, numbers, any text, one of some words, or a boolean; in ncdump's order.
_Kind: TypeAlias = str | frozenset[str]
_GLOBAL_SPECIAL: Final[Mapping[str, _Kind]] = {
    "_NCProperties": "text", "_SuperblockVersion": "number", "_IsNetcdf4": "number", "_Format": _FORMATS,
}  # fmt: skip
_SPECIAL: Final[Mapping[str, _Kind]] = {
    "_Storage": frozenset({"contiguous", "compact", "chunked"}),
    "_ChunkSizes": "numbers",
    "_Shuffle": "truth",
    "_DeflateLevel": "number",
    "_Fletcher32": "truth",
    "_Filter": "text",
    "_Codecs": "text",
    "_Endianness": frozenset({"little", "big"}),
    "_NoFill": "truth",
    "_QuantizeBitGroomNumberOfSignificantDigits": "number",
    "_QuantizeGranularBitRoundNumberOfSignificantDigits": "number",
    "_QuantizeBitRoundNumberOfSignificantBits": "number",
    "_QuantizeBitRoundNumberOfSignificantDigits": "number",
}


class Parsed(NamedTuple):
    """The content of CDL: the name of the dataset, and the dataset."""

    name: str
    source: Source


def load(file: str | os.PathLike[str] | IO[bytes] | IO[str]) -> Parsed:
    """Compile a CDL file in UTF-8, with or without a byte order mark.

    Invalid UTF-8 in strings is kept. Raises the errors of `parse`, with the name of the file.
    """
    if isinstance(file, str | os.PathLike):
        content: bytes | str = Path(file).read_bytes()
        name = os.fspath(file)
    else:
        content, name = file.read(), str(getattr(file, "name", "CDL"))
    try:
        return parse(content if isinstance(content, str) else content.decode("utf-8", "surrogateescape"))
    except (MetadataError, NotRepresentableError) as error:
        raise error.add(store=name)


def parse(text: str) -> Parsed:
    """Compile CDL to a dataset.

    Parameters
    ----------
    text : str
        One `netcdf` with its braces. A byte order mark at the start is skipped.

    Returns
    -------
    Parsed
        The dataset, with the name after ``netcdf``. User-defined types are in the header as `UserType`.

    Raises
    ------
    MetadataError
        If the text is not valid CDL. The error states line and column.
    NotRepresentableError
        If a variable or an attribute has a user-defined type.

    Examples
    --------
    >>> name, (root, read, _) = parse('''
    ... netcdf weather {
    ... dimensions: time = unlimited ;
    ... variables:  float t(time) ;
    ...             t:units = "K" ;
    ... data:       t = 281.5, _, 280 ;
    ... }''')
    >>> name, root.dimensions["time"].size, root.variables["t"].attributes["units"].python
    ('weather', 3, 'K')
    >>> read("/t", (slice(0, 3),))[[0, 2]]
    array([281.5, 280. ], dtype=float32)
    """
    text = text.removeprefix("\ufeff")
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise MetadataError("text that UTF-8 cannot have", found=repr(text[error.start])) from None
    document = Text(text)
    title, statements = _parsed(document)
    root = _Scope(document, "", "", None)
    _build(root, statements)
    sizes: dict[str, int] = {}
    for path, size in (each for scope in root.walk() for each in scope.sizes()):
        sizes[path] = max(size, sizes.get(path, 0))
    values: dict[str, Values] = {}
    header = root.header(sizes, values)

    def read(name: str, selection: Selection) -> NDArray[Any]:
        return values[name].read(selection)

    return Parsed(re.sub(r"\\(.)|\s", r"\1", title[len("netcdf") :]), Source(header, read))


class _Dimension(NamedTuple):
    name: lark.Token
    size: lark.Token


class _Declaration(NamedTuple):
    type: lark.Token
    variables: list[tuple[lark.Token, ...]]  # the name and the dimensions of each


class _Attribute(NamedTuple):
    type: lark.Token | None
    owner: lark.Token | None  # a variable; in an attribute without a type it can be one
    name: lark.Token
    values: lark.Token


class _Assignment(NamedTuple):
    variable: lark.Token
    values: lark.Token


class _Group(NamedTuple):
    name: lark.Token
    statements: list[_Statement]
    height: int


class _Enum(NamedTuple):
    base: lark.Token
    name: lark.Token
    members: list[tuple[lark.Token, lark.Token]]


class _Opaque(NamedTuple):
    size: lark.Token
    name: lark.Token


class _Vlen(NamedTuple):
    base: lark.Token
    name: lark.Token


class _Compound(NamedTuple):
    name: lark.Token
    fields: list[tuple[lark.Token, ...]]  # the type, the name and the shape of each


_Statement: TypeAlias = (
    _Dimension | _Declaration | _Attribute | _Assignment | _Group | _Enum | _Opaque | _Vlen | _Compound
)


class _TooDeepError(Exception):
    """Groups within groups beyond measure."""


class _UnbalancedError(Exception):
    """A list of values with a brace that has no partner."""


def _group(children: list[Any]) -> _Group:
    name, *statements = children
    height = 1 + max((each.height for each in statements if isinstance(each, _Group)), default=0)
    if height > _MAXIMUM_DEPTH:
        raise _TooDeepError(name)
    return _Group(name, statements, height)


def _present(children: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(each for each in children if each is not None)


def _values(token: lark.Token) -> lark.Token:
    if unbalanced(token) is not None:
        raise _UnbalancedError(token)
    return token


@cache
def _parser() -> lark.Lark:
    """Return the parser, which makes statements of the text; it keeps nothing between two texts."""
    try:
        from lark import Lark  # noqa: PLC0415  (behind the extra)
    except ImportError:
        raise MissingDependencyError("reading CDL needs lark", remedy=extras.remedy("netcdf")) from None
    actions: dict[str, Callable[[list[Any]], Any]] = {
        "start": tuple,
        "group": _group,
        "dimension": lambda children: _Dimension(*children),
        "declaration": lambda children: _Declaration(children[0], children[1:]),
        "variable": _present,
        "global_attribute": lambda children: _Attribute(None, None, *children),
        "untyped_attribute": lambda children: _Attribute(None, *children),
        "typed_attribute": lambda children: _Attribute(*children),
        "assignment": lambda children: _Assignment(*children),
        "enum": lambda children: _Enum(children[0], children[1], children[2:]),
        "member": tuple,
        "opaque": lambda children: _Opaque(*children),
        "vlen": lambda children: _Vlen(*children),
        "compound": lambda children: _Compound(children[0], [each for several in children[1:] for each in several]),
        "fields": lambda children: [(children[0], *each) for each in children[1:]],
        "field": _present,
    }
    return Lark(
        files(__package__).joinpath("grammar.lark").read_text("utf-8"),
        parser="lalr",
        lexer="contextual",
        maybe_placeholders=False,
        transformer=SimpleNamespace(**actions),
        lexer_callbacks={"VALUES": _values},
    )


def _parsed(document: Text) -> tuple[lark.Token, list[_Statement]]:
    """Return the head of the text, and its statements."""
    parser = _parser()
    from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedToken  # noqa: PLC0415

    try:
        title, *statements = cast("Any", parser.parse(document.text))
    except _UnbalancedError as error:
        token = error.args[0]
        brace = unbalanced(document.text, token.start_pos, token.end_pos)
        raise document.error(
            "a brace without its partner",
            token.start_pos if brace is None else brace.start(),
            expected='a value, "," or ";"',
            remedy="close each { in a list of values with }, and end the list with a semicolon",
        ) from None
    except _TooDeepError as error:
        start = error.args[0].start_pos
        raise document.error("groups too deep", start, expected=f"at most {_MAXIMUM_DEPTH} levels") from None
    except UnexpectedCharacters as error:
        raise _syntax_error(document, error.pos_in_stream or 0, error.allowed or ()) from None
    except UnexpectedToken as error:
        start = len(document.text) if error.token.type == "$END" else error.token.start_pos
        raise _syntax_error(document, start or 0, error.expected) from None
    except UnexpectedEOF as error:
        raise _syntax_error(document, len(document.text), error.expected) from None
    return title, statements


# Descriptions of the terminals of the grammar for error messages.
_TERMINALS: Final[Mapping[str, str]] = {
    "NETCDF": "netcdf NAME {",
    "NAME": "a name",
    "PATH": "a path",
    "INTEGER": "a whole number",
    "UNLIMITED": "unlimited",
    "VALUES": "= and values",
    "LBRACE": "{", "RBRACE": "}", "LPAR": "(", "RPAR": ")", "STAR": "*",
    "SEMICOLON": ";", "COMMA": ",", "COLON": ":", "EQUAL": "=",
    "_TYPES": "types:", "_DIMENSIONS": "dimensions:", "_VARIABLES": "variables:", "_DATA": "data:",
    "_GROUP": "group:", "$END": "the end of the text",
}  # fmt: skip


def _syntax_error(document: Text, start: int, expected: Iterable[str]) -> OmnizarrError:
    names = set(expected)
    message, remedy = "not CDL", None
    if document.text[start : start + 1] in {'"', "'"} and "SEMICOLON" in names:
        message, remedy = (
            "text that nothing closes",
            "close it with the same quote; a quote within it needs a backslash",
        )
    elif "SEMICOLON" in names:
        remedy = "is the semicolon missing that ends what stands before?"
    elif "NETCDF" in names:
        remedy = "CDL begins with: netcdf NAME {"
    words = sorted(_TERMINALS.get(each, each.lower()) for each in names if not each.startswith("__"))
    return document.error(message, start, expected=" or ".join(words), remedy=remedy)


@dataclass(slots=True)
class _Variable:
    """A variable as far as it is known."""

    name: str
    type: NcType
    dimensions: tuple[str, ...]
    attributes: dict[str, Attribute] = field(default_factory=dict)
    special: dict[str, Attribute] = field(default_factory=dict)
    data: DataList | None = None

    @property
    def fill(self) -> Any:
        """The value of elements that are not given; for char, one byte."""
        value = self.attributes["_FillValue"].value if "_FillValue" in self.attributes else None
        if value is None:
            return self.type.default_fill
        if isinstance(value, str):
            return value.encode("utf-8", "surrogateescape") or b"\0"
        return value[0]


@dataclass(slots=True)
class _Scope:
    """A group as far as it is known, and what names mean in it."""

    document: Text
    name: str
    path: str
    parent: _Scope | None
    dimensions: dict[str, DimensionHeader] = field(default_factory=dict)
    types: dict[str, UserType] = field(default_factory=dict)
    variables: dict[str, _Variable] = field(default_factory=dict)
    attributes: dict[str, Attribute] = field(default_factory=dict)
    special: dict[str, Attribute] = field(default_factory=dict)
    groups: dict[str, _Scope] = field(default_factory=dict)

    def upwards(self) -> Iterator[_Scope]:
        """Yield this group and those around it."""
        scope: _Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def walk(self) -> Iterator[_Scope]:
        """Yield this group and all below."""
        yield self
        for group in self.groups.values():
            yield from group.walk()

    def new_name(self, token: lark.Token, *taken: Mapping[str, Any]) -> str:
        """Return the name of something new, which must be in none of `taken`."""
        name = literals.name(token, self.document, token.start_pos or 0)
        if any(name in each for each in taken):
            raise self.error("a name that is taken", token, remedy="give each its own name within a group")
        return name

    def at(self, token: lark.Token) -> tuple[_Scope | None, str]:
        """Return the group that a reference means, if it says so, and the name in it."""
        start = token.start_pos or 0
        *groups, last = [literals.name(each, self.document, start) for each in token.removeprefix("/").split("/")]
        if not token.startswith("/"):
            return None, last
        *_, scope = self.upwards()
        for each in groups:
            if each not in scope.groups:
                raise self.error("a group that does not exist (yet)", token, remedy="define it above")
            scope = scope.groups[each]
        return scope, last

    def variable(self, token: lark.Token) -> _Variable | None:
        """Return the variable of this name in this group, or with this path."""
        scope, name = self.at(token)
        return (scope or self).variables.get(name)

    def dimension(self, token: lark.Token) -> str:
        """Return the full name of a dimension: of the nearest group that has one of this name."""
        scope, name = self.at(token)
        for each in self.upwards() if scope is None else (scope,):
            if name in each.dimensions:
                return f"{each.path}/{name}"
        raise self.error(
            "a dimension that does not exist (yet)",
            token,
            remedy="define it under dimensions: of this or an outer group",
        )

    def type(self, token: lark.Token) -> AnyType | None:
        """Return the type of this name: an atomic one, of the nearest group that has it, or of any."""
        if token in PRIMITIVES:
            return PRIMITIVES[token]
        scope, name = self.at(token)
        if scope is not None:
            return scope.types.get(name)
        *around, root = self.upwards()
        return next((each.types[name] for each in (*around, *root.walk()) if name in each.types), None)

    def known_type(self, token: lark.Token) -> AnyType:
        """Return the type of this name. Raises MetadataError if there is none."""
        found = self.type(token)
        if found is None:
            raise self.error("a type that does not exist (yet)", token, expected=", ".join(PRIMITIVES))
        return found

    def atomic_type(self, token: lark.Token) -> NcType:
        """Return the atomic type of this name. Raises NotRepresentableError for one that a user defined."""
        found = self.known_type(token)
        if isinstance(found, UserType):
            raise self.document.error(
                f"a value of the {found.kind} type {found.name!r}: NCZarr has no types that users define",
                token.start_pos or 0,
                token.end_pos,
                NotRepresentableError,
                expected=", ".join(PRIMITIVES),
                remedy="use an atomic type: the base type of an enum, a variable for each member of a compound, ...",
            )
        return found

    def error(self, message: str, token: lark.Token, **fields: Any) -> OmnizarrError:
        """Return an error about a token."""
        return self.document.error(message, token.start_pos or 0, token.end_pos, MetadataError, **fields)

    def literals(self, values: lark.Token) -> list[Literal]:
        """Return the constants of an attribute."""
        start = values.start_pos or 0
        return literals.literals(self.document, start + 1, start + len(values))

    def sizes(self) -> Iterator[tuple[str, int]]:
        """Yield how long the variables of this group need unlimited dimensions to be."""
        for variable in self.variables.values():
            if variable.data is not None:
                yield from ((variable.dimensions[axis], size) for axis, size in variable.data.sizes.items())

    def header(self, sizes: Mapping[str, int], values: dict[str, Values]) -> GroupHeader:
        """Return the header, and put the data of its variables into `values` by full name."""
        return GroupHeader(
            name=self.name,
            dimensions={
                name: DimensionHeader(name, sizes.get(f"{self.path}/{name}", each.size), each.unlimited)
                for name, each in self.dimensions.items()
            },
            types=self.types,
            variables={name: self._variable_header(each, sizes, values) for name, each in self.variables.items()},
            attributes=self.attributes,
            special=_sorted(self.special, _GLOBAL_SPECIAL),
            groups={name: each.header(sizes, values) for name, each in self.groups.items()},
        )

    def _variable_header(
        self, variable: _Variable, sizes: Mapping[str, int], values: dict[str, Values]
    ) -> VariableHeader:
        *_, root = self.upwards()
        found = [root.dimension_at(each) for each in variable.dimensions]
        data = variable.data or DataList(variable.type, found, variable.fill)
        shape = [sizes.get(full, each.size) for full, each in zip(variable.dimensions, found, strict=True)]
        path = f"{self.path}/{variable.name}"
        if math.prod(shape) >= 2**63:
            raise NotRepresentableError(
                "a variable of too many elements", path=path[1:], found=str(shape), expected="fewer than 2^63"
            )
        values[path] = data.laid_out(shape)
        return VariableHeader(
            name=variable.name,
            type=variable.type,
            dimensions=variable.dimensions,
            attributes=variable.attributes,
            special=_sorted(variable.special, _SPECIAL),
        )

    def dimension_at(self, full: str) -> DimensionHeader:
        """Return a dimension by its full name."""
        scope = self
        *groups, name = full.removeprefix("/").split("/")
        for each in groups:
            scope = scope.groups[each]
        return scope.dimensions[name]


def _sorted(special: Mapping[str, Attribute], order: Iterable[str]) -> dict[str, Attribute]:
    return {name: special[name] for name in order if name in special}


def _build(scope: _Scope, statements: Iterable[_Statement]) -> None:
    """Put what statements say into a group."""
    for statement in statements:
        match statement:
            case _Dimension():
                name = scope.new_name(statement.name, scope.dimensions)
                if statement.size.type == "UNLIMITED":
                    scope.dimensions[name] = DimensionHeader(name, 0, unlimited=True)
                else:
                    scope.dimensions[name] = DimensionHeader(name, _whole_number(scope, statement.size, 0, 2**63 - 1))
            case _Declaration():
                for token, *dimensions in statement.variables:
                    _declare(scope, statement.type, token, dimensions)
            case _Attribute():
                _attribute(scope, statement)
            case _Assignment():
                _assign(scope, statement)
            case _Group():
                name = scope.new_name(statement.name, scope.groups, scope.variables, scope.types)
                scope.groups[name] = _Scope(scope.document, name, f"{scope.path}/{name}", scope)
                _build(scope.groups[name], statement.statements)
            case _:
                name = scope.new_name(statement.name, scope.groups, scope.variables, scope.types)
                scope.types[name] = _user_type(scope, name, statement)


def _whole_number(scope: _Scope, token: lark.Token, low: int, high: int) -> int:
    start = token.start_pos or 0
    (literal,) = literals.literals(scope.document, start, start + len(token))
    found = literal.value if literal.value <= high else literals.with_sign(literal.value, literal.type)
    if not low <= found <= high:
        raise scope.error("a number out of range", token, expected=f"{low} to {high}")
    return int(found)


def _declare(scope: _Scope, of_type: lark.Token, token: lark.Token, dimensions: list[lark.Token]) -> None:
    name = scope.new_name(token, scope.groups, scope.variables, scope.types)
    if len(dimensions) > _MAXIMUM_RANK:
        raise scope.error("too many dimensions", token, expected=f"at most {_MAXIMUM_RANK}")
    scope.variables[name] = _Variable(
        name, scope.atomic_type(of_type), tuple(scope.dimension(each) for each in dimensions)
    )


def _assign(scope: _Scope, assignment: _Assignment) -> None:
    variable = scope.variable(assignment.variable)
    if variable is None:
        raise scope.error("a variable that does not exist", assignment.variable, remedy="declare it under variables:")
    if variable.data is not None:
        raise scope.error("a variable that has data already", assignment.variable, remedy="leave one of the lists out")
    *_, root = scope.upwards()
    dimensions = [root.dimension_at(each) for each in variable.dimensions]
    variable.data = DataList(variable.type, dimensions, variable.fill, _times(scope, assignment.variable, variable))
    start = assignment.values.start_pos or 0
    variable.data.parse(scope.document, start + 1, start + len(assignment.values))


def _times(scope: _Scope, token: lark.Token, variable: _Variable) -> Times | None:
    """Return what numbers of a variable mean as times: by its own attributes, or by those whose bounds it holds."""
    own = Times.of(variable.attributes)
    if own is not None:
        return own
    place, name = scope.at(token)
    for each in (place or scope).variables.values():
        if "bounds" in each.attributes and each.attributes["bounds"].python == name:
            return Times.of(each.attributes)
    return None


def _attribute(scope: _Scope, attribute: _Attribute) -> None:
    """Put an attribute where it belongs: to a variable, or to the group."""
    of_type, variable = attribute.type, None
    if attribute.owner is not None:
        variable = scope.variable(attribute.owner)
        if variable is None and (of_type is not None or scope.type(attribute.owner) is None):
            raise scope.error("a variable that does not exist", attribute.owner, remedy="declare it above")
        if variable is None:
            of_type = attribute.owner
    nc_type = None if of_type is None else scope.atomic_type(of_type)
    name = scope.new_name(attribute.name)
    found = scope.literals(attribute.values)
    for each in found:
        if each.type is None:
            raise scope.document.error("a fill mark in an attribute", each.start, each.end, expected="a value")
    specials = _SPECIAL if variable is not None else _GLOBAL_SPECIAL if scope.parent is None else {}
    owner = scope if variable is None else variable
    if name in specials:
        owner.special[name] = _special(scope, attribute, specials[name], found)
        if variable is not None:
            _agree(scope, variable, name, attribute)
    elif name in _SPECIAL or name in _GLOBAL_SPECIAL:
        place = "a variable" if name in _SPECIAL else "the root group"
        raise scope.error("a special attribute in the wrong place", attribute.name, expected=f"at {place}")
    elif variable is not None and name == "_FillValue":
        value = _value(scope, variable.type, found)
        is_one = len(found) == 1 and (
            variable.type is not types.CHAR or len(literals.text_of(scope.document, found)) <= 1
        )
        if not is_one:
            raise scope.error("not a fill value", attribute.values, expected=f"one value of type {variable.type}")
        variable.attributes[name] = value
    else:
        owner.attributes[name] = _value(scope, nc_type or literals.infer(scope.document, found), found)


def _value(scope: _Scope, nc_type: NcType, found: list[Literal]) -> Attribute:
    if nc_type is types.CHAR:
        return Attribute(nc_type, literals.text_of(scope.document, found).decode("utf-8", "surrogateescape"))
    return Attribute(nc_type, literals.values(scope.document, found, nc_type, None))


def _special(scope: _Scope, attribute: _Attribute, kind: _Kind, found: list[Literal]) -> Attribute:
    """Return the value of a special attribute, as ncdump shows it."""
    if kind in {"number", "numbers"}:
        value = _value(scope, types.INT, found)
        if len(found) == 1 or (kind == "numbers" and found):
            return value
        raise scope.error("not the value of this attribute", attribute.values, expected="one whole number")
    is_number = kind == "truth" and len(found) == 1 and isinstance(found[0].value, int)
    text = str(found[0].value) if is_number else str(_value(scope, types.CHAR, found).value)
    if kind == "truth":
        if text in _TRUTH:
            return Attribute(types.CHAR, _TRUTH[text])
        raise scope.error("not the value of this attribute", attribute.values, expected='"true", "false", 1 or 0')
    if isinstance(kind, frozenset) and text not in kind:
        raise scope.error("not the value of this attribute", attribute.values, expected=", ".join(sorted(kind)))
    return Attribute(types.CHAR, text)


def _agree(scope: _Scope, variable: _Variable, name: str, attribute: _Attribute) -> None:
    """Let the storage and the sizes of chunks agree: as in ncgen, the last one counts."""
    value = variable.special[name].value
    if name == "_ChunkSizes":
        if len(value) != len(variable.dimensions) or any(int(each) < 1 for each in value):
            raise scope.error(
                "not the sizes of chunks", attribute.values, expected=f"{len(variable.dimensions)} positive numbers"
            )
        variable.special["_Storage"] = Attribute(types.CHAR, "chunked")
    elif name == "_Storage" and value != "chunked":
        variable.special.pop("_ChunkSizes", None)


def _user_type(scope: _Scope, name: str, statement: _Enum | _Opaque | _Vlen | _Compound) -> UserType:
    match statement:
        case _Enum():
            base = scope.known_type(statement.base)
            if not isinstance(base, NcType) or base.dtype.kind not in "iu":
                raise scope.error("not a base of an enum", statement.base, expected="an integer type")
            members: dict[str, int] = {}
            for token, number in statement.members:
                members[scope.new_name(token, members)] = _whole_number(scope, number, *literals.limits(base))
            return UserType(name, "enum", base.dtype, members, base)
        case _Opaque():
            return UserType(name, "opaque", np.dtype(f"V{_whole_number(scope, statement.size, 1, 2**31 - 1)}"))
        case _Vlen():
            base = scope.known_type(statement.base)
            return UserType(name, "vlen", np.dtype(object), base=base if isinstance(base, NcType) else None)
        case _Compound():
            listed: dict[str, tuple[Any, ...]] = {}
            for of_type, token, *shape in statement.fields:
                lengths = tuple(_whole_number(scope, each, 1, 2**31 - 1) for each in shape)
                listed[scope.new_name(token, listed)] = (scope.known_type(of_type).dtype, lengths)
            try:
                dtype = np.dtype([(field_name, *each) for field_name, each in listed.items()], align=True)
            except (ValueError, TypeError):
                raise scope.error("a compound too large", statement.name, expected="fewer than 2^31 bytes") from None
            return UserType(name, "compound", dtype)
