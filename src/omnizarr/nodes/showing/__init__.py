"""What `Array.show` reads and shows: no more elements than a picture has room for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import NodeNotFoundError, OmnizarrError
from omnizarr.formats.conventions import presentation
from omnizarr.formats.conventions.axes import is_upside_down
from omnizarr.formats.conventions.contract import Nodes
from omnizarr.formats.conventions.display import Channel
from omnizarr.formats.conventions.ome import naming, reading
from omnizarr.model import ArrayMetadata, GroupMetadata
from omnizarr.model.datatypes.optional import VALUE, is_optional
from omnizarr.nodes import detection, extremes, info, wording
from omnizarr.nodes.location import StorePath
from omnizarr.nodes.packing import Packing
from omnizarr.nodes.showing import meaning, slices
from omnizarr.nodes.showing.slices import Slice
from omnizarr.pictures.axes import Axis
from omnizarr.pictures.contents import Content, Light, Page, Style, Subject, content_of, proportion
from omnizarr.pictures.numbers import are_numbers, numbers_of
from omnizarr.pictures.picture import Picture
from omnizarr.stores import LocalStore
from omnizarr.support.text import visible

if TYPE_CHECKING:
    from omnizarr.nodes.array import Array
    from omnizarr.nodes.group import Group

_MOST_OTHERS: Final = 8
_MOST_BELOW: Final = 3
"""Groups from a plate to an image."""
_MOST_FLAGS: Final = 16
_TABLE: Final = (20, 8)
"""Maximum rows and columns of a table."""


def image_array(group: Group) -> Array | None:
    """Return the full resolution of a group that is a multiscale image, or holds several; None for other groups.

    Of a plate it is that of the first field of the first well, of labels that of the first label image.
    """
    group, _ = _image_in(group)
    nodes = Nodes({group.path: group.metadata})
    for image in reading.images(group.path, nodes):
        for dataset in reading.datasets(image):
            found: Array = group.get_array(reading.resolve("", dataset["path"]))
            return found
    return None


def _image_in(group: Group) -> tuple[Group, tuple[str, ...]]:
    """Return the image that represents a plate, a well, or labels, and how it was found; or the group."""
    found, words = group, []
    for _ in range(_MOST_BELOW):
        chosen = naming.first(found.metadata)
        if chosen is None:
            break
        try:
            found = found.get_group(reading.resolve("", chosen[0]))
        except OmnizarrError:
            break
        words.append(chosen[1])
    return found, tuple(words)


def _labels_of(group: Group) -> str:
    """Return a remark that names the label images of an image; empty if it has none."""
    try:
        listed = naming.named(group.get_group("labels").metadata)
    except OmnizarrError:
        return ""
    names = ", ".join(map(visible, listed[:_MOST_OTHERS])) + (", ..." if len(listed) > _MOST_OTHERS else "")
    return f"labels that are not drawn: {names}; show one by its path, labels/{visible(listed[0])}" if listed else ""


def array_of(group: Group) -> tuple[Array, str]:
    """Return the array that represents a group, and a remark about the choice.

    It is the full resolution of a multiscale image; else, by name, the first array of data with two dimensions or more,
    or with one, or any. Arrays with the coordinates of a dimension are no data.

    Raises
    ------
    NodeNotFoundError
        If there is no array directly below the group.
    """
    holder, words = _image_in(group)
    image = image_array(holder)
    if image is not None:
        return image, "; ".join(filter(None, (", ".join(words), _labels_of(holder))))
    arrays = dict(sorted(group.arrays()))
    if not arrays:
        groups = ", ".join(sorted(map(visible, group.group_keys())))
        found = f"groups {groups}" if groups else "nothing"
        remedy = f"choose an array below: omnizarr ls -r {visible(str(group.store_path))}"
        raise NodeNotFoundError("there is no array right in the group", path=group.path, found=found, remedy=remedy)
    data = {name: array for name, array in arrays.items() if array.dimension_names != (name,)} or arrays
    chosen = max(data, key=lambda name: _shows(data[name]))  # the first of those that show most
    others = [visible(name) for name in data if name != chosen]
    if not others:
        return data[chosen], ""
    listed = ", ".join(others[:_MOST_OTHERS]) + (", ..." if len(others) > _MOST_OTHERS else "")
    return data[chosen], f"one of {len(data)} arrays of the group: show others by their names, {listed}"


def _shows(array: Array) -> int:
    """Return how much a picture of an array shows: an image more than a line, and that more than a table."""
    return min(array.ndim, 2) if array.dtype.kind in "biufcmM" and 0 not in array.shape else 0


def picture_of_group(group: Group, selection: Any, style: Style, size: tuple[int, int], *, rgb: bool | None) -> Picture:
    """Return the picture; see `Group.show`."""
    array, choice = array_of(group)
    picture = picture_of(array, selection, style, size, rgb=rgb)
    if not choice:
        return picture
    return replace(picture, page=replace(picture.page, remarks=(*picture.page.remarks, choice)))


def picture_of(array: Array, selection: Any, style: Style, size: tuple[int, int], *, rgb: bool | None) -> Picture:
    """Return the picture. See `Array.show`."""
    view = _view_of(in_its_group(array), selection, rgb=rgb)
    if not view.is_picture:
        subject = view.table()
    else:
        view = view.at_resolution(view.room_in(size))
        subject = view.subject()
    return Picture(Page(view.title, content_of(subject, style), tuple(view.remarks())), size)


def small(
    array: Array, size: tuple[int, int], *, most_chunks: int, most_bytes: int, largest: int
) -> tuple[Content, str] | None:
    """Return what a small picture of an array shows, and of which part of a long line.

    None if it is a table, or if one chunk exceeds `largest` bytes. It has fewer elements than there is room for if
    these were in more than `most_chunks` chunks, or in chunks of more than `most_bytes` together. Of a long line it has
    the smallest and largest element of what is read.
    """
    view = _view_of(in_its_group(array), (), rgb=None)
    if not view.is_picture:
        return None
    room = size
    while True:
        found = view.at_resolution(view.room_in(room))
        if found.bins is not None:
            return found.small_line(found.bins, most_chunks, most_bytes, largest)
        chunks, nbytes = found.chunks_read()
        if chunks <= 1 and nbytes > largest:
            return None
        if chunks <= 1 or (chunks <= most_chunks and nbytes <= most_bytes) or max(room) == 1:
            return content_of(found.subject(), Style()), ""
        room = (max(room[0] // 2, 1), max(room[1] // 2, 1))


def chosen_in(array: Array, selection: Any, *, rgb: bool | None = None) -> Slice:
    """Return the part of an array that a picture shows."""
    return _view_of(array, selection, rgb=rgb).chosen


def _view_of(array: Array, selection: Any, *, rgb: bool | None) -> _View:
    setting = meaning.Setting.of(array)
    blended = setting.channels
    channels = () if setting.image is None or blended is None else setting.image.channels
    roles = [dimension.role for dimension in setting.dimensions]
    active = [channel.active for channel in channels]
    chosen = slices.choose(
        array.shape, setting.names, array.dtype, selection, rgb=rgb, blended=blended, active=active, roles=roles
    )
    return _View(setting, chosen, channels=channels)


def in_its_group(array: Array) -> Array:
    """Return an array opened by its own directory as a member of the group around it, which has the coordinates."""
    store = array.store
    if array.path or not isinstance(store, LocalStore):
        return array
    root = Path(store.root).absolute()
    parent = StorePath(LocalStore(root.parent, read_only=store.read_only))
    with suppress(OmnizarrError, OSError):
        group = detection.find(parent)
        if isinstance(group, GroupMetadata) and not group.implicit:
            found = detection.look(parent / root.name, array.metadata.dialect)
            if found is not None and isinstance(found.metadata, ArrayMetadata):
                return type(array)(found.where, found.metadata, array.config)
    return array


@dataclass(frozen=True, slots=True)
class _View:
    """The part of an array that is shown.

    Attributes
    ----------
    setting : meaning.Setting
        That of the array to read: a coarser level of the requested one, if that is enough.
    chosen : Slice
        The selection of that array.
    asked : Array or None
        The requested array, if it is another one.
    wanted : Slice or None
        Of `asked`.
    channels : tuple of Channel
        How the image describes them.
    bins : int or None
        Of a long line, how many pixels each show the smallest and largest of their elements.
    """

    setting: meaning.Setting
    chosen: Slice
    asked: Array | None = None
    wanted: Slice | None = None
    channels: tuple[Channel, ...] = ()
    bins: int | None = None

    @property
    def array(self) -> Array:
        """The array to read."""
        return self.setting.array

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of what is shown."""
        dtype = self.array.dtype
        if self.chosen.fields is not None:
            return dtype[self.chosen.fields]
        return dtype[VALUE] if is_optional(dtype) else dtype

    @property
    def packing(self) -> Packing:
        """What the attributes mean for stored values. Those of an array of records describe no field."""
        return Packing(dtype=self.dtype) if self.array.dtype.names else self.setting.packing

    @property
    def is_picture(self) -> bool:
        """Whether it becomes an image or a line, not a table."""
        return are_numbers(self.dtype) and bool(self.chosen.shown) and 0 not in self.chosen.lengths()

    def room_in(self, size: tuple[int, int]) -> tuple[int, ...]:
        """Return how many elements along each shown dimension fit into a picture of this width and height.

        An image keeps its proportions.
        """
        width, height = size
        lengths = self.chosen.lengths()
        if len(lengths) == 1:
            return (width,)
        tall = proportion(lengths[0], lengths[1], self._element(self.chosen))
        wide = min(width, height / tall)
        return max(1, round(wide * tall)), max(1, round(wide))

    def at_resolution(self, most: Sequence[int]) -> _View:
        """Return the view with at most this many elements along each shown dimension; of a line, as many bins."""
        if len(most) == 1 and self.chosen.channels is None and not is_optional(self.array.dtype):
            return replace(self, bins=most[0] if self.chosen.lengths()[0] > 2 * most[0] else None)
        coarser = self._coarser(most)
        return replace(coarser, chosen=coarser.chosen.thinned(most))

    def _coarser(self, most: Sequence[int]) -> _View:
        """Return the view of the coarsest level of the image that has enough elements."""
        if self.setting.image is None:
            return self
        steps = [-(-length // limit) for length, limit in zip(self.chosen.lengths(), most, strict=True)]
        found = self
        for number in count(self.setting.image.level.number + 1):
            coarser = self.setting.level(number)
            if coarser is None:
                break
            factors = [whole / part for whole, part in zip(self.array.shape, coarser.array.shape, strict=True)]
            if any(factors[dimension] > step + 0.5 for dimension, step in zip(self.chosen.shown, steps, strict=True)):
                break
            found = _View(coarser, _scaled(self.chosen, factors), self.array, self.chosen, self.channels)
        return found

    def small_line(self, bins: int, most_chunks: int, most_bytes: int, largest: int) -> tuple[Content, str] | None:
        """Return a small picture of a long line; see `small`."""
        cost, (dimension,) = extremes.chunk_cost(self.array), self.chosen.shown
        if cost > largest:
            return None
        most = max(cost, min(most_bytes, most_chunks * cost))
        facts = info.of_array(self.array.store_path, self.array.metadata)
        in_chunk = (facts.chunks or self.array.shape)[dimension]
        length = len(slices.as_range(self.chosen.axes[dimension]))
        if cost * (length / in_chunk) > most:
            bins = max(1, min(bins, most // cost, length // (2 * in_chunk)))
        subject, share = self._envelope(bins, most, less=1)
        return content_of(subject, Style()), subject.notes[0] if share < 1 else ""

    def chunks_read(self) -> tuple[int, int]:
        """Return how many chunks the shown elements are in, and their bytes when they are decoded."""
        facts = info.of_array(self.array.store_path, self.array.metadata)
        chunks = facts.chunks or self.array.shape
        number = 1
        for axis, side in zip(map(slices.as_range, self.chosen.axes), chunks, strict=True):
            ends = sorted((axis[0], axis[-1]))
            number *= min(len(axis), ends[1] // side - ends[0] // side + 1)
        return number, number * (facts.nbytes_of(chunks) or 0)

    def subject(self) -> Subject:
        """Read the data of an image or a line."""
        chosen = self.chosen
        if self.bins is not None:
            return self._envelope(self.bins)[0]
        values, missing = self._decoded(chosen)
        return self._subject(values, missing, self._axes(chosen))

    def _envelope(
        self, bins: int, most_bytes: int = extremes.MOST_BYTES, less: int = extremes.LESS
    ) -> tuple[Subject, float]:
        """Read the smallest and largest element of each bin of a line, and say which share of it that is.

        See `extremes.read`.
        """
        chosen, (dimension,) = self.chosen, self.chosen.shown
        packing = self.packing

        def decode(stored: NDArray[Any]) -> extremes.Decoded:
            values, hidden = packing.decoded(stored)
            missing = 0 if hidden is None else int(np.count_nonzero(hidden))
            return extremes.Decoded(values, numbers_of(values, hidden).values, missing)

        line = slices.as_range(chosen.axes[dimension])
        width = -(-len(line) // bins)
        found = extremes.read(
            self.array, chosen.axes, dimension, width, decode, fields=chosen.fields, most_bytes=most_bytes, less=less
        )
        values, is_empty, at = found.line()
        axis = self.setting.axis(dimension, np.array(line.start + at * line.step))
        subject = self._subject(values, is_empty if is_empty.any() else None, (axis,))
        part = round(1 / found.share)
        share = "" if found.share == 1 else f", of 1/{part} of them" if part > 1 else ", of most of them"
        note = f"smallest and largest of each {found.width} elements{share}"
        return replace(subject, counts=found.counts, notes=(note,)), found.share

    def _subject(self, values: NDArray[Any], missing: NDArray[np.bool_] | None, shown: tuple[Axis, ...]) -> Subject:
        """Return unpacked values with what attributes say of them."""
        chosen = self.chosen
        unit, values = meaning.unit_and_values(self.array.metadata.attributes, values)
        label = meaning.label_of(self.array.metadata.attributes, values)
        unit = unit if label is None else ""
        flags = meaning.flags_of(self.array.metadata.attributes, values)
        label = meaning.flag_label(flags) if flags else label
        element = self._element(chosen)
        if len(shown) == 2 and self._is_upside_down(shown[0]):
            shown = (replace(shown[0], coordinates=shown[0].coordinates[::-1]), shown[1])
            values, missing = values[::-1], None if missing is None else missing[::-1]
        return Subject(values, shown, self._name, unit, missing, element, label=label, lights=tuple(self._lights()))

    def _is_upside_down(self, rows: Axis) -> bool:
        """Return whether the first row belongs at the bottom, as coordinates and their attributes tell."""
        at = self.chosen.shown[0]
        rises = self.setting.dimensions[at].direction
        values = rows.coordinates
        is_counted = not rows.unit and np.array_equal(values, np.array(slices.as_range(self.chosen.axes[at])))
        if rises is None or is_counted or values.dtype.kind not in "iuf":
            return next((each.rises for each in self._corners() if each.auxiliary.role == "y"), False)
        return is_upside_down(rises, float(values[0]), float(values[-1]))

    def _corners(self) -> list[meaning.Corners]:
        """Return coordinates along both dimensions of an image, at its corners."""
        return self.setting.corners(self.chosen.axes, self.chosen.shown) if len(self.chosen.shown) == 2 else []

    def _lit(self) -> list[int]:
        """Return the numbers of the channels that are drawn in their colours."""
        if self.chosen.channels is None:
            return []
        read = list(slices.as_range(self.chosen.axes[self.chosen.channels]))
        return [read[place] for place in self.chosen.lit] if self.chosen.lit else read

    def _lights(self) -> Iterator[Light]:
        """Yield what each channel that is read is drawn with, if they are blended."""
        if not self.chosen.is_blended or self.chosen.channels is None:
            return
        for number in self._lit():
            known = number < len(self.channels)
            channel = self.channels[number] if known else Channel(f"channel {number}", "ffffff", None)
            ends = channel.window
            yield Light(channel.label, channel.color, (ends[0], ends[1]) if ends and ends[0] < ends[1] else None)

    def _element(self, chosen: Slice) -> float:
        """Return the ratio of height to width of an image element, if both have the same unit."""
        if len(chosen.shown) != 2:
            return 1.0
        upright, across = (self.setting.dimensions[dimension] for dimension in chosen.shown)
        is_scaled = upright.step is not None and across.step is not None
        if (upright.step or across.step) is not None and not (is_scaled and upright.units == across.units):
            return 1.0
        apart = chosen.steps()
        return abs((upright.step or 1) * apart[0] / ((across.step or 1) * apart[1]))

    def table(self) -> Subject:
        """Read the data of a table: the first rows and columns."""
        short = self.chosen.first(_TABLE)
        left = zip(self.chosen.lengths(), short.lengths(), ("row", "column"), strict=False)
        omitted = [f"{wording.plural(whole - some, kind)} more" for whole, some, kind in left if whole > some]
        values, hidden = self._decoded(short)
        unit = ""
        if hidden is not None and values.dtype.kind == "O":
            values = np.where(hidden, "--", values)
        if not short.shown and are_numbers(self.dtype):  # one number
            unit, values = meaning.of_axis(self.array.metadata.attributes, values)
            values = np.array("missing") if hidden is not None and hidden.all() else values
        return Subject(values, self._axes(short), self._name, unit, omitted=" · ".join(omitted))

    def _decoded(self, chosen: Slice) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """Return what elements mean, and where they are missing or not valid (None: nowhere)."""
        read = self._read(chosen)
        values, hidden = self.packing.decoded(np.asarray(read))
        if isinstance(read, np.ma.MaskedArray) and read.dtype.names is None:
            mask = np.ma.getmaskarray(read)
            hidden = mask if hidden is None else mask | hidden
        return values, hidden

    def _read(self, chosen: Slice) -> NDArray[Any]:
        """Return the elements with the dimensions in the order of the picture, and channels last."""
        selection = tuple(map(slices.as_selector, chosen.axes))
        read = self.array.get_orthogonal_selection(selection, fields=chosen.fields)
        if read is np.ma.masked:
            read = np.ma.MaskedArray(np.zeros((), self.dtype), np.True_)
        values = np.asanyarray(read, None if isinstance(read, (np.ndarray, np.generic)) else self.dtype)
        order = [*chosen.shown, *([] if chosen.channels is None else [chosen.channels])]
        kept = sorted(order)
        found = values.transpose([kept.index(dimension) for dimension in order])
        return found[..., list(chosen.lit)] if chosen.lit else found

    def _axes(self, chosen: Slice) -> tuple[Axis, ...]:
        return tuple(self.setting.axis(at, slices.as_range(chosen.axes[at])) for at in chosen.shown)

    @property
    def _name(self) -> str:
        title = presentation.title_of(self.array.metadata.attributes)
        return self.chosen.fields or title or (self.array.basename if self.setting.image is None else "")

    @property
    def title(self) -> str:
        """The title: what was selected, as you would type it."""
        array = self.array if self.asked is None else self.asked
        chosen = self.chosen if self.wanted is None else self.wanted
        parts = [slices.in_words(axis, length) for axis, length in zip(chosen.axes, array.shape, strict=True)]
        parts += [repr(chosen.fields)] if chosen.fields is not None else []
        selection = f"[{', '.join(parts)}]" if array.shape else ""
        fields = None if array.dtype.names is None else chosen.fields
        name = info.type_name(array.metadata) if fields is None else str(array.dtype[fields])
        return f"{visible(array.name)}{selection} {visible(name)}"

    def remarks(self) -> Iterator[str]:
        """Yield notes about the selection."""
        chosen = self.chosen
        where = [
            visible(self.setting.coordinate(at, axis))
            for at, (axis, dimension) in enumerate(zip(chosen.axes, self.setting.dimensions, strict=True))
            if isinstance(axis, int) and (dimension.name or dimension.step is not None)
        ]
        if where:
            yield "at " + ", ".join(where)
        corners = self._corners() if self.is_picture else []
        if corners:
            yield visible("at the corners " + ", ".join(each.words for each in corners))
        if chosen.assumed:
            numbers = ", ".join(str(at) for at in chosen.assumed)
            which = "dimension" if len(chosen.assumed) == 1 else "dimensions"
            yield f"the first element along {which} {numbers}: select others by their indices"
        if chosen.is_blended and chosen.channels is not None:
            left_out = self.array.shape[chosen.channels] - len(self._lit())
            if left_out:
                yield f"{wording.plural(left_out, 'channel')} of the image not shown"
        flags = [flag.words for flag in meaning.flags_of(self.array.metadata.attributes, np.empty(0, self.dtype))]
        if flags:
            yield "flags: " + visible(", ".join(flags[:_MOST_FLAGS] + ["..."] * (len(flags) > _MOST_FLAGS)))
        if self.asked is not None:
            yield f"read from level {self.array.basename}, {wording.lengths(self.array.shape)}"


def _scaled(chosen: Slice, factors: Sequence[float]) -> Slice:
    """Return the indices of a coarser level that cover the same region."""
    axes: list[slices.Axis] = []
    for axis, factor in zip(chosen.axes, factors, strict=True):
        if isinstance(axis, int):
            axes.append(int(axis / factor))
        else:
            low, high = min(axis[0], axis[-1]), max(axis[0], axis[-1])
            coarse = range(int(low / factor), int(high / factor) + 1, max(1, round(abs(axis.step) / factor)))
            axes.append(coarse if axis.step > 0 else coarse[::-1])
    return replace(chosen, axes=tuple(axes))
