"""Lazy arrays: selections and conversions that are carried out when you read."""

from __future__ import annotations

import html
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from omnizarr.errors import ReadOnlyError, SelectionError, SelectionMemoryError, ShapeError, ValueTypeError
from omnizarr.indexing import transforms
from omnizarr.indexing.transforms import Along, Transform
from omnizarr.model import datatypes
from omnizarr.model.datatypes.optional import as_masked, is_optional
from omnizarr.nodes import packing
from omnizarr.nodes.indexers import AnyArray
from omnizarr.nodes.lazy import reshaping, sources, tree
from omnizarr.nodes.lazy.deferred import Deferred
from omnizarr.nodes.lazy.reading import Layout, jobs, read
from omnizarr.nodes.lazy.tree import (
    Cast,
    Converted,
    Joined,
    Leaf,
    Node,
    Pack,
    Reshaped,
    Selected,
    Unpack,
    joined,
    selected,
)
from omnizarr.nodes.out import Out, memory_of
from omnizarr.nodes.packing import Marks, Packing
from omnizarr.nodes.writing import optional_elements

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, DTypeLike

Names = tuple[str | None, ...] | None

_NEVER_PACKED: Final = "mMSUTO"
_MOST_IN_ROW: Final = 2**20
"""Elements along a merged dimension that are read as one piece."""


