"""Complete records of netCDF that a killed writer has left beyond the end of an unlimited dimension.

They may be of any age, so they are adopted only if that is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from omnizarr.codecs.contract import ChunkPolicy
from omnizarr.errors import OmnizarrError, StoreError
from omnizarr.netcdf import adopting
from omnizarr.netcdf.dataset import Dataset
from omnizarr.nodes import bindings, detection
from omnizarr.nodes.location import StorePath
from omnizarr.stores import Store, verbs
from omnizarr.stores.base import Buffer, Request, Span, answers
from omnizarr.tools.check.report import Finding
from omnizarr.tools.repair.overlay import Overlay
from omnizarr.tools.repair.report import Action
from omnizarr.tools.repair.transaction import RepairState

_CODE: Final = "chunk-beyond-grid"


class _Witness(Overlay):
    """Remembers values that it read, so that it replaces only these."""

    features = Overlay.features

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.read: dict[str, Buffer | None] = {}

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Return a value, and remember it if it is a whole one that was not changed here."""
        value = super().get(key, span)
        if span is None and key not in self.changed:
            self.read.setdefault(key, value)
        return value

    @answers(verbs.get_within)
    def _get_within(self, key: str, most: int) -> Buffer | None:
        """Return a value, and remember it if it was not changed here."""
        value = super()._get_within(key, most)
        if key not in self.changed:
            self.read.setdefault(key, value)
        return value

    @answers(verbs.get_many)
    def _get_many(self, requests: Iterable[Request]) -> Iterator[tuple[int, Buffer | None]]:
        """Return one after the other."""
        yield from ((number, self.get(key, span)) for number, (key, span) in enumerate(requests))


def adopt_records(state: RepairState, findings: list[Finding]) -> None:
    """Make unlimited dimensions as long as records are complete: the arrays first, then the dimension."""
    witness = _Witness(state.store)
    try:
        dataset = Dataset(StorePath(witness, state.where.path, state.where.home), "a", buffered=False)
    except StoreError:
        raise
    except OmnizarrError:  # no group, or one of a format that netCDF does not stand on
        return
    dims = [each for group in dataset.walk() for each in group.dimensions.values() if each.isunlimited()]
    wanted = {each: length for each in dims if (length := adopting.complete(each)) > each.size}
    if not wanted:
        return
    growth = ", ".join(f"{each.path} from {each.size} to {length}" for each, length in wanted.items())
    adopting.adopt(wanted)
    for key, new in witness.changed.items():  # in the order of writing
        place = state.where.at(key.rpartition("/")[0])
        action = Action(
            code=_CODE, path=place.path, key=key, what=f"adopt the complete records beyond the end of {growth}"
        )
        if not state.change(key, witness.read.get(key), new, [action], lock=place.lock_key):
            return
        state.touched.add(place.path)
    for finding in findings:
        if finding.code == _CODE and _is_inside(state, finding):
            state.settle(finding)


def _is_inside(state: RepairState, finding: Finding) -> bool:
    """Whether a chunk is in the grid by now."""
    found = detection.open_array(state.where.at(finding.path))
    binding = bindings.bind(found.where, found.metadata, ChunkPolicy())
    coords = binding.keys.decode(str(finding.key).removeprefix(binding.prefix), len(found.metadata.shape))
    grid = binding.grid.grid_shape
    return coords is not None and all(number < count for number, count in zip(coords, grid, strict=True))
