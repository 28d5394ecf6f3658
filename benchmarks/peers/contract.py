"""What a peer is: one library behind a few verbs. It runs in a worker of its own, where it is set up and stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import data
from benchmarks.workloads import AnyArray, Dataset, Selection

Shapes = dict[str, tuple[int, ...]]  # of the arrays in a group, by name


class Absent(Exception):  # noqa: N818  (a fact, not an error)
    """This peer is not here; the message says what is missing."""


class Unsupported(Exception):  # noqa: N818
    """This peer has no such thing; the message says what."""


class Peer:
    """One library. Verbs that it does not define it does not have.

    A constructor imports the library (`ImportError` means absent) and switches on what the variant is about.
    """

    serves_threads = True
    """Whether several threads may read an array at the same time."""

    def version(self) -> str:
        raise NotImplementedError

    # Arrays. What the verbs hand around as `array` is whatever `open` returned.

    def create(self, dataset: Dataset, path: Path) -> None:
        """Make an array without chunks: the same document for all Zarr libraries."""
        data.create(dataset, path)

    def open(self, path: Path, *, cache: int = 0) -> Any:
        """Open an array to read and write it; up to `cache` bytes of decoded chunks may be kept between reads."""
        raise Unsupported("no arrays")

    def close(self, array: Any) -> None:
        """Release an array. Everything that was written is then in its files."""

    def plan(self, dataset: Dataset, path: Path, array: Any, selections: list[Selection]) -> None:
        """See before the clock starts what will be asked: for floors, which know everything beforehand."""

    def read(self, array: Any, selection: Selection) -> AnyArray:
        return selection.read(self, array)

    def region(self, array: Any, slices: tuple[slice, ...]) -> AnyArray:
        raise Unsupported("no regions")

    def rows(self, array: Any, indices: list[int]) -> AnyArray:
        raise Unsupported("no lists")

    def points(self, array: Any, coordinates: tuple[Any, ...]) -> AnyArray:
        raise Unsupported("no points")

    def write(self, array: Any, values: AnyArray) -> None:
        """Write all of an array."""
        raise Unsupported("no writing")

    # Groups of arrays.

    def create_nodes(self, path: Path, names: list[str], dataset: Dataset) -> None:
        """Make a group with arrays like `dataset`, as one does it with this library."""
        raise Unsupported("no groups")

    def open_nodes(self, path: Path, names: list[str]) -> Shapes:
        """Open each array of a group by its name."""
        raise Unsupported("no groups")

    def list_nodes(self, path: Path) -> Shapes:
        """Find out which arrays a group has, and their shapes."""
        raise Unsupported("no listing")

    def consolidated(self, path: Path) -> Shapes:
        """Find out the same from consolidated metadata."""
        raise Unsupported("no consolidated metadata")

    # Many arrays as one.

    def join(self, paths: list[Path]) -> Any:
        """Open the arrays of these groups as one, along their first dimension."""
        raise Unsupported("no joining")

    def joined_region(self, joined: Any, slices: tuple[slice, ...]) -> AnyArray:
        """Read a part of what `join` returned."""
        return self.region(joined, slices)


def without_cache(cache: int) -> None:
    """Say that there is no cache of decoded chunks."""
    if cache:
        raise Unsupported("no cache of decoded chunks")
