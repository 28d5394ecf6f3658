"""What is said of one node while it is translated, and how the target's dialect is asked what it can say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from omnizarr.errors import NotRepresentableError, OmnizarrError
from omnizarr.formats.contract import Dialect
from omnizarr.formats.reader import join
from omnizarr.model import ArrayMetadata, Loss, Metadata, Problem

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
    """Nothing that the target can say holds the node; the account says why."""


@dataclass
class Account:
    """What could not be carried of one node, and what is carried in other words."""

    source: Metadata
    dialect: Dialect
    """The target."""
    path: str
    losses: list[Loss] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    of_missing: list[Loss] = field(default_factory=list)
    """Those of the losses that concern only chunks that are missing."""

    @property
    def title(self) -> str:
        """What the target is called in a sentence."""
        return _TITLES.get(self.dialect.name, f"Zarr {self.dialect.name}")

    def pointer(self, member: str, *below: str | int) -> str:
        """Return where the source's document keeps what the model calls `member`."""
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
        """Say that something could not be carried; `of_missing`: that it matters only if chunks are missing."""
        loss = Loss(self.path, pointer, what, why, kept)
        self.losses.append(loss)
        if of_missing:
            self.of_missing.append(loss)

    def fail(self, pointer: str, what: str, why: str) -> CannotCarryError:
        """Say that the node could not be carried, and return what to raise."""
        self.lose(pointer, what, why)
        return CannotCarryError()

    def remark(self, text: str) -> None:
        """Say that something is carried in other words."""
        if text not in self.remarks:
            self.remarks.append(text)


def attempt(metadata: M, dialect: Dialect) -> tuple[M | None, str]:
    """Return metadata as a dialect reads what it writes; or None, and why it cannot write it."""
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
    """Return a value as a report has it: whole if it is short."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