class LazyArray:
    """An array that is read when you ask for elements: a selection of an array, or many arrays as one.

    You get one from ``array.lazy``, `omnizarr.concat`, `omnizarr.stack` and `omnizarr.block`. Brackets read, as those
    of `omnizarr.Array` do. `lazy` and the methods return other lazy arrays, and read nothing.

    Attributes
    ----------
    shape : tuple of int
        Number of elements along each dimension.
    dtype : numpy.dtype
        Data type of the elements.
    dimension_names : tuple of str or None, optional
        Name of each dimension.
    notes : tuple of str
        What was done to bring sources together.

    Examples
    --------
    >>> import numpy as np
    >>> import omnizarr
    >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
    >>> last = array.lazy[:, ::-1].transpose()
    >>> last.shape
    (4, 3)
    >>> last[0]
    array([ 3,  7, 11])
    >>> last.lazy[1:].astype("float32")[...]
    array([[ 2.,  6., 10.],
           [ 1.,  5.,  9.],
           [ 0.,  4.,  8.]], dtype=float32)
    """

    __slots__ = ("_node", "dimension_names", "notes")

    def __init__(self, node: Node, dimension_names: Names = None, notes: tuple[str, ...] = ()) -> None:
        self._node = node
        self.dimension_names = dimension_names
        self.notes = notes

    # -- properties ------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of elements along each dimension."""
        return self._node.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the elements."""
        return self._node.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._node.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self._node.shape)

    @property
    def nbytes(self) -> int:
        """Number of bytes of all elements, once they are read."""
        return self.size * self.dtype.itemsize

    @property
    def chunks(self) -> tuple[int, ...]:
        """Lengths of pieces that are read well, one per dimension: those of the chunks of the first source."""
        return chunks_of(self._node)

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes that all sources have with the same value, without those that a conversion has made untrue.

        A join has those that its sources had when they were joined.
        """
        return dict(_attributes(self._node) or {})

    @property
    def nsources(self) -> int:
        """Number of sources."""
        return tree.fold(self._node, lambda each, below: int(isinstance(each, Leaf)) + sum(below), "nsources")

    # -- other lazy arrays -----------------------------------------------------------

    @property
    def lazy(self) -> LazySelection:
        """Brackets that select without reading: ``view.lazy[::2, [1, 5]]``."""
        return LazySelection(self)

    def _with(self, transform: Transform) -> LazyArray:
        names = self.dimension_names
        if names is not None:
            new: list[str | None] = [None] * len(transform.shape)
            of_axes = [() if isinstance(output, int) else transforms.dims_of(output) for output in transform.outputs]
            for name, dims in zip(names, of_axes, strict=True):
                if len(dims) == 1 and sum(dims[0] in others for others in of_axes) == 1:
                    new[dims[0]] = name
            names = tuple(new)
        return LazyArray(selected(self._node, transform), names, self.notes)

    def transpose(self, *axes: int | Sequence[int] | None) -> LazyArray:
        """Return the array with its dimensions in another order; reversed by default."""
        wanted: Any = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        order = tuple(reversed(range(self.ndim))) if not wanted else tuple(wanted)
        order = tuple(axis + self.ndim if axis < 0 else axis for axis in order)
        if sorted(order) != list(range(self.ndim)):
            raise SelectionError(
                "not an order of the dimensions", found=wanted, expected=f"each of 0 to {self.ndim - 1}"
            )
        return self._with(transforms.transposed(self.shape, order))

    @property
    def T(self) -> LazyArray:  # noqa: N802 - NumPy's name
        """The array with its dimensions reversed."""
        return self.transpose()

    def reshape(self, *shape: int | Sequence[int]) -> LazyArray:
        """Return the array with other dimensions and the same elements in the same order, that of C.

        Dimensions are divided and merged, as by `numpy.reshape`. Selections of the result read the chunks of their
        elements. It cannot be written, unless only dimensions of length 1 were added or dropped.

        Parameters
        ----------
        *shape : int
            Length of each dimension. One may be -1: it becomes what is left.

        Raises
        ------
        SelectionError
            If the shape has another number of elements.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> hours = omnizarr.create_array({}, data=np.arange(72), chunks=24)
        >>> days = hours.lazy.reshape(-1, 24)
        >>> days.shape
        (3, 24)
        >>> days[1:, 0]
        array([24, 48])
        """
        wanted: Any = shape[0] if len(shape) == 1 and not isinstance(shape[0], int | np.integer) else shape
        lengths = list(map(operator.index, wanted))
        if lengths.count(-1) == 1:
            rest = math.prod(n for n in lengths if n != -1)
            lengths[lengths.index(-1)] = self.size // rest if rest else 0
        node = tree.reshaped(self._node, tuple(lengths))
        return LazyArray(node, _names_of_reshaped(self.dimension_names, self.shape, node.shape), self.notes)

    def broadcast_to(self, shape: Sequence[int]) -> LazyArray:
        """Return the array with dimensions of length 1 repeated, as `numpy.broadcast_to` does."""
        return self._with(transforms.broadcast(self.shape, tuple(shape)))

    def astype(self, dtype: DTypeLike) -> LazyArray:
        """Return the array with its elements converted to another data type when they are read."""
        wanted = np.dtype(dtype)
        if wanted == self.dtype:
            return self
        return LazyArray(Converted(self._node, Cast(wanted)), self.dimension_names, self.notes)

    def unpack(
        self, scale: float | None = None, offset: float | None = None, fill: Any = None, *, dtype: DTypeLike = "float64"
    ) -> LazyArray:
        """Return ``stored * scale + offset``, with NaN for stored numbers that are missing or not valid.

        If none of `scale`, `offset` and `fill` is given, each source is unpacked by its own attributes
        ``scale_factor``, ``add_offset``, ``_FillValue``, ``missing_value``, ``valid_range``, ``valid_min``,
        ``valid_max`` and ``_Unsigned``. The values of these but the first two are those of stored numbers. Complex
        numbers stay complex; times, text and records are unchanged, as nothing packs them.

        Parameters
        ----------
        scale, offset : float, optional
        fill : number or sequence of number, optional
            Stored numbers that become NaN.
        dtype : data-type
            A type of floating-point numbers.

        Examples
        --------
        >>> import omnizarr
        >>> packed = omnizarr.create_array({}, data=[10, 20, -1, 900], dtype="int16")
        >>> packed.attrs.update({"scale_factor": 0.5, "missing_value": -1, "valid_max": 100})
        >>> packed.lazy.unpack()[...]
        array([ 5., 10., nan, nan])
        """
        wanted = np.dtype(dtype)
        if wanted.kind != "f":
            raise ValueTypeError(
                "unpacked numbers need a floating-point type", found=wanted, expected="float32 or float64"
            )
        if self.dtype.kind == "c":
            wanted = np.result_type(wanted, np.complex64)
        if scale is offset is fill is None:
            if self.dtype.kind in _NEVER_PACKED or self.dtype.names is not None:
                return self
            return LazyArray(unpacked(self._node, wanted), self.dimension_names, self.notes)
        marks = None if fill is None else Marks(tuple(np.ravel(fill).tolist()))
        known = Packing(dtype=self.dtype, marks=marks, scale_factor=scale, add_offset=offset)
        return LazyArray(Converted(self._node, Unpack(wanted, known)), self.dimension_names, self.notes)

    def pack(
        self, dtype: DTypeLike, scale: float | None = None, offset: float | None = None, fill: Any = None
    ) -> LazyArray:
        """Return ``(value - offset) / scale``, rounded if `dtype` is an integer type, with `fill` in place of NaN."""
        return LazyArray(
            Converted(self._node, Pack(np.dtype(dtype), scale, offset, fill)), self.dimension_names, self.notes
        )

    def rename(self, names: Mapping[str, str] | Sequence[str | None]) -> LazyArray:
        """Return the array with other names of dimensions: all of them, or a mapping of old names to new ones."""
        if isinstance(names, Mapping):
            known = self.dimension_names or (None,) * self.ndim
            unknown = [name for name in names if name not in known]
            if unknown:
                raise SelectionError("there is no such dimension", found=unknown[0], expected=f"one of {known}")
            return LazyArray(self._node, tuple(names.get(each, each) if each else each for each in known), self.notes)
        new = tuple(names)
        if len(new) != self.ndim:
            raise ShapeError("there must be one name for each dimension", found=len(new), expected=self.ndim)
        return LazyArray(self._node, new, self.notes)

    # -- reading ---------------------------------------------------------------------

    def __getitem__(self, selection: Any) -> Any:
        """Return the selected elements as a NumPy array or scalar. Selections are those of `omnizarr.Array`."""
        return self._with(transforms.of_selection(selection, self.shape)).read()

    @property
    def oindex(self) -> _Reading:
        """Orthogonal selections, which are read: ``view.oindex[[0, 2], :, mask]``."""
        return _Reading(self, transforms.orthogonal)

    @property
    def vindex(self) -> _Reading:
        """Selections by coordinates or by a mask, which are read: ``view.vindex[[0, 2], [1, 1]]``."""
        return _Reading(self, transforms.coordinate)

    def read(self, *, out: Out | None = None) -> Any:
        """Return all elements as a NumPy array or scalar.

        Parameters
        ----------
        out : array, optional
            Array of the same shape, which is filled and returned: see `omnizarr.Array.get_basic_selection`.

        Raises
        ------
        ShapeError
            If `out` has another shape, or elements that lie in the same memory.
        ValueTypeError
            If `out` has another kind of data type, or is not in the memory of the host.
        ReadOnlyError
            If `out` is read-only.
        ChunkError
            If a stored chunk of a source is broken.
        SelectionMemoryError
            If the elements are too many for the memory.
        """
        if out is None:
            try:
                result = np.empty(self.shape, self.dtype)
            except (MemoryError, ValueError) as error:  # ValueError: more than any array can have
                raise SelectionMemoryError(
                    "the selected elements do not fit in memory",
                    found=f"shape {self.shape}, data type {self.dtype}",
                    remedy="read a part of them at a time",
                ) from error
            read(self._node, result)
            if is_optional(self.dtype):
                return as_masked(result)
            return result if result.shape else result[()]
        read(self._node, memory_of(out, self.dtype, self.shape))
        return out

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> AnyArray:  # noqa: FBT001 - NumPy's
        if copy is False:
            raise ValueError("the elements must be copied out of the store, so `copy=False` is not possible")
        result = np.asarray(self.read(out=np.empty(self.shape, self.dtype)) if is_optional(self.dtype) else self.read())
        return result if dtype is None else result.astype(dtype, copy=False)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    # -- writing ---------------------------------------------------------------------

    def __setitem__(self, selection: Any, value: ArrayLike) -> None:
        """Store elements in the source. That is possible for selections of one array, without conversions.

        Raises
        ------
        ReadOnlyError
            If the array has several sources or a conversion, or the source is read-only.
        ShapeError
            If `value` cannot be broadcast to the selection.
        """
        found = self._with(transforms.of_selection(selection, self.shape))
        node = found._node  # noqa: SLF001 - another of this class
        base = node.base if isinstance(node, Selected) else node
        if isinstance(base, Reshaped):
            raise ReadOnlyError(
                "an array whose dimensions were divided or merged cannot be written",
                found=str(base),
                remedy="write before you reshape",
            )
        if not isinstance(base, Leaf):
            raise ReadOnlyError(
                "only selections of one array can be written",
                found=str(base),
                remedy="write to the arrays that it is made of",
            )
        stored: Any = value
        if is_optional(self.dtype):
            stored = optional_elements(value, datatypes.bind(base.source.metadata.data_type), found.shape)
        if isinstance(value, np.ndarray) or np.ndim(value):
            stored = np.asarray(value)
            while stored.ndim > found.ndim and stored.shape[0] == 1:  # NumPy drops them in an assignment
                stored = stored[0, ...]
            try:
                stored = np.broadcast_to(stored, found.shape)
            except ValueError:
                raise ShapeError(
                    "the value cannot be broadcast to the selection", found=np.shape(value), expected=found.shape
                ) from None
        if not found.size:
            return
        (job,) = jobs(node)
        layout = Layout(job.source)
        if not layout.is_one_to_one:
            raise ReadOnlyError("an array that was broadcast cannot be written", remedy="write before you broadcast")
        base.source[layout.selection] = layout.rearranged(stored) if isinstance(stored, np.ndarray) else stored

    # -- Python protocols ------------------------------------------------------------

    def __repr__(self) -> str:
        head = f"<LazyArray {self.shape} {self.dtype}>"
        return "\n  ".join([head, *tree.drawing(self._node)])

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"

    def _replaces_text(self, *, looks: bool = True) -> bool:
        """Return whether an open source has U+FFFD in place of bytes that are not UTF-8; see `verbs.replaces_text`.

        What was not read is not looked for if this shows less than all of its sources.
        """
        opened = {id(leaf.source): leaf.source for leaf in tree.leaves(self._node)}
        looks = looks and math.prod(self.shape) >= sum(math.prod(source.shape) for source in opened.values())
        ours = (source for source in opened.values() if hasattr(source, "_replaces_text"))
        return any(source._replaces_text(looks=looks) for source in ours)  # noqa: SLF001 - of Array

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_rows, (tree.flattened(self._node), self.dimension_names, self.notes)

    def __dask_tokenize__(self) -> object:
        normalize: Any = import_module(
            "dask.base"
        ).normalize_token  # dask takes the rows as they are, with their `repr`
        return "omnizarr.LazyArray", normalize(tree.flattened(self._node)), self.dimension_names


