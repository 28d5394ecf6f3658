"""What a lazy array is made of: a tree of frozen nodes, each with a shape and a data type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numpy as np

from omnizarr.engine.conversion import Conversion, cast
from omnizarr.indexing import transforms
from omnizarr.indexing.transforms import Transform
from omnizarr.nodes.packing import Packing

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")

_MOST_LINES: Final = 60
"""Length of the drawing of a tree."""
_MOST_MERGED: Final = 2**16
"""Parts of several joins that become one join."""


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A source: an `omnizarr.Array`, a NumPy array, or anything with a shape, a dtype and brackets."""

    source: Any
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    since: str = ""
    """How the source became known, if reading looks at whether it is still the same; `omnizarr.nodes.lazy.sources`."""
    stamp: tuple[str, tuple[int, ...]] | None = None
    """What the file of its document was like; None if there is no such file."""

    @property
    def is_watched(self) -> bool:
        """Whether reading looks at whether the source is still the same."""
        return bool(self.since)

    def __str__(self) -> str:
        source = self.source
        place = getattr(source, "store_path", None)
        if place is not None:
            return f"{place} {self.shape} {self.dtype}"
        return f"numpy {self.shape} {self.dtype}" if isinstance(source, np.ndarray) else repr(source)


@dataclass(frozen=True, slots=True, eq=False)
class Filled:
    """Elements that all have one value."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    value: Any

    def __str__(self) -> str:
        return f"fill {self.shape} with {self.value!r}"


@dataclass(frozen=True, slots=True, eq=False)
class Selected:
    """Some elements of a node, in any order."""

    base: Node
    transform: Transform

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of elements along each dimension."""
        return self.transform.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the elements."""
        return self.base.dtype

    def __str__(self) -> str:
        return f"select {self.shape} of {self.base.shape}"


@dataclass(frozen=True, slots=True, eq=False)
class Reshaped:
    """Elements of a node with other dimensions, in the same order: that of C."""

    base: Node
    shape: tuple[int, ...]
    dtype: np.dtype[Any] = field(init=False)
    """Data type of the elements."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.base.dtype)  # there may be thousands below

    def __str__(self) -> str:
        return f"reshape {self.base.shape} to {self.shape}"


