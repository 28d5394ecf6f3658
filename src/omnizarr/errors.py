"""Every exception omnizarr raises.

The tree, with the built-in exceptions that they are as well::

    OmnizarrError
    ├── NodeNotFoundError (FileNotFoundError, KeyError, ValueError)
    │   ├── ArrayNotFoundError
    │   └── GroupNotFoundError
    ├── NodeExistsError (FileExistsError, ValueError)
    │   ├── ContainsArrayError
    │   └── ContainsGroupError
    ├── NodeNameError (ValueError)
    ├── MetadataError (ValueError)                a document breaks its format
    │   ├── NotJSONError (TypeError)              a value that JSON cannot hold
    │   ├── LengthTypeError (TypeError)           a length that is not an integer
    │   ├── ConsolidatedMetadataError             it is broken or contradicts the documents
    │   └── UnknownExtensionError                 a name that omnizarr does not know
    │       ├── UnknownCodecError
    │       ├── UnknownDataTypeError (TypeError)
    │       ├── UnknownChunkGridError
    │       ├── UnknownChunkKeyEncodingError
    │       └── UnknownStorageTransformerError
    ├── NotRepresentableError (ValueError)        a format cannot express it
    │   └── FixedAttributeError (AttributeError)  an attribute that is set by other means
    ├── CodecError (ValueError)                   a codec cannot be set up, or cannot encode this
    │   ├── PickleDisabledError (PermissionError)
    │   └── MissingDependencyError (ImportError)
    ├── ChunkError (ValueError)                   stored bytes cannot be decoded
    │   ├── ChunkMemoryError (MemoryError)        the chunk is too large for the memory
    │   ├── ChecksumError
    │   ├── ChunkSizeError
    │   └── ShardIndexError
    ├── ChunkNotFoundError (KeyError)             a missing chunk, with missing="error"
    ├── SelectionError (IndexError, ValueError)
    │   └── BoundsCheckError
    ├── SelectionMemoryError (MemoryError)        the selected elements are too many for the memory
    ├── ShapeError (ValueError)                   a value does not fit the selection
    ├── JoinError (ValueError)                    arrays cannot be joined
    ├── ValueTypeError (TypeError, ValueError)    a value cannot be converted to the data type
    ├── ReadOnlyError (PermissionError, RuntimeError, ValueError)
    ├── SettingError (ValueError)                 a setting has an invalid value
    ├── SchedulerError (RuntimeError)             a cluster cannot be used
    ├── ServerError (OSError)                     a server cannot listen at an address
    └── StoreError (OSError)
        ├── InvalidKeyError (ValueError)
        ├── StoreClosedError (ValueError)
        ├── StoreAccessError (PermissionError)    the store denies access, or credentials are missing
        ├── StoreTimeoutError (TimeoutError)      no answer within the time limit
        ├── StoreLimitError (ValueError)          a value or a listing is larger than the limit
        ├── StaleError                            data changed after it was read, opened or joined
        └── ConflictError                         another writer was faster

The attributes of an error state where it happened, what was found, what was expected and what to do. The
message is made from them when it is needed. So code that catches an error can add what it knows:

>>> try:
...     try:
...         raise ChecksumError("checksum differs", found="0x046201bf", expected="0x046501c0")
...     except OmnizarrError as error:
...         raise error.add(codec="crc32c", key="c/0/3", path="ocean/temp")
... except ValueError as error:
...     print(error)
/ocean/temp: key 'c/0/3': codec 'crc32c': checksum differs: found 0x046201bf, expected 0x046501c0; the stored ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

from omnizarr.support.text import visible


class Function(str):
    """In a `Wording`, a function of omnizarr with the text of its arguments, which may be empty."""

    __slots__ = ()


class Setting:
    """In a `Wording`, a setting of `omnizarr.config`: its name, and the value if it is known."""

    __slots__ = ("name", "value")

    def __init__(self, name: str, value: Any = ...) -> None:
        self.name, self.value = name, value


class StorageOption:
    """In a `Wording`, one of the storage options: its name alone, or with a value."""

    __slots__ = ("value",)

    def __init__(self, value: Any = ...) -> None:
        self.value = value


def in_python(name: str, value: Any) -> str:
    """Return how a part of a `Wording` is written in Python."""
    if isinstance(value, Function):
        return f"omnizarr.{name}{value}"
    if isinstance(value, Setting):
        shown = "..." if value.value is ... else f'"{value.value}"'
        return f'omnizarr.config.set({{"{value.name}": {shown}}})'
    if isinstance(value, StorageOption):
        return f"`{name}`" if value.value is ... else f"storage_options={{{name!r}: {value.value!r}}}"
    return name if value is ... else f"{name}={value!r}"


class Wording(str):
    """Text with parts, such as keywords, that each interface words for itself. It is the text for Python.

    There may be several ways to do something, of which an interface leaves out those with parts that it lacks.

    Parameters
    ----------
    text : str
        With the names of parts in braces.
    **parts
        Their values: those of keywords, or `...` for the name of a keyword alone; a `Function`, a `Setting`, a
        `StorageOption`.

    Examples
    --------
    >>> text = Wording("{max_memory}: too little, see {convert}", max_memory=10, convert=Function())
    >>> print(text)
    max_memory=10: too little, see omnizarr.convert
    >>> text.worded(lambda name, value: name.upper())
    'MAX_MEMORY: too little, see CONVERT'
    """

    __slots__ = ("ways",)

    ways: tuple[tuple[str, str, dict[str, Any]], ...]
    """The prefix of each alternative if there are several, its text, and its parts."""

    def __new__(cls, text: str, /, **parts: Any) -> Self:
        """Make a text of one way."""
        return cls.of(((", or ", text, parts),))

    @classmethod
    def of(cls, ways: tuple[tuple[str, str, dict[str, Any]], ...]) -> Self:
        """Make a text of several ways."""
        made = super().__new__(cls, _joined(ways, in_python))
        made.ways = ways
        return made

    def worded(self, word: Callable[[str, Any], str | None]) -> str | None:
        """Return the ways whose parts all have words; None if there is no such way."""
        return _joined(self.ways, word) or None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).of, (self.ways,)


class Remedy(Wording):
    """What the caller can do about an error.

    Examples
    --------
    >>> remedy = Remedy("move it away") | Remedy("pass {overwrite} to replace it", overwrite=True)
    >>> print(remedy)
    move it away, or pass overwrite=True to replace it
    >>> remedy.worded(lambda name, value: f"--{name}")
    'move it away, or pass --overwrite to replace it'
    >>> remedy.worded(lambda name, value: None)
    'move it away'
    """

    __slots__ = ()

    def __or__(self, other: Remedy) -> Remedy:
        return self.of(self.ways + other.ways)

    def also(self, text: str, /, **parts: Any) -> Remedy:
        """Return the remedy with a further remark."""
        return self.of((*self.ways, ("; ", text, parts)))


def _joined(ways: tuple[tuple[str, str, dict[str, Any]], ...], word: Callable[[str, Any], str | None]) -> str:
    text = ""
    for before, way, parts in ways:
        for name, value in parts.items():
            said = word(name, value)
            if said is None:
                break
            way = way.replace(f"{{{name}}}", said)  # noqa: PLW2901
        else:
            text += (before if text else "") + way
    return text


def worded(text: str, word: Callable[[str, Any], str | None]) -> str:
    """Return a text in other words, if it is a `Wording`. If no way has words for all its parts, the others stay."""
    if not isinstance(text, Wording):
        return text
    return text.worded(word) or _joined(text.ways, lambda name, value: word(name, value) or in_python(name, value))


class OmnizarrError(Exception):
    """The base class of all errors that omnizarr raises.

    Parameters
    ----------
    message : str
        What is wrong, in a few words.
    store : str, optional
        The store, as its ``repr`` shows it (never with credentials).
    path : str, optional
        Path of the node within its hierarchy, without a leading slash.
    key : str, optional
        Store key of the document or chunk concerned.
    coords : tuple of int, optional
        Grid coordinates of the chunk concerned.
    codec : str, optional
        Name of the codec concerned.
    pointer : str, optional
        JSON pointer (RFC 6901) within the document.
    found, expected : object, optional
        The actual value and the expected one.
    remedy : str, optional
        What the caller can do about it; a `Remedy`, if it names keywords.
    spec : str, optional
        The section of the specification.
    """

    FIELDS = ("store", "path", "key", "coords", "codec", "pointer", "found", "expected", "remedy", "spec")

    store: str | None
    path: str | None
    key: str | None
    coords: tuple[int, ...] | None
    codec: str | None
    pointer: str | None
    found: object
    expected: object
    remedy: str | None
    spec: str | None

    USUAL: ClassVar[str | None] = None
    """The remedy of errors of this class that are raised without one."""

    def __init__(self, message: str = "", **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        for name in self.FIELDS:
            setattr(self, name, fields.pop(name, None))
        if self.remedy is None:
            self.remedy = self.USUAL
        if fields:
            raise TypeError(f"unknown fields {sorted(fields)}; known: {', '.join(self.FIELDS)}")

    def add(self, **fields: Any) -> Self:
        """Set fields that are not set yet, and return the error. Fields that are set do not change."""
        for name, value in fields.items():
            if name not in self.FIELDS:
                raise TypeError(f"unknown field {name!r}; known: {', '.join(self.FIELDS)}")
            known = getattr(self, name)
            if known is None or (name == "remedy" and value is not None and known is self.USUAL):
                setattr(self, name, value)
        return self

    def __str__(self) -> str:
        return self._text(self.message, self.remedy)

    def worded(self, word: Callable[[str, Any], str | None]) -> str:
        """Return the message with the remedy in other words; see `Wording.worded`."""
        remedy = self.remedy.worded(word) if isinstance(self.remedy, Wording) else self.remedy
        return self._text(worded(self.message, word), remedy)

    def _text(self, message: str, remedy: str | None) -> str:
        where = []
        if self.store is not None:
            where.append(f"{self.store}")
        if self.path is not None:
            where.append(visible(f"/{self.path}"))
        place = f"key {self.key!r}" if self.key is not None else ""
        if self.coords is not None:
            place += f"{' ' if place else ''}(chunk {self.coords})"
        if self.pointer is not None:
            place += f"{' at ' if place else ''}{self.pointer or '(the whole document)'}"
        if place:
            where.append(place)
        if self.codec is not None:
            where.append(f"codec {self.codec!r}")
        text = ": ".join([*where, message])
        details = []
        if self.found is not None:
            details.append(f"found {_shorten(self.found)}")
        if self.expected is not None:
            details.append(f"expected {_shorten(self.expected)}")
        if details:
            text += ": " + ", ".join(details)
        if remedy is not None:
            text += f"; {remedy}"
        if self.spec is not None:
            text += f" ({self.spec})"
        return visible(text)

    def __reduce__(self) -> tuple[Any, ...]:
        fields = {name: getattr(self, name) for name in self.FIELDS if getattr(self, name) is not None}
        # The attributes of built-in exceptions, and of `add_note`.
        others = {name: getattr(self, name, None) for name in ("errno", "name", "__notes__")}
        return _rebuild, (type(self), self.message, fields), {key: kept for key, kept in others.items() if kept}


def _rebuild(kind: type[OmnizarrError], message: str, fields: dict[str, Any]) -> OmnizarrError:
    return kind(message, **fields)


def _shorten(value: object, limit: int = 200) -> str:
    """Return the text of `value`, shortened to fit into a one-line message."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= limit else f"{text[: limit - 20]}... ({len(text)} characters)"