class LazySelection:
    """Selecting without reading: ``array.lazy[...]``, and the methods of `LazyArray`."""

    __slots__ = ("_view",)

    def __init__(self, view: LazyArray) -> None:
        self._view = view

    def __getitem__(self, selection: Any) -> LazyArray:
        """Return the selected elements as a lazy array. Selections are those of `omnizarr.Array`."""
        view = self._view
        return view._with(transforms.of_selection(selection, view.shape))  # noqa: SLF001 - a part of LazyArray

    @property
    def oindex(self) -> _Brackets:
        """Orthogonal selections: ``array.lazy.oindex[[0, 2], :, mask]``."""
        return _Brackets(self._view, transforms.orthogonal)

    @property
    def vindex(self) -> _Brackets:
        """Selections by coordinates or by a mask: ``array.lazy.vindex[[0, 2], [1, 1]]``."""
        return _Brackets(self._view, transforms.coordinate)

    def transpose(self, *axes: int | Sequence[int] | None) -> LazyArray:
        """See `LazyArray.transpose`."""
        return self._view.transpose(*axes)

    @property
    def T(self) -> LazyArray:  # noqa: N802 - NumPy's name
        """The array with its dimensions reversed."""
        return self._view.transpose()

    def reshape(self, *shape: int | Sequence[int]) -> LazyArray:
        """See `LazyArray.reshape`."""
        return self._view.reshape(*shape)

    def broadcast_to(self, shape: Sequence[int]) -> LazyArray:
        """See `LazyArray.broadcast_to`."""
        return self._view.broadcast_to(shape)

    def astype(self, dtype: DTypeLike) -> LazyArray:
        """See `LazyArray.astype`."""
        return self._view.astype(dtype)

    def unpack(
        self, scale: float | None = None, offset: float | None = None, fill: Any = None, *, dtype: DTypeLike = "float64"
    ) -> LazyArray:
        """See `LazyArray.unpack`."""
        return self._view.unpack(scale, offset, fill, dtype=dtype)

    def pack(
        self, dtype: DTypeLike, scale: float | None = None, offset: float | None = None, fill: Any = None
    ) -> LazyArray:
        """See `LazyArray.pack`."""
        return self._view.pack(dtype, scale, offset, fill)

    def rename(self, names: Mapping[str, str] | Sequence[str | None]) -> LazyArray:
        """See `LazyArray.rename`."""
        return self._view.rename(names)

    def __repr__(self) -> str:
        return f"<LazySelection of {self._view!r}>"


