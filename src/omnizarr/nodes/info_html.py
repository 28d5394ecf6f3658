"""Arrays and groups as HTML for notebooks.

Everything that comes from data is escaped. Colours are those of the page (``currentColor``) with
one accent between light and dark, so both suit. No scripts, no ids: many may stand on one page.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from omnizarr.errors import OmnizarrError
from omnizarr.nodes import info, wording

if TYPE_CHECKING:
    from omnizarr.nodes.array import Array
    from omnizarr.nodes.group import Group

# A page must stay small whatever it shows.
_MOST_MEMBERS: Final = 200
_MOST_DEPTH: Final = 4
_MOST_ATTRIBUTES: Final = 200
_LONGEST_VALUE: Final = 400
_MOST_LINES: Final = 24

_TABLE: Final = 'style="border-collapse:collapse;margin:0;font-size:inherit;color:inherit"'
_CELL: Final = "text-align:left;padding:1px 12px 1px 0;vertical-align:top;background:none;border:none"
_NAME: Final = f"{_CELL};opacity:.65;font-weight:normal;white-space:nowrap"
_ACCENT: Final = "#4a8fc2"


def render(node: Any) -> str:
    """Return an array or a group as HTML, without reading any element.

    Examples
    --------
    >>> import omnizarr
    >>> array = omnizarr.create_array({}, shape=(4, 4), chunks=(2, 2), dtype="int8", attributes={"<b>": "&"})
    >>> "&lt;b&gt;" in render(array)
    True
    """
    body = _array(node) if info.is_array(node) else _group(node)
    return f'<div style="font-family:system-ui,sans-serif;font-size:13px;line-height:1.45">{body}</div>'


# -- arrays --------------------------------------------------------------------


def _array(array: Array) -> str:
    facts = info.of_array(array.store_path, array.metadata)
    title = _title("Array", array.name, f"{wording.format_name(facts.dialect)} · {info.store_name(array.store)}")
    drawing = draw(facts.shape, facts.chunks, facts.dimension_names)
    side = f'<div style="flex:none">{drawing}</div>' if drawing else ""
    table = f'<div style="flex:1 1 280px"><table {_TABLE}>{"".join(_rows(array, facts))}</table></div>'
    style = "display:flex;flex-wrap:wrap;gap:8px 28px;align-items:flex-start"
    return f'{title}<div style="{style}">{table}{side}</div>{_attributes(facts.attributes)}'


def _rows(array: Array, facts: info.ArrayFacts) -> Iterator[str]:
    yield _row("Shape", _shape(array))
    yield _row("Data type", facts.data_type)
    if facts.shards is not None:
        yield _row("Shards", _sized(facts, facts.shards))
    yield _row("Chunks", "of different shapes" if facts.chunks is None else _sized(facts, facts.chunks))
    if facts.expected is not None:
        yield _row("Count", wording.plural(facts.expected, facts.unit))
    yield _row("Codecs", ", then ".join(facts.codecs) or "none: uncompressed")
    engine = info.engine_name(array)
    if engine is not None:
        yield _row("Engine", engine)
    yield _row("Fill value", _fill_value(array))
    if facts.bytes_logical is not None:
        yield _row("Size", wording.size(facts.bytes_logical))
    for note in islice(facts.notes, _MOST_ATTRIBUTES):
        yield _row("Note", f"{note.pointer}: {note.message}")


def _shape(array: Array) -> str:
    names = array.dimension_names
    if names is None:
        return str(tuple(array.shape))
    return ", ".join(
        f"{name} {length}" if name else str(length) for name, length in zip(names, array.shape, strict=True)
    )


def _sized(facts: info.ArrayFacts, shape: tuple[int, ...]) -> str:
    text, nbytes = wording.lengths(shape), facts.nbytes_of(shape)
    return text if nbytes is None else f"{text} ({wording.size(nbytes)})"


def _fill_value(array: Array) -> str:
    try:
        value = array.fill_value
    except OmnizarrError:
        value = array.metadata.fill_value
    return "undefined" if value is None else str(value)


# -- groups --------------------------------------------------------------------


def _group(group: Group) -> str:
    what = f"{wording.format_name(group.metadata.dialect)} · {info.store_name(group.store)}"
    if group.is_consolidated:
        what += " · consolidated"
    return f"{_title('Group', group.name, what)}{_attributes(group.metadata.attributes)}{_members(group)}"


@dataclass
class _Budget:
    """How many more members may be shown."""

    left: int = _MOST_MEMBERS


def _members(group: Group) -> str:
    return _list(group, _Budget(), 0) or '<div style="opacity:.65">no members</div>'


def _list(group: Group, budget: _Budget, depth: int) -> str:
    entries = []
    for name, node in group.items():
        if budget.left <= 0:
            entries.append('<li style="opacity:.65">…</li>')
            break
        budget.left -= 1
        entries.append(f"<li>{_member(name, node, budget, depth)}</li>")
    style = "list-style:none;margin:0;padding-left:16px"
    return f'<ul style="{style}">{"".join(entries)}</ul>' if entries else ""


def _member(name: str, node: Any, budget: _Budget, depth: int) -> str:
    label = f"<b>{_text(name)}</b>"
    if info.is_array(node):
        kind = _text(f"{_shape_with_names(node)} {info.type_name(node.metadata)}")
        return f'{label} <span style="opacity:.65">{kind}</span>'
    if not hasattr(node, "error"):
        below = _list(node, budget, depth + 1) if depth < _MOST_DEPTH else '<div style="padding-left:16px">…</div>'
        is_open = ' open=""' if depth == 0 else ""
        return f"<details{is_open}><summary>{label}</summary>{below}</details>" if below else f"{label}/"
    return f'{label} <span style="color:#c0392b">unreadable: {_text(node.error.message)}</span>'


def _shape_with_names(array: Array) -> str:
    return f"({_shape(array)})" if array.dimension_names else str(tuple(array.shape))


# -- parts of both ----------------------------------------------------------------


def _title(kind: str, name: str, what: str) -> str:
    aside = f'<span style="opacity:.65">{_text(what)}</span>'
    return f'<div style="margin-bottom:4px"><b>{kind} {_text(name)}</b> {aside}</div>'


def _row(name: str, value: str) -> str:
    return f'<tr><th style="{_NAME}">{_text(name)}</th><td style="{_CELL}">{_text(value)}</td></tr>'


def _attributes(attributes: Mapping[str, Any]) -> str:
    if not attributes:
        return ""
    rows = [_row(str(name), _value(value)) for name, value in islice(attributes.items(), _MOST_ATTRIBUTES)]
    if len(attributes) > _MOST_ATTRIBUTES:
        rows.append(_row("…", f"{len(attributes) - _MOST_ATTRIBUTES} more"))
    summary = wording.plural(len(attributes), "attribute")
    return (
        f'<details style="margin-top:4px"><summary>{summary}</summary><table {_TABLE}>{"".join(rows)}</table></details>'
    )


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def _text(text: str) -> str:
    """Return text as HTML: escaped, and no longer than a page bears."""
    text = text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
    return escape(text if text.isprintable() else "".join(map(_printable, text)))


def _printable(character: str) -> str:
    """Return a character, or what stands for one that HTML has no place for (NUL, half of a surrogate pair)."""
    return character if character.isprintable() or character in "\n\t" else "\N{REPLACEMENT CHARACTER}"


# -- the drawing ---------------------------------------------------------------

_LONGEST_SIDE: Final = 150.0
_SHORTEST_SIDE: Final = 18.0
# Where the axes of a box point on paper: depth to the upper right, as one looks at it from the left above.
_DEPTH: Final = (0.55, -0.38)

Point = tuple[float, float]


def draw(shape: Sequence[int], chunk_shape: Sequence[int] | None, names: Sequence[str | None] | None = None) -> str:
    """Return a drawing of an array cut into chunks, as SVG; "" for what cannot be drawn.

    Of more than three dimensions the last three are drawn, and the number of such boxes said.

    Examples
    --------
    >>> draw((4, 4), (2, 2)).startswith("<svg")
    True
    >>> draw((), ())
    ''
    """
    if not shape or 0 in shape:
        return ""
    names = list(names) if names is not None else [None] * len(shape)
    chunks = list(chunk_shape) if chunk_shape is not None else list(shape)
    drawn = min(len(shape), 3)
    sides = _sides(shape[-drawn:])
    labels = [f"{name} {length}" if name else str(length) for name, length in zip(names, shape, strict=True)][-drawn:]
    cuts = [
        _cuts(length, chunk, side) for length, chunk, side in zip(shape[-drawn:], chunks[-drawn:], sides, strict=True)
    ]
    outer = math.prod(shape[:-drawn])
    caption = f"{outer:,} of these" if len(shape) > drawn else ""
    if drawn == 3:
        return _box(sides, cuts, labels, caption)
    if drawn == 1:
        sides, cuts, labels = [_SHORTEST_SIDE, *sides], [[], *cuts], ["", *labels]
    return _sheet(sides, cuts, labels)


def _sides(shape: Sequence[int]) -> list[float]:
    """Return lengths on paper: the longer the longer, but so that the shortest can still be seen."""
    logs = [math.log2(length + 1) for length in shape]
    longest = max(logs)
    # Half by size, half by its logarithm: a box of 1 x 10000 should look long, not like a line.
    greatest = max(shape)
    sides = [
        _LONGEST_SIDE * (length / greatest * 0.5 + log / longest * 0.5) for length, log in zip(shape, logs, strict=True)
    ]
    return [max(_SHORTEST_SIDE, side) for side in sides]


def _cuts(length: int, chunk: int, side: float) -> list[float]:
    """Return where chunks meet along a side, on paper; of very many only as many as can be told apart."""
    count = -(-length // chunk)
    if count <= _MOST_LINES:
        return [side * (chunk / length) * number for number in range(1, count)]
    return [side / _MOST_LINES * number for number in range(1, _MOST_LINES)]


def _sheet(sides: Sequence[float], cuts: Sequence[Sequence[float]], labels: Sequence[str]) -> str:
    height, width = sides
    origin = (4.0, 4.0)
    face = _face(origin, (width, 0), (0, height), cuts[1], cuts[0], 0.28)
    texts = [_label(labels[1], (origin[0] + width / 2, origin[1] + height + 16), "middle")]
    if labels[0]:
        texts.append(_label(labels[0], (origin[0] + width + 8, origin[1] + height / 2 + 4), "start"))
    return _svg(face + "".join(texts), width + 16 + _width_of(labels[0]), max(height + 28, 40), labels)


def _box(sides: Sequence[float], cuts: Sequence[Sequence[float]], labels: Sequence[str], caption: str) -> str:
    deep, height, width = sides
    back = (deep * _DEPTH[0], deep * _DEPTH[1])
    origin = (4.0, 4.0 - back[1])
    along = [cut * width / width for cut in cuts[2]]
    inward = [cut * math.hypot(*_DEPTH) for cut in cuts[0]]
    front = _face(origin, (width, 0), (0, height), along, cuts[1], 0.28)
    top = _face(
        (origin[0] + back[0], origin[1] + back[1]),
        (width, 0),
        (-back[0], -back[1]),
        along,
        _mirrored(inward, back),
        0.14,
    )
    side = _face((origin[0] + width, origin[1]), back, (0, height), inward, cuts[1], 0.42)
    bottom = origin[1] + height
    texts = [
        _label(labels[2], (origin[0] + width / 2, bottom + 16), "middle"),
        _label(labels[1], (origin[0] + width + back[0] + 8, origin[1] + back[1] + height / 2 + 4), "start"),
        _label(labels[0], (origin[0] + width + back[0] / 2 + 8, bottom + back[1] / 2 + 12), "start"),
    ]
    if caption:
        texts.append(_label(caption, (origin[0] + width / 2, bottom + 34), "middle"))
    room = width + back[0] + 16 + max(_width_of(labels[1]), _width_of(labels[0]))
    return _svg(top + side + front + "".join(texts), room, bottom + (44 if caption else 26), labels)


def _mirrored(cuts: Sequence[float], back: Point) -> list[float]:
    """Return cuts counted from the other end of a side: the top is drawn from its far edge."""
    whole = math.hypot(*back)
    return [whole - cut for cut in cuts]


def _face(
    origin: Point, across: Point, down: Point, columns: Iterable[float], rows: Iterable[float], shade: float
) -> str:
    """Return a parallelogram with lines parallel to its sides, at distances along them."""
    corners = [
        origin,
        _plus(origin, across),
        _plus(_plus(origin, across), down),
        _plus(origin, down),
    ]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in corners) + "Z"
    lines = [_line(_plus(origin, _part(across, at)), down) for at in columns]
    lines += [_line(_plus(origin, _part(down, at)), across) for at in rows]
    return (
        f'<path d="{path}" fill="{_ACCENT}" fill-opacity="{shade}" '
        f'stroke="currentColor" stroke-width="1.2" stroke-linejoin="round"/>'
        f'<path d="{"".join(lines)}" stroke="currentColor" stroke-opacity=".45" stroke-width=".8" fill="none"/>'
    )


def _plus(one: Point, other: Point) -> Point:
    return one[0] + other[0], one[1] + other[1]


def _part(side: Point, length: float) -> Point:
    whole = math.hypot(*side)
    return side[0] * length / whole, side[1] * length / whole


def _line(start: Point, way: Point) -> str:
    return f"M{start[0]:.1f} {start[1]:.1f}l{way[0]:.1f} {way[1]:.1f}"


def _label(text: str, at: Point, anchor: str) -> str:
    return f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" text-anchor="{anchor}">{_text(_shortened(text))}</text>'


def _shortened(text: str) -> str:
    return text if len(text) <= 30 else f"{text[:29]}…"


def _width_of(text: str) -> float:
    return 6.6 * len(_shortened(text))


def _svg(content: str, width: float, height: float, labels: Sequence[str]) -> str:
    title = _text("chunks of an array, " + " by ".join(label for label in labels if label))
    return (
        f'<svg width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'style="overflow:visible;color:inherit" font-size="11" fill="currentColor">'
        f"<title>{title}</title>{content}</svg>"
    )