class NodeNotFoundError(OmnizarrError, FileNotFoundError, KeyError, ValueError):
    """There is no node at a path."""


class ArrayNotFoundError(NodeNotFoundError):
    """There is no array at a path."""


class GroupNotFoundError(NodeNotFoundError):
    """There is no group at a path."""


class NodeExistsError(OmnizarrError, FileExistsError, ValueError):
    """A node exists where a node should be created."""


class ContainsArrayError(NodeExistsError):
    """An array exists where a node should be created."""


class ContainsGroupError(NodeExistsError):
    """A group exists where a node should be created."""


class NodeNameError(OmnizarrError, ValueError):
    """A node cannot have this name or path."""


class MetadataError(OmnizarrError, ValueError):
    """A metadata document breaks its format."""


class NotJSONError(MetadataError, TypeError):
    """An attribute, or a part of it, cannot be written as JSON."""


class LengthTypeError(MetadataError, TypeError):
    """A length of an array, or of its chunks, is not an integer."""


class ConsolidatedMetadataError(MetadataError):
    """Consolidated metadata is broken, or contradicts the documents."""


class UnknownExtensionError(MetadataError):
    """A document names something that omnizarr does not know."""


class UnknownCodecError(UnknownExtensionError):
    """A document names a codec that is not registered."""