class _Brackets:
    __slots__ = ("_select", "_view")

    def __init__(self, view: LazyArray, select: Callable[[Any, Sequence[int]], Transform]) -> None:
        self._view, self._select = view, select

    def __getitem__(self, selection: Any) -> Any:
        view = self._view
        return view._with(self._select(selection, view.shape))  # noqa: SLF001 - a part of LazyArray


class _Reading(_Brackets):
    __slots__ = ()

    def __getitem__(self, selection: Any) -> Any:
        return super().__getitem__(selection).read()


def as_lazy(source: Any, *, watched: bool = False) -> LazyArray:
    """Return anything with a shape as a lazy array; if it is `watched`, reading fails once the source has changed."""
    if isinstance(source, LazyArray):
        return source
    if isinstance(source, LazySelection):
        return source._view  # noqa: SLF001 - a part of LazyArray
    if not (hasattr(source, "shape") and hasattr(source, "dtype")):
        source = np.asarray(source)
    view_of = getattr(getattr(source, "store", None), "view_of", None)
    if view_of is not None:  # an array of a `LazyStore`
        found: LazyArray = view_of(source.path.strip("/"))
        if source.store.has_meaning_of_sources(source.path.strip("/")):
            return found
    names = getattr(source, "dimension_names", None)
    seen = sources.stamp(source) if watched else None
    return LazyArray(Leaf(source, tuple(source.shape), np.dtype(source.dtype), "joined" * watched, seen), names)