@dataclass(frozen=True, slots=True)
class Cast:
    """Conversion to another data type, as by `numpy.ndarray.astype`."""

    dtype: np.dtype[Any]

    def apply(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values, converted."""
        return values.astype(self.dtype)

    def conversion(self, dtype: np.dtype[Any]) -> Conversion:
        """Return the same for elements of a data type, which engines apply as they read."""
        return cast(dtype, self.dtype)

    def __str__(self) -> str:
        return f"astype {self.dtype}"


@dataclass(frozen=True, slots=True)
class Unpack:
    """Conversion of stored numbers: ``stored * scale + offset``, and NaN for those that are missing or not valid."""

    dtype: np.dtype[Any]
    packing: Packing

    def apply(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values, unpacked."""
        return self.packing.floats(values, self.dtype)

    def conversion(self, dtype: np.dtype[Any]) -> Conversion:
        """Return the same for elements of a data type, which engines apply as they read."""
        packing = self.packing
        return packing.conversion(self.dtype) if dtype == packing.dtype else Conversion(self.dtype, self.apply)

    def __str__(self) -> str:
        words = self.packing.words
        return f"unpack to {self.dtype}{', ' if words else ''}{words}"


@dataclass(frozen=True, slots=True)
class Pack:
    """The reverse of `Unpack`: rounded for integers, with a stored number in place of NaN."""

    dtype: np.dtype[Any]
    scale: float | None
    offset: float | None
    missing: Any

    def apply(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values, packed."""
        result = np.array(values, np.result_type(values.dtype, np.float64))
        hidden = np.isnan(result)
        if self.offset is not None:
            result -= self.offset
        if self.scale is not None:
            result /= self.scale
        if self.dtype.kind in "iu":
            np.rint(result, out=result)
        if self.missing is not None:
            result[hidden] = self.missing
        return result.astype(self.dtype)

    def conversion(self, dtype: np.dtype[Any]) -> Conversion:
        """Return the same, which engines apply as they read."""
        return Conversion(self.dtype, self.apply)

    def __str__(self) -> str:
        return f"pack to {self.dtype}, scale {self.scale}, offset {self.offset}, missing {self.missing}"


Step: TypeAlias = "Cast | Unpack | Pack"


@dataclass(frozen=True, slots=True, eq=False)
class Converted:
    """Elements of a node, each converted by itself."""

    base: Node
    step: Step
    shape: tuple[int, ...] = field(init=False)
    """Number of elements along each dimension."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", self.base.shape)  # asked for often, and there may be thousands above

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the elements."""
        return self.step.dtype

    def __str__(self) -> str:
        return str(self.step)


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Nodes one behind the other along an axis. All have one data type."""

    parts: tuple[Node, ...]
    axis: int
    ends: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    known: dict[str, Any] = field(default_factory=dict, repr=False)
    """What was found out about the parts, so that joins of joins need not look at all of them again."""

    def __str__(self) -> str:
        return f"concat {len(self.parts)} along axis {self.axis}"


Node: TypeAlias = "Leaf | Filled | Selected | Reshaped | Converted | Joined"


def selected(node: Node, transform: Transform) -> Node:
    """Return some elements of a node. Selections compose, and go below conversions, so that less is converted."""
    node, steps = _unconverted(node)
    if isinstance(node, Selected):
        node = Selected(node.base, node.transform.compose(transform))
    else:
        node = Selected(node, transform)
    return converted(node, steps)


def reshaped(node: Node, shape: tuple[int, ...]) -> Node:
    """Return the elements of a node with other dimensions. Raises SelectionError if there are too few or too many."""
    node, steps = _unconverted(node)
    while isinstance(node, Reshaped):
        node = node.base
    transform = transforms.reshaped(node.shape, shape)
    if transform is None:
        return converted(Reshaped(node, shape), steps)
    return converted(node if node.shape == shape else selected(node, transform), steps)


def _unconverted(node: Node) -> tuple[Node, list[Step]]:
    """Return the node below conversions, and these in the order in which they are applied."""
    steps: list[Step] = []
    while isinstance(node, Converted):
        steps.append(node.step)
        node = node.base
    return node, steps[::-1]


def converted(node: Node, steps: Iterable[Step]) -> Node:
    """Return the elements of a node after conversions, in the order in which they are applied."""
    for step in steps:
        node = Converted(node, step)
    return node


def joined(parts: Sequence[Node], axis: int, dtype: np.dtype[Any], *, is_flat: bool = False) -> Joined:
    """Return nodes of equal lengths except along `axis` one behind the other, converted to one data type.

    Joins along the same axis become one, so that adding parts one by one makes no deep tree, as long as there are few
    parts: joins of joins of the same nodes would have more at each step than there are nodes. `is_flat`: none becomes.
    """
    same = [part if part.dtype == dtype else Converted(part, Cast(dtype)) for part in parts]
    below = [part for part in same if isinstance(part, Joined) and part.axis == axis]
    are_few = len(below) <= 1 or sum(len(part.parts) for part in below) <= _MOST_MERGED
    merged = {id(part) for part in below if are_few} if not is_flat else set()
    flat: list[Node] = []
    for part in same:
        if id(part) in merged and isinstance(part, Joined):
            merged.remove(id(part))  # the same join once more stays a node
            flat += part.parts
        else:
            flat.append(part)
    ends = tuple(accumulate(part.shape[axis] for part in flat))
    first = flat[0].shape
    return Joined(tuple(flat), axis, ends, (*first[:axis], ends[-1], *first[axis + 1 :]), dtype)


def children(node: Node) -> tuple[Node, ...]:
    """Return the nodes that a node is made of."""
    if isinstance(node, Joined):
        return node.parts
    return (node.base,) if isinstance(node, Selected | Reshaped | Converted) else ()


def leaves(node: Node) -> Iterator[Leaf]:
    """Yield all sources, in order, those of a node that is in the tree several times once."""
    waiting = [node]
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Leaf):
            yield node
        waiting += reversed(children(node))


