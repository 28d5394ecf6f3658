"""Arrays and groups as HTML for notebooks.

Everything that comes from data is escaped. Colours are those of the page, so they suit light and dark pages.
There are no scripts and no ids, because a page can show many.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from omnizarr.errors import OmnizarrError
from omnizarr.nodes import info, meaning, wording
from omnizarr.nodes.holdings import sizes
from omnizarr.nodes.info_drawing import Lengths, draw
from omnizarr.settings import config
from omnizarr.support.text import text_of_time

if TYPE_CHECKING:
    from omnizarr.nodes.array import Array
    from omnizarr.nodes.group import Group

# A page must stay small, whatever it shows.
_MOST_MEMBERS: Final = 200
_MOST_DEPTH: Final = 4
_MOST_ATTRIBUTES: Final = 200
_LONGEST_VALUE: Final = 400
_MOST_KEYS: Final = 2000
"""Number of keys to list at most for the stored sizes of arrays."""
_THUMBNAIL: Final = (200, 150)

_TABLE: Final = 'style="border-collapse:collapse;margin:0;font-size:inherit;color:inherit"'
_CELL: Final = "text-align:left;padding:1px 12px 1px 0;vertical-align:top;background:none;border:none"
_NAME: Final = f"{_CELL};opacity:.65;font-weight:normal;white-space:nowrap"
_FAINT: Final = "opacity:.65"


def render(node: Any) -> str:
    """Return an array or a group as HTML. No element is read, unless the setting ``display.thumbnails`` is on.

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
    drawing = draw(facts.shape, _chunks(array, facts), facts.dimension_names, facts.shards)
    if config.get("display.thumbnails"):
        drawing += _thumbnail(array)
    side = f'<div style="flex:none">{drawing}</div>' if drawing else ""
    table = f'<div style="flex:0 1 auto;min-width:280px"><table {_TABLE}>{"".join(_rows(array, facts))}</table></div>'
    style = "display:flex;flex-wrap:wrap;gap:8px 28px;align-items:flex-start"
    return f'{title}<div style="{style}">{table}{side}</div>{_attributes(facts.attributes)}'


def _chunks(array: Array, facts: info.ArrayFacts) -> Lengths | None:
    """Return the shape of a chunk, or the lengths of all; None if they are unknown."""
    if facts.chunks is not None:
        return facts.chunks
    with suppress(OmnizarrError):
        return array.chunks
    return None


def _thumbnail(array: Array) -> str:
    """Return a small picture of an array, or the reason why there is none."""
    try:
        return array.show(size=_THUMBNAIL)._repr_html_()
    except (OmnizarrError, OSError) as error:
        return f'<div style="{_FAINT}">{_text(str(error))}</div>'


def _rows(array: Array, facts: info.ArrayFacts) -> Iterator[str]:
    yield _row("Shape", _shape(array))
    yield _row("Data type", facts.data_type)
    for name, value in _storage(facts):
        yield _row(name, value)
    engine = info.engine_name(array)
    if engine is not None:
        yield _row("Engine", engine)
    yield _row("Fill value", _fill_value(array))
    if facts.bytes_logical is not None:
        yield _row("Size", wording.size(facts.bytes_logical))
    yield from _meaning(array)
    for note in islice(facts.notes, _MOST_ATTRIBUTES):
        yield _row("Note", f"{note.pointer}: {note.message}")


def _meaning(node: Array | Group) -> Iterator[str]:
    """Yield rows about what conventions say: place, resolutions, licence."""
    with suppress(OmnizarrError, OSError):
        for name, value in meaning.rows(meaning.of(node)):
            yield _row(f"{name[0].upper()}{name[1:]}", value)


def _storage(facts: info.ArrayFacts) -> Iterator[tuple[str, str]]:
    """Yield rows about chunks and codecs."""
    if facts.shards is not None:
        yield "Shards", _sized(facts, facts.shards)
    yield "Chunks", "of different shapes" if facts.chunks is None else _sized(facts, facts.chunks)
    if facts.expected is not None:
        yield "Count", wording.plural(facts.expected, facts.unit)
    yield "Codecs", ", then ".join(facts.codecs) or "none: uncompressed"


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
    return "undefined" if value is None else text_of_time(value)


# -- groups --------------------------------------------------------------------


def _group(group: Group) -> str:
    what = f"{wording.format_name(group.metadata.dialect)} · {info.store_name(group.store)}"
    if group.is_consolidated:
        what += " · consolidated"
    said = "".join(_meaning(group))
    table = f"<table {_TABLE}>{said}</table>" if said else ""
    return f"{_title('Group', group.name, what)}{table}{_attributes(group.metadata.attributes)}{_members(group)}"


@dataclass
class _Budget:
    """How many more members may be shown, and how many more keys listed."""

    left: int = _MOST_MEMBERS
    keys: int = _MOST_KEYS

    def stored(self, array: Array) -> int | None:
        """Return how many bytes of an array are stored; None if finding out takes too long."""
        store = array.store
        if self.keys <= 0 or store.features.concurrency > 1 or store.features.listing != "complete":
            return None
        with suppress(OmnizarrError, OSError):
            found = [size for _, size in islice(sizes(array.store_path), self.keys)]
            self.keys -= len(found)
            return sum(found) if self.keys > 0 else None
        return None


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
        return _array_member(label, node, budget)
    if not hasattr(node, "error"):
        below = _list(node, budget, depth + 1) if depth < _MOST_DEPTH else '<div style="padding-left:16px">…</div>'
        is_open = ' open=""' if depth == 0 else ""
        return f"<details{is_open}><summary>{label}</summary>{below}</details>" if below else f"{label}/"
    return f'{label} <span style="color:#c0392b">unreadable: {_text(node.error.message)}</span>'


def _array_member(label: str, array: Array, budget: _Budget) -> str:
    """Return an array as a line that unfolds to its rows about chunks."""
    facts = info.of_array(array.store_path, array.metadata)
    parts = [f"{_shape_with_names(array)} {facts.data_type}"]
    if facts.bytes_logical is not None:
        parts.append(wording.size(facts.bytes_logical))
    stored = budget.stored(array)
    if stored is not None:
        parts.append(f"{wording.size(stored)} stored")
    rows = "".join(_row(name, value) for name, value in _storage(facts))
    return (
        f'<details><summary>{label} <span style="{_FAINT}">{_text(" · ".join(parts))}</span></summary>'
        f"<table {_TABLE.replace('margin:0', 'margin:0 0 0 16px')}>{rows}</table></details>"
    )


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
    """Return text as HTML: escaped, and shortened."""
    text = text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
    return escape(text if text.isprintable() else "".join(map(_printable, text)))


def _printable(character: str) -> str:
    """Return a character, or a replacement for one that HTML cannot contain (NUL, half of a surrogate pair)."""
    return character if character.isprintable() or character in "\n\t" else "\N{REPLACEMENT CHARACTER}"
