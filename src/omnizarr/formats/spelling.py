"""Remembering how a document spelled its members, to write them back while their meaning is unchanged.

The memos are in `spellings` of the model, under ``"<dialect>:<name>"``, so that those of one dialect never reach
documents of another. `Document` keeps the text of the document itself.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from enum import Enum
from types import NoneType
from typing import Any, Final, NamedTuple

from omnizarr.model import JSON, ArrayMetadata, GroupMetadata, Metadata, Named, Note, Spelling
from omnizarr.model.metadata import SCALARS
from omnizarr.support.memo import ById


class Document(dict[str, JSON]):
    """A JSON object and the text from which it was read, so that unchanged parts keep their spelling.

    Do not change it in place: make a `revision`.

    Parameters
    ----------
    members : mapping
    text : str
        Valid JSON; "" if the object was not read from a text.
    said : mapping, optional
        The content of the text, if it differs from the document.
    notes : tuple of Note
        Departures of the text from JSON or from Zarr that were corrected. The members, or `said`, are then the
        corrected content.

    Attributes
    ----------
    is_dumped : bool
        Whether a dialect wrote the text for a model, so that writing an equal model gives the same text.
    """

    __slots__ = ("is_dumped", "notes", "said", "text")

    def __init__(
        self,
        members: Mapping[str, JSON],
        text: str = "",
        said: Mapping[str, JSON] | None = None,
        notes: tuple[Note, ...] = (),
    ) -> None:
        super().__init__(members)
        self.text = text
        self.said = said
        self.notes = notes
        self.is_dumped = False


class LateSpellings(Mapping[str, Spelling]):
    """The memos of a document that is parsed when the first of them is requested; a short one again each time.

    Parameters
    ----------
    make : callable
        Returns the memos from `about`.
    about : object
        What `make` needs to know of this document. The function is the same for all.
    length : int
        Characters of the document.
    alone : mapping of str to Spelling, optional
        Of a group with copies of other nodes: the memos of its document without them.
    shared : mapping of str to Spelling, optional
        Some of the memos, which are those of similar documents, too: they need not be made.
    """

    __slots__ = ("_about", "_is_long", "_made", "_make", "_shared", "alone")

    def __init__(
        self,
        make: Callable[[Any], Mapping[str, Spelling]],
        about: object,
        length: int,
        alone: Mapping[str, Spelling] | None = None,
        shared: Mapping[str, Spelling] | None = None,
    ) -> None:
        self._make = make
        self._shared: Mapping[str, Spelling] = shared or {}
        self._about = about
        self._is_long = length > _SHORT
        self._made: Mapping[str, Spelling] | None = None
        self.alone = alone

    @property
    def _spellings(self) -> Mapping[str, Spelling]:
        made = self._made or _recent.get(self)
        if made is None:
            made = self._make(self._about)
            if self._is_long:
                self._made = made
            else:
                _recent.put(self, made)
        return made

    def __getitem__(self, name: str) -> Spelling:
        return self._shared.get(name) or self._spellings[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._spellings)

    def __len__(self) -> int:
        return len(self._spellings)


_SHORT: Final = 4096
"""Characters of a document whose memos are made again: parsed, they take many times its length."""
_recent: Final[ById[LateSpellings, Mapping[str, Spelling]]] = ById(16)
"""The memos of the last short documents. To write one, all are asked for, one after the other."""


def without_copies(metadata: Metadata) -> Metadata:
    """Return a node as it is without consolidated metadata, which is not parsed for that."""
    if not isinstance(metadata, GroupMetadata):
        return metadata
    spellings = metadata.spellings
    if isinstance(spellings, LateSpellings) and spellings.alone is not None:
        spellings = spellings.alone
    return replace(metadata, consolidated=None, spellings=spellings)


def revision(document: Mapping[str, JSON], of: JSON) -> dict[str, JSON]:
    """Return `document` as a replacement of another. Common parts keep the text of the other."""
    if isinstance(of, Document):
        return Document(document, of.text, of if of.said is None else of.said, of.notes)
    return document if isinstance(document, dict) else dict(document)


def recall(metadata: Metadata, dialect: str, name: str, meaning: object) -> Mapping[str, JSON] | None:
    """Return the members in their spelling, if they still mean the same; otherwise None."""
    spelling = metadata.spellings.get(f"{dialect}:{name}")
    return spelling.document if spelling is not None and same(spelling.meaning, meaning) else None


def remember(dialect: str, memos: Mapping[str, tuple[object, Mapping[str, JSON]]]) -> dict[str, Spelling]:
    """Return the memos for name -> (meaning, members as spelled)."""
    return {f"{dialect}:{name}": Spelling(meaning, document) for name, (meaning, document) in memos.items()}


class Aspect(NamedTuple):
    """Members of a document that are written together, and the part of the model that they express."""

    members: tuple[str, ...]
    meaning: Callable[[Any], object]
    """Returns the part of the metadata."""
    write: Callable[..., Mapping[str, JSON]]
    """Returns the members for the metadata (and other arguments of the dialect)."""


def read_aspects(
    metadata: Metadata, document: Mapping[str, JSON], aspects: Mapping[str, Aspect]
) -> dict[str, tuple[object, Mapping[str, JSON]]]:
    """Return the memos of the spelling of each aspect in `document`, for `remember`."""
    return {
        name: (
            aspect.meaning(metadata),
            {member: document[member] for member in aspect.members if member in document},
        )
        for name, aspect in aspects.items()
    }


def write_aspects(
    metadata: Metadata, dialect: str, aspects: Mapping[str, Aspect], *more: object
) -> tuple[dict[str, JSON], set[str]]:
    """Return the members for the aspects of `metadata`, and the names of those that differ from what was read."""
    written: dict[str, JSON] = {}
    fresh: set[str] = set()
    for name, aspect in aspects.items():
        spelled = recall(metadata, dialect, name, aspect.meaning(metadata))
        if spelled is None:
            fresh.update(aspect.members)
            spelled = aspect.write(metadata, *more)
        written.update(spelled)
    return written, fresh


def in_order_of(document: Mapping[str, JSON], like: JSON) -> dict[str, JSON]:
    """Return `document` as a `revision` of another, with members in the order of that one and new ones last."""
    names = like if isinstance(like, Mapping) else ()
    ordered = {**{name: document[name] for name in names if name in document}, **document}
    return revision(ordered, like)


def same(left: object, right: object) -> bool:
    """Whether two meanings are equal, including their types: 1, 1.0 and True differ, NaN equals NaN.

    >>> same({"a": [1, float("nan")]}, {"a": (1, float("nan"))}), same([1], [True]), same(0.0, -0.0)
    (True, False, False)
    """
    if left is right:
        return True
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        if left.keys() != right.keys():
            return False
        return all(same(value, right[key]) for key, value in left.items() if value is not right[key])
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if type(left) is not type(right):
        return False
    if isinstance(left, Named) and isinstance(right, Named):
        return (
            left.name == right.name
            and left.must_understand is right.must_understand
            and same(left.configuration, right.configuration)
        )
    if isinstance(left, float) and isinstance(right, float):
        return left.hex() == right.hex()
    return isinstance(left, str | int | bool | NoneType | Enum) and left == right


def is_written_alike(left: Metadata, right: Metadata) -> bool:
    """Whether two nodes are the same in all that is written, and in the order of all members of objects.

    So a dialect writes the same documents for both, if it spells them by the same memos, or both by none.
    """
    if type(left) is not type(right):
        return False
    parts = _WRITTEN[type(left)]
    pairs = zip(parts(left), parts(right), strict=True)
    return all(one is other or (same(one, other) and _in_order(one, other)) for one, other in pairs)


_WRITTEN: Final = {
    kind: operator.attrgetter(*(each.name for each in fields(kind) if each.name not in {"spellings", "notes"}))
    for kind in (ArrayMetadata, GroupMetadata)
}


def _in_order(left: Any, right: Any) -> bool:
    """Whether the members of objects have the same order in two values that are the same."""
    if left is right or type(left) in SCALARS:
        return True
    if isinstance(left, Mapping):
        return list(left) == list(right) and all(map(_in_order, left.values(), right.values()))
    if isinstance(left, list | tuple):
        return all(map(_in_order, left, right))
    return not isinstance(left, Named) or _in_order(left.configuration, right.configuration)
