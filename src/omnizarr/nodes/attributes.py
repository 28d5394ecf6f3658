"""Attributes of a node: a mapping that stores every change atomically in the node's document."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, TypeAlias

from omnizarr.errors import MetadataError
from omnizarr.formats import documents
from omnizarr.model import JSON, thawed
from omnizarr.model.metadata import SCALARS
from omnizarr.nodes.location import StorePath
from omnizarr.settings import config

Attrs: TypeAlias = dict[str, JSON]


class Attributes(MutableMapping[str, Any]):
    """The attributes of a node, as a mutable mapping.

    You read the attributes as they were when the node was opened or last changed through this object; `refresh` reads
    them again. Each change reads the document under the node's lock, changes it, and writes it back. If two processes
    set different keys, both are kept.

    NumPy scalars and arrays are converted to JSON. NaN and infinities are stored as the tokens ``NaN``,
    ``Infinity`` and ``-Infinity``, which JSON does not define, and read back as floats. With the setting
    ``"attributes.nonfinite": "string"`` they are stored as strings, and read back as strings.

    Parameters
    ----------
    where : StorePath
        The place of the node, for error messages.
    current : callable
        Returns the attributes that were last read.
    change : callable
        Takes a function from old attributes to new ones, and applies it atomically to the document.
    reread : callable
        Makes the node read its document again.
    """

    __slots__ = ("_change", "_current", "_reread", "_where")

    def __init__(
        self,
        where: StorePath,
        current: Callable[[], Mapping[str, JSON]],
        change: Callable[[Callable[[Attrs], Attrs]], None],
        reread: Callable[[], object],
    ) -> None:
        self._where = where
        self._current = current
        self._change = change
        self._reread = reread

    def __getitem__(self, key: str) -> Any:
        value = self._current()[key]
        return value if type(value) in SCALARS else thawed(value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._current())

    def __len__(self) -> int:
        return len(self._current())

    def __setitem__(self, key: str, value: Any) -> None:
        self.update({key: value})

    def __delitem__(self, key: str) -> None:
        def without(old: Attrs) -> Attrs:
            del old[key]
            return old

        self._change(without)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Set several attributes in one atomic change. Arguments are those of ``dict.update``."""
        new = self._to_json(dict(*args, **kwargs))
        self._change(lambda old: {**old, **new})

    def create(self, name: str, data: object) -> None:
        """Set an attribute, as h5py's ``attrs.create`` does.

        >>> import omnizarr
        >>> group = omnizarr.create_group({})
        >>> group.attrs.create("valid_range", (0, 50))
        >>> group.attrs["valid_range"]
        [0, 50]
        """
        self[name] = data

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return an attribute. If it is missing, set it to `default` first, in one atomic change."""
        try:
            return self[key]
        except KeyError:
            pass
        new = self._to_json({key: default})
        kept: list[Attrs] = []

        def with_default(old: Attrs) -> Attrs:
            kept.append({**new, **old})
            return kept[-1]

        self._change(with_default)
        return thawed(kept[-1][key])

    def pop(self, key: str, *default: Any) -> Any:
        """Remove an attribute and return its value. Arguments are those of ``dict.pop``."""
        taken: list[Any] = []

        def without(old: Attrs) -> Attrs:
            taken.append(old.pop(key, *default))
            return old

        self._change(without)
        return thawed(taken[-1])

    def popitem(self) -> tuple[str, Any]:
        """Remove the last attribute and return it. Raises KeyError if there is none."""
        taken: list[tuple[str, Any]] = []

        def without(old: Attrs) -> Attrs:
            taken.append(old.popitem())
            return old

        self._change(without)
        name, value = taken[-1]
        return name, thawed(value)

    def clear(self) -> None:
        """Remove all attributes in one atomic change."""
        self._change(lambda _: {})

    def put(self, attributes: Mapping[str, Any]) -> None:
        """Replace all attributes in one atomic change."""
        new = self._to_json(attributes)
        self._change(lambda _: dict(new))

    def asdict(self) -> dict[str, Any]:
        """Return a copy as a plain dictionary of JSON values."""
        found: dict[str, Any] = thawed(self._current())
        return found

    def refresh(self) -> None:
        """Read the document again, in case another program changed it."""
        self._reread()

    def _to_json(self, attributes: Mapping[str, Any]) -> Attrs:
        try:
            return to_json(attributes)
        except MetadataError as error:
            raise error.add(store=str(self._where.store), path=self._where.path)

    def __repr__(self) -> str:
        return repr(self.asdict())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Attributes):
            return self._current() is other._current() or self.asdict() == other.asdict()
        return isinstance(other, Mapping) and self.asdict() == dict(other)

    __hash__ = None  # type: ignore[assignment]


def to_json(attributes: Mapping[str, Any]) -> Attrs:
    """Return attributes in the form in which they are stored. Raises MetadataError for values that JSON cannot hold.

    >>> import numpy as np
    >>> to_json({"scale": np.float32(0.5), "range": np.array([1, 2]), "missing": float("nan")})
    {'scale': 0.5, 'range': [1, 2], 'missing': nan}
    """
    if not isinstance(attributes, Mapping):
        raise MetadataError("attributes must be a mapping", found=type(attributes).__name__, expected="a mapping")
    is_quoted = quotes_nonfinite()
    return {
        name: documents.to_json(value, f"/attributes/{name}", quotes_nonfinite=is_quoted)
        for name, value in _named(attributes)
    }


def quotes_nonfinite() -> bool:
    """Whether NaN and infinities become strings."""
    return bool(config.get("attributes.nonfinite") == "string")


def _named(attributes: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in attributes.items():
        if not isinstance(name, str):
            raise MetadataError(
                "an attribute's name must be a string", pointer="/attributes", found=repr(name), expected="a string"
            )
        yield str(name), value
