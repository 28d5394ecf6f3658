"""What is reported about one node while it is translated, and whether the target's dialect can express it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from omnizarr.codecs import chain
from omnizarr.errors import NotRepresentableError, OmnizarrError
from omnizarr.formats.contract import Dialect
from omnizarr.formats.reader import join
from omnizarr.model import ArrayMetadata, Loss, Metadata, Problem
from omnizarr.nodes.equivalence import spec_of

M = TypeVar("M", bound=Metadata)

_TITLES: Final[Mapping[str, str]] = {
    "v0": "the format of zarr 0.4",
    "v1": "Zarr v1",
    "v2": "Zarr v2",
    "v3": "Zarr v3",
    "v3-draft2019": "the v3 draft of 2019",
    "v3-draft2020": "the v3 draft of 2020",
}
_EARLY: Final = frozenset({"v0", "v1", "v2"})
_CODECS: Final[Mapping[str, str]] = {
    "v0": "/cname",
    "v1": "/compression",
    "v2": "/filters",
    "v3": "/codecs",
    "v3-draft2019": "/chunk_codecs",
    "v3-draft2020": "/compressor",
}
_KEYS: Final[Mapping[str, str]] = {
    "v0": "",
    "v1": "",
    "v2": "/dimension_separator",
    "v3": "/chunk_key_encoding",
}
_LONGEST: Final = 60
"""Characters of a value in a report."""


class CannotCarryError(Exception):
    """The target cannot express the node; the account contains the reason."""


@dataclass
class NodeLosses:
    """Losses of one node, and properties that are expressed differently."""

    source: Metadata
    dialect: Dialect
    """The target."""
    path: str
    losses: list[Loss] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    of_missing: list[Loss] = field(default_factory=list)
    """Losses that concern only missing chunks."""
    _tried: tuple[Metadata, tuple[Any, str]] | None = field(default=None, repr=False)

    @property
    def title(self) -> str:
        """The name of the target in a sentence."""
        return _TITLES.get(self.dialect.name, f"Zarr {self.dialect.name}")

    def pointer(self, member: str, *below: str | int) -> str:
        """Return the place of the model's `member` in the source's document."""
        name = self.source.dialect
        early = name in _EARLY
        places = {
            "data_type": "/dtype" if early else "/data_type",
            "chunk_grid": "/chunks" if early else "/chunk_grid",
            "chunk_key_encoding": _KEYS.get(name, "/chunk_grid/separator"),
            "attributes": "" if early else "/attributes",
            "codecs": _CODECS.get(name, "/codecs"),
        }
        return join(places.get(member, f"/{member}"), *below)

    def lose(self, pointer: str, what: str, why: str, kept: str = "", *, of_missing: bool = False) -> None:
        """Record a loss. `of_missing`: it matters only if chunks are missing."""
        loss = Loss(self.path, pointer, what, why, kept)
        self.losses.append(loss)
        if of_missing:
            self.of_missing.append(loss)

    def fail(self, pointer: str, what: str, why: str) -> CannotCarryError:
        """Record that the node could not be kept, and return the error to raise."""
        self.lose(pointer, what, why)
        return CannotCarryError()

    def remark(self, text: str) -> None:
        """Record that something is expressed differently."""
        if text not in self.remarks:
            self.remarks.append(text)

    def add(self, other: NodeLosses) -> None:
        """Take over what was reported of another node that shares all that was looked at."""
        places = [(self.losses, other.losses), (self.of_missing, other.of_missing)]
        for ours, theirs in places:
            ours += [replace(loss, path=self.path) for loss in theirs]
        for text in other.remarks:
            self.remark(text)

    def attempt(self, metadata: M) -> tuple[M | None, str]:
        """Return what `attempt` returns for the target. What was tried last is not tried again."""
        if self._tried is None or self._tried[0] is not metadata:
            self._tried = metadata, attempt(metadata, self.dialect)
        return self._tried[1]


def attempt(metadata: M, dialect: Dialect) -> tuple[M | None, str]:
    """Return metadata as a dialect reads it back after writing it; or None, and why it cannot be written."""
    problems: list[Problem] = []
    try:
        read = dialect.load(dialect.dump(metadata), problems.append)
    except NotRepresentableError as error:
        return None, error.message.removeprefix("cannot be written as ").partition(": ")[2] or error.message
    except OmnizarrError as error:
        return None, error.message
    if problems:
        return None, problems[0].message
    if not isinstance(read, type(metadata)) or isinstance(read, ArrayMetadata) is not isinstance(
        metadata, ArrayMetadata
    ):
        return None, "it would be read as something else"
    if read.notes:
        return None, read.notes[0].message
    return read, ""


def shown(value: object) -> str:
    """Return a value for a report: whole if it is short."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def of_codecs(source: ArrayMetadata | None, target: ArrayMetadata) -> Iterator[tuple[str, str]]:
    """Yield the codecs that do not keep all values, and what they lose; filters of the source have rounded already."""
    try:
        bound = [chain.bind(each.codecs, spec_of(each)) for each in (source, target) if each is not None]
    except OmnizarrError:
        return
    known = {loss for each in bound[:-1] for loss in chain.losses(each)}
    yield from (loss for loss in chain.losses(bound[-1]) if loss not in known)