def all_lazy(given: Iterable[Any]) -> list[LazyArray]:
    """Return the same as `as_lazy` for each of many sources, which are watched.

    Arrays with the same documents have the same metadata, of which everything is found out once.
    """
    found = []
    facts: dict[int, tuple[Any, tuple[int, ...], np.dtype[Any], Names]] = {}
    for source in given:
        metadata = sources.metadata_of(source)
        if metadata is None or hasattr(source.store_path.store, "view_of"):
            found.append(as_lazy(source, watched=True))
            continue
        known = facts.get(id(metadata))
        if known is None:  # with the metadata, so that no others get their identity
            known = facts[id(metadata)] = (metadata, source.shape, np.dtype(source.dtype), source.dimension_names)
        _, shape, dtype, names = known
        found.append(LazyArray(Leaf(source, shape, dtype, "joined", sources.stamp(source)), names))
    return found


def attributes_of(views: Iterable[LazyArray]) -> list[dict[str, Any] | None]:
    """Return the attributes of each lazy array; None for gaps, which have no sources. Those of equal arrays are one."""
    found = []
    same: dict[int, tuple[Any, dict[str, Any]]] = {}
    for view in views:
        node = view._node  # noqa: SLF001 - of this module
        source = node.source if isinstance(node, Leaf) else None
        what: Any = source.attrs if isinstance(source, Deferred) else sources.metadata_of(source)
        if what is None:
            found.append(_attributes(node))
            continue
        known = same.get(id(what))
        if known is None:  # with what it is of, so that nothing else gets that identity
            known = same[id(what)] = (what, _attributes(node) or {})
        found.append(known[1])
    return found


def _names_of_reshaped(names: Names, shape: Sequence[int], to: Sequence[int]) -> Names:
    """Return the names of dimensions: only those that were neither divided nor merged keep theirs."""
    if names is None:
        return None
    new: list[str | None] = [None] * len(to)
    for axis, dim in reshaping.kept_dims(shape, to).items():
        new[dim] = names[axis]
    return tuple(new)