class UnknownDataTypeError(UnknownExtensionError, TypeError):
    """A document names a data type that is not registered."""


class UnknownChunkGridError(UnknownExtensionError):
    """A document names a chunk grid that is not registered."""


class UnknownChunkKeyEncodingError(UnknownExtensionError):
    """A document names a chunk key encoding that is not registered."""


class UnknownStorageTransformerError(UnknownExtensionError):
    """A document names a storage transformer that is not registered."""


class NotRepresentableError(OmnizarrError, ValueError):
    """A format cannot express the data or metadata."""


class FixedAttributeError(NotRepresentableError, AttributeError):
    """A netCDF attribute that can only be set when its variable is created."""


class CodecError(OmnizarrError, ValueError):
    """A codec cannot be set up for this array, or cannot encode these values."""


class PickleDisabledError(CodecError, PermissionError):
    """The data is pickled. Unpickling can run arbitrary code, and was not allowed."""


class MissingDependencyError(CodecError, ImportError):
    """A codec, data type or store needs a package that is not installed."""


class ChunkError(OmnizarrError, ValueError):
    """The stored bytes of a chunk cannot be decoded."""

    USUAL = (
        "the stored value is damaged or incomplete: copy it again from where it came, or write its elements again; "
        "'omnizarr check --data' finds all such values"
    )