def fold(node: Node, combine: Callable[[Node, list[T]], T], name: str = "") -> T:
    """Return what `combine` makes of a node and the results for its children.

    Trees may be deep: nothing recurs. Nodes may be in the tree many times: each is combined once, and results must not
    be changed. If the result has a `name`, joins know it from then on.
    """
    found: dict[int, T] = {}
    waiting: list[tuple[Node, bool]] = [(node, False)]
    while waiting:
        each, is_ready = waiting.pop()
        if id(each) in found:
            continue
        if name and isinstance(each, Joined) and name in each.known:
            found[id(each)] = each.known[name]
            continue
        below = children(each)
        if is_ready or not below:
            result = found[id(each)] = combine(each, [found[id(child)] for child in below])
            if name and isinstance(each, Joined):
                each.known[name] = result
        else:
            waiting.append((each, True))
            waiting += [(child, False) for child in reversed(below)]
    return found[id(node)]


def flattened(node: Node) -> list[tuple[Any, ...]]:
    """Return a tree as a list of rows, children before parents: a tree may be too deep for `pickle`.

    What is made of one node has it in the row before; "again" is a row before once more.
    """
    rows: list[tuple[Any, ...]] = []

    def add(each: Node, below: list[int]) -> int:
        if isinstance(each, Selected | Reshaped | Converted) and below[0] != len(rows) - 1:
            rows.append(("again", below[0]))
        if isinstance(each, Selected):
            row: tuple[Any, ...] = ("select", each.transform.shape, each.transform.outputs)
        elif isinstance(each, Reshaped):
            row = ("reshape", each.shape)
        elif isinstance(each, Converted):
            row = ("convert", each.step)
        elif isinstance(each, Joined):
            row = ("join", below, each.axis, each.dtype)
        elif isinstance(each, Leaf):
            row = ("leaf", each.source, each.shape, each.dtype, each.since, each.stamp)
        else:
            row = ("fill", each.shape, each.dtype, each.value)
        rows.append(row)
        return len(rows) - 1

    fold(node, add)
    return rows


def of_rows(rows: Sequence[tuple[Any, ...]]) -> Node:
    """Return the tree of `flattened`."""
    nodes: list[Node] = []
    for kind, *values in rows:
        if kind == "select":
            nodes.append(Selected(nodes[-1], Transform(*values)))
        elif kind == "reshape":
            nodes.append(Reshaped(nodes[-1], *values))
        elif kind == "convert":
            nodes.append(Converted(nodes[-1], *values))
        elif kind == "again":
            nodes.append(nodes[values[0]])
        elif kind == "join":
            numbers, axis, dtype = values
            nodes.append(joined([nodes[number] for number in numbers], axis, dtype, is_flat=True))
        else:
            nodes.append(Leaf(*values) if kind == "leaf" else Filled(*values))
    return nodes[-1]


def drawing(node: Node, most: int = 6) -> list[str]:
    """Return the tree as lines of text, with at most this many parts of each join."""
    lines: list[str] = []
    waiting: list[tuple[int, Node | str]] = [(0, node)]
    while waiting:
        depth, each = waiting.pop()
        lines.append("  " * depth + str(each))
        below: list[Node | str] = [] if isinstance(each, str) else list(children(each))
        if len(below) > most:
            below[most - 2 : -1] = [f"... {len(below) - most + 1} more"]
        waiting += [(depth + 1, child) for child in reversed(below)]
        if len(lines) >= _MOST_LINES:
            lines.append("...")
            break
    return lines
