"""Find the dimensions of variables: by NCZarr's references, by names of other conventions, or by length.

Spec: NCZarr, "NCZarr versus Pure Zarr", "XArray".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from omnizarr.formats.conventions.nczarr_metadata import SPEC
from omnizarr.formats.paths import upwards
from omnizarr.model import Note
from omnizarr.netcdf.header import DimensionHeader

_ANONYMOUS: Final = re.compile(r"_Anonymous_Dim(ension)?_[0-9]+")


def anonymous(length: int) -> str:
    """Return the name of the dimension of a length that has no name.

    Spec: NCZarr, "Translation". (netCDF-C calls it ``_Anonymous_Dim_<length>``.)
    """
    return f"_Anonymous_Dimension_{length}"


def is_anonymous(name: str) -> bool:
    """Return whether a dimension is called as dimensions without a name are."""
    return _ANONYMOUS.fullmatch(name) is not None


@dataclass(slots=True)
class Claim:
    """What an array says of its dimensions.

    Attributes
    ----------
    group : str
        Full name of its group, "" for the root.
    name : str
    shape : tuple of int
    references : sequence of str, optional
        Full names, of NCZarr.
    names : sequence of (str or None), optional
        Names, of xarray or of Zarr v3.
    """

    group: str
    name: str
    shape: tuple[int, ...]
    references: Sequence[str] | None = None
    names: Sequence[str | None] | None = None
    notes: list[Note] = field(default_factory=list)

    def note(self, message: str, pointer: str = "") -> None:
        """Note something about the dimensions."""
        self.notes.append(Note(pointer, message, SPEC))


class Scopes:
    """The dimensions of all groups.

    Parameters
    ----------
    groups : mapping of str to (mapping of str to DimensionHeader)
        What the groups define, by full name.
    """

    def __init__(self, groups: Mapping[str, Mapping[str, DimensionHeader]]) -> None:
        self.groups = {path: dict(dimensions) for path, dimensions in groups.items()}
        self.notes: dict[str, list[Note]] = {}

    # -- of NCZarr ----------------------------------------------------------------

    def correct(self, claims: Sequence[Claim]) -> None:
        """Give fixed dimensions the length that all their arrays have, where it was recorded wrong."""
        lengths: dict[str, set[int]] = {}
        for claim in claims:
            if claim.references is not None and len(claim.references) == len(claim.shape):
                for reference, length in zip(claim.references, claim.shape, strict=True):
                    lengths.setdefault(reference, set()).add(length)
        for path, dimensions in self.groups.items():
            for name, dimension in dimensions.items():
                found = lengths.get(f"{path}/{name}", set())
                if not dimension.unlimited and len(found) == 1 and dimension.size not in found:
                    dimensions[name] = replace(dimension, size=next(iter(found)))
                    message = f"dimension {name!r} has length {dimension.size}, its arrays {next(iter(found))}"
                    self.notes.setdefault(path, []).append(Note("", f"{message}: theirs is taken", SPEC))

    def by_reference(self, claim: Claim) -> tuple[str, ...] | None:
        """Return the dimensions that NCZarr says an array has; None if it says nothing that makes sense."""
        references = claim.references
        if references is None:
            return None
        if len(references) != len(claim.shape):
            claim.note(f"{len(references)} dimension references for {len(claim.shape)} dimensions: ignored")
            return None
        return tuple(map(self._referred, [claim] * len(references), references, claim.shape))

    def _referred(self, claim: Claim, reference: str, length: int) -> str:
        group, _, name = reference.rpartition("/")
        dimensions = self.groups.get(group) if reference.startswith("/") and name else None
        if dimensions is None:
            claim.note(f"dimension reference {reference!r} leads to no group: the dimension is anonymous")
            return self._anonymous(length)
        if group not in upwards(claim.group):
            claim.note(f"dimension {reference!r} is in no group above the array: netCDF-C does not show the array")
        found = dimensions.get(name)
        if found is None:
            claim.note(f"there was no dimension {reference!r}: it has length {length} now")
            dimensions[name] = DimensionHeader(name, length)
        elif not found.unlimited and found.size != length:
            claim.note(f"dimension {reference!r} has length {found.size}, not {length}: an anonymous one replaces it")
            return self._anonymous(length)
        elif found.unlimited and found.size < length:
            beyond = f"the last {length - found.size} of {length} along {reference!r}"
            claim.note(f"left out: {beyond}, which has length {found.size}", "/records")
        return reference

    # -- of others -------------------------------------------------------------------

    def by_name(self, claims: Sequence[Claim], *, at_root: bool) -> Iterator[tuple[str, ...]]:
        """Yield the dimensions of arrays that say names only, of each array in turn.

        A name means the dimension that is defined nearest above and has the length of the array; if there is none, it
        is defined in the array's group, or `at_root`, if all arrays agree on its length. Where arrays of one group
        disagree, the coordinate variable is right, or else the first; the others get anonymous dimensions.
        """
        shared = _agreed(claims) if at_root else frozenset()
        # The lengths of variables that bear the name of their only dimension, by group and name.
        firsts = {
            (claim.group, claim.name): claim.shape[0]
            for claim in claims
            if claim.names is not None and list(claim.names) == [claim.name] and len(claim.shape) == 1
        }
        # Outer groups first: what they define can be seen from within.
        order = sorted(range(len(claims)), key=lambda place: claims[place].group.count("/"))
        found: dict[int, tuple[str, ...]] = {}
        for place in order:
            claim = claims[place]
            names = claim.names if claim.names is not None else [None] * len(claim.shape)
            if len(names) != len(claim.shape):
                claim.note(f"{len(names)} names for {len(claim.shape)} dimensions: ignored")
                names = [None] * len(claim.shape)
            pairs = zip(names, claim.shape, strict=True)
            found[place] = tuple(self._named(claim, name, length, shared, firsts) for name, length in pairs)
        for place in range(len(claims)):
            yield found[place]

    def _named(
        self,
        claim: Claim,
        name: str | None,
        length: int,
        shared: frozenset[str],
        firsts: Mapping[tuple[str, str], int],
    ) -> str:
        if not name or "/" in name:
            return self._anonymous(length)
        for path in upwards(claim.group):
            dimension = self.groups.get(path, {}).get(name)
            if dimension is not None and (dimension.unlimited or dimension.size == length):
                return f"{path}/{name}"
        home = "" if name in shared or is_anonymous(name) else claim.group
        dimensions = self.groups.setdefault(home, {})
        right = firsts.get((home, name), length)
        if name in dimensions or right != length:
            there = dimensions[name].size if name in dimensions else right
            claim.note(f"dimension {name!r} has length {there}, not {length}: an anonymous one replaces it")
            return self._anonymous(length)
        dimensions[name] = DimensionHeader(name, length)
        return f"{home}/{name}"

    def _anonymous(self, length: int) -> str:
        name = anonymous(length)
        dimensions = self.groups.setdefault("", {})
        while name in dimensions and dimensions[name] != DimensionHeader(name, length):
            name += "_"
        dimensions.setdefault(name, DimensionHeader(name, length))
        return f"/{name}"


def _agreed(claims: Sequence[Claim]) -> frozenset[str]:
    """Return the names that have one length wherever they stand."""
    lengths: dict[str, set[int]] = {}
    for claim in claims:
        for name, length in zip(claim.names or (), claim.shape, strict=False):
            if name is not None:
                lengths.setdefault(name, set()).add(length)
    return frozenset(name for name, found in lengths.items() if len(found) == 1)