class ChunkMemoryError(ChunkError, MemoryError):
    """A chunk, or the index of a shard, needs more memory than is available."""

    USUAL = "read it on a machine with more memory; if the chunk is not meant to be so large, it is damaged"


class ChecksumError(ChunkError):
    """A checksum differs from the one stored with the data."""


class ChunkSizeError(ChunkError):
    """A chunk has more or fewer bytes than the metadata states."""


class ShardIndexError(ChunkError):
    """The index of a shard is broken, or points outside the shard."""


class ChunkNotFoundError(OmnizarrError, KeyError):
    """A chunk is missing, and the array was opened with ``missing="error"``."""


class SelectionError(OmnizarrError, IndexError, ValueError):
    """A selection is not valid for the array."""


class BoundsCheckError(SelectionError):
    """An index is outside the array."""


class SelectionMemoryError(OmnizarrError, MemoryError):
    """The selected elements need more memory than is available."""


class ShapeError(OmnizarrError, ValueError):
    """A value does not fit the selection that it is assigned to."""


class JoinError(OmnizarrError, ValueError):
    """Arrays cannot be joined: their shapes, data types, dimensions or units differ."""


class ValueTypeError(OmnizarrError, TypeError, ValueError):
    """A value cannot be converted to the data type of the array it is assigned to."""


class ReadOnlyError(OmnizarrError, PermissionError, RuntimeError, ValueError):
    """The store is read-only, or was opened for reading only; or the memory that should be filled is read-only."""

    USUAL = "open it in a mode that writes, such as 'r+'"


class SettingError(OmnizarrError, ValueError):
    """A setting or an environment variable has an invalid value."""


class SchedulerError(OmnizarrError, RuntimeError):
    """A cluster cannot be reached, has lost its workers, or cannot reach the data."""


class ServerError(OmnizarrError, OSError):
    """A server cannot listen at an address: the port is in use, or the address belongs to another machine."""


class StoreError(OmnizarrError, OSError):
    """A store cannot complete a request."""


class InvalidKeyError(StoreError, ValueError):
    """A key is not a valid store key, or leads out of the store."""


class StoreClosedError(StoreError, ValueError):
    """The store is closed."""

    USUAL = "open it again"


class StoreAccessError(StoreError, PermissionError):
    """The store denies access: credentials are missing, wrong or insufficient."""


class StoreTimeoutError(StoreError, TimeoutError):
    """The store did not answer within the time limit."""


class StoreLimitError(StoreError, ValueError):
    """A value or a listing is larger than the limit."""


class StaleError(StoreError):
    """Data changed after it was read for an edit, opened or joined.

    The edit is not written, and not repeated. Of a file of another format that changed, nothing more is read.
    """


class ConflictError(StoreError):
    """Another writer changed a value between reading and writing it. Nothing was written."""


# Names of zarr-python for the classes that omnizarr raises in the same cases.
BaseZarrError = OmnizarrError
MetadataValidationError = MetadataError
NodeTypeValidationError = MetadataError
ContainsArrayAndGroupError = MetadataError  # for cases in which the kind of node is unknown
DataTypeValidationError = UnknownDataTypeError
ArrayIndexError = SelectionError
VindexInvalidSelectionError = SelectionError