def _of_rows(rows: Sequence[tuple[Any, ...]], names: Names, notes: tuple[str, ...]) -> LazyArray:
    return LazyArray(tree.of_rows(rows), names, notes)


def unpacked(node: Node, dtype: np.dtype[Any]) -> Node:
    """Return a node whose sources are each unpacked by their own attributes."""

    def unpack(each: Node, below: list[Node]) -> Node:
        if isinstance(each, Leaf):
            metadata = getattr(each.source, "_metadata", None)
            if metadata is None:
                return Converted(each, Unpack(dtype, Packing.of_json(getattr(each.source, "attrs", {}), each.dtype)))
            return Converted(each, Unpack(dtype, Packing.of_array(metadata)))
        if isinstance(each, Selected):
            return selected(below[0], each.transform)
        if isinstance(each, Reshaped):
            return tree.reshaped(below[0], each.shape)
        if isinstance(each, Joined):
            return joined(below, each.axis, dtype)
        if isinstance(each, Converted) and isinstance(each.step, Cast):
            return below[0]
        return Converted(each, Cast(dtype))  # unpacked before, or a gap

    return tree.fold(node, unpack)


def with_attributes(views: Sequence[LazyArray], node: Joined) -> Joined:
    """Return a join of lazy arrays, which knows their attributes from now on."""
    node.known["attributes"] = _common(attributes_of(views))
    return node


def _common(several: Iterable[dict[str, Any] | None]) -> dict[str, Any] | None:
    """Return the attributes that are equal everywhere. Gaps have none, and do not count."""
    found = list({id(each): each for each in several if each is not None}.values())
    if not found:
        return None
    first, others = found[0], found[1:]
    return {name: value for name, value in first.items() if all(name in o and o[name] == value for o in others)}


def _attributes(node: Node) -> dict[str, Any] | None:
    """Return the attributes that all sources have; None if there is none."""

    def collect(each: Node, below: list[dict[str, Any] | None]) -> dict[str, Any] | None:
        if isinstance(each, Leaf):
            is_closed = isinstance(each.source, Deferred)  # its attributes are known, with such a scale
            own = {} if is_closed else packing.own_scale(getattr(each.source, "_metadata", None))
            return {**getattr(each.source, "attrs", {}), **own}
        if isinstance(each, Converted) and not isinstance(each.step, Cast) and below[0] is not None:
            return {name: value for name, value in below[0].items() if name not in packing.ATTRIBUTES}
        if isinstance(each, Joined):
            return _common(below)
        return below[0] if below else None

    return tree.fold(node, collect, "attributes")


def _chunks_of_leaf(leaf: Leaf) -> Any:
    return getattr(leaf.source, "chunks", None)


def chunks_of(node: Node, of_leaf: Callable[[Leaf], Any] = _chunks_of_leaf) -> tuple[int, ...]:
    """Return lengths of pieces that are read well, made of those of the first source, which `of_leaf` returns."""

    def lengths(each: Node, below: list[tuple[int, ...]]) -> tuple[int, ...]:
        if isinstance(each, Converted):
            return below[0]
        found = [max(1, length) for length in each.shape]
        if isinstance(each, Joined):
            parts = sorted(part.shape[each.axis] for part in each.parts)
            found = list(below[0])
            found[each.axis] = max(1, min(found[each.axis], parts[len(parts) // 2]))  # the last part may be short
        elif isinstance(each, Selected):
            for output, length in zip(each.transform.outputs, below[0], strict=True):
                if isinstance(output, Along):
                    found[output.dim] = min(found[output.dim], max(1, length // abs(output.indices.step)))
        elif isinstance(each, Reshaped):
            return reshaping.chunks(below[0], each.base.shape, each.shape, _MOST_IN_ROW)
        elif isinstance(each, Leaf):
            chunks = of_leaf(each)
            if chunks is not None and len(chunks) == len(found) and all(isinstance(length, int) for length in chunks):
                return tuple(chunks)
        return tuple(found)

    return tree.fold(node, lengths)
