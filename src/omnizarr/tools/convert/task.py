"""A conversion as it was asked for: the keywords of `omnizarr.convert`, which documents them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from omnizarr.errors import Wording
from omnizarr.formats.conventions import georeferencing
from omnizarr.settings import config as settings
from omnizarr.support import amounts
from omnizarr.support.progress import Progress
from omnizarr.tools.translate.coding import KEEP, PORTABLE, Encoding

CONVENTIONS: Final = ("nz", *georeferencing.FORMS)
"""Conventions that can be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """All keywords of `omnizarr.convert`, as the user gave them."""

    source: Any
    target: Any = None
    zarr_format: int | str | None = 3
    path: str | None = None
    select: Mapping[str, Any] | None = None
    source_format: int | str | None = None
    chunks: Any = None
    shards: Any = None
    filters: Any = KEEP
    serializer: Any = KEEP
    compressors: Any = PORTABLE
    codecs: Any = None
    strings: Literal["keep", "fixed"] = KEEP
    overwrite: bool = False
    resume: bool = False
    verify: bool = True
    dry_run: bool = False
    estimate: bool = False
    in_place: bool = False
    remove_old: bool = False
    strict: bool = False
    allow_pickle: bool = False
    concurrency: int | None = None
    scheduler: Any = None
    max_memory: int | None = None
    temporary: Any = None
    progress: Progress = None
    storage_options: Any = None
    references: Literal["inside", "trusted"] | Sequence[str] | None = None
    message: str | None = None
    ome_version: str | None = None
    convention: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_memory", amounts.limit(self.max_memory, "max_memory"))

    @property
    def encoding(self) -> Encoding:
        """How arrays are to be encoded."""
        return Encoding(
            self.chunks, self.shards, self.filters, self.serializer, self.compressors, self.codecs,
            strings=None if self.strings == KEEP else self.strings,
        )  # fmt: skip

    @property
    def wishes(self) -> dict[str, str]:
        """Versions that conventions shall become, by their names."""
        of_convention = {georeferencing.NAME: self.convention} if self.is_of_maps else {self.convention or "": "1.0"}
        wanted = {"ome-zarr": self.ome_version, **(of_convention if self.convention else {})}
        return {name: version for name, version in wanted.items() if version is not None}

    @property
    def is_of_maps(self) -> bool:
        """Whether the convention says where arrays lie."""
        return self.convention in georeferencing.FORMS

    @property
    def is_of_v3(self) -> bool:
        """Whether the convention is for Zarr v3 alone."""
        return self.convention in ("nz", georeferencing.GEOZARR)

    @property
    def only_plans(self) -> bool:
        """Whether nothing is to be written."""
        return self.dry_run or self.estimate

    @property
    def of_moves(self) -> dict[str, Any]:
        """Keywords of each `omnizarr.tools.convert.moving.Move`."""
        concurrency = settings.get("concurrency") if self.concurrency is None else self.concurrency
        how = {"allow_pickle": self.allow_pickle, "max_memory": self.max_memory, "compares": self.verify}
        return {"concurrency": concurrency, **how}

    @property
    def store_options(self) -> Any:
        """Options of stores, with the files that these may use."""
        if self.references is None:
            return self.storage_options
        return {**(self.storage_options or {}), "references": self.references}

    def options_of_stores(self) -> tuple[Any, Any]:
        """Return options for source and target. If only one of them is a URL, only that one gets the options."""
        options = self.store_options
        are_urls = [isinstance(place, str) and "://" in place for place in (self.source, self.target)]
        if len(set(are_urls)) == 1:
            return options, options
        return (options, None) if are_urls[0] else (None, options)

    def check(self) -> None:
        """Raise ValueError for keywords that exclude each other, or have no meaning together."""
        if self.strings not in (KEEP, "fixed"):
            raise ValueError(
                Wording("{strings}: not a treatment of strings, which are 'keep' and 'fixed'", strings=self.strings)
            )
        if self.in_place and self.target is not None:
            raise ValueError("in place there is no target: leave it out")
        if self.target is None and not (self.in_place or self.only_plans):
            raise ValueError(Wording("give a target, or {in_place}, or {dry_run}", in_place=True, dry_run=True))
        if self.overwrite and self.resume:
            raise ValueError(
                Wording("{overwrite} begins again, {resume} continues: give one of them", overwrite=True, resume=True)
            )
        if self.resume and self.in_place:
            raise ValueError("in place there is nothing to resume: convert again")
        if self.convention is not None and self.convention not in CONVENTIONS:
            known = ", ".join(CONVENTIONS)
            raise ValueError(Wording(f"{{convention}}: expected one of {known}", convention=self.convention))
        if self.convention is not None and self.in_place:
            raise ValueError("in place, only the format of Zarr changes: no convention can be given")
        if self.ome_version not in (None, "0.5", "0.6"):
            raise ValueError(Wording("{ome_version}: images become 0.5 or 0.6", ome_version=self.ome_version))
        if self.ome_version is not None and self.in_place:
            raise ValueError("in place, only the format of Zarr changes: the version of OME-Zarr cannot be given")
        if self.in_place:
            self._check_in_place()

    def _check_in_place(self) -> None:
        if self.select:
            raise ValueError("in place, everything stays: a part of it cannot be selected")
        if given := self.encoding.given:
            raise ValueError(f"in place, chunks stay unchanged: {', '.join(given)} cannot be given")
        for is_given, what in (
            (self.estimate, "to estimate"),
            (self.temporary is not None, "temporary"),
            (self.scheduler is not None, "for a scheduler to do"),
        ):
            if is_given:
                raise ValueError(f"in place, chunks stay where they are: there is nothing {what}")
