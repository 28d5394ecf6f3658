"""Nodes as lines of text: `info` in full, `ls` briefly like h5ls, `tree` as a drawing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import click

from omnizarr.cli.text import NOTES, Branches, fit, note_lines, one_line, shorten, to_json
from omnizarr.formats.conventions import meaning, presentation
from omnizarr.formats.conventions.ome import summary
from omnizarr.model import Note
from omnizarr.nodes import info, info_rows, wording
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group
from omnizarr.nodes.info import ArrayFacts, Facts, GroupFacts, UnreadableFacts
from omnizarr.nodes.members import UnreadableNode
from omnizarr.support.text import visible
from omnizarr.tools.describe import members
from omnizarr.tools.ls.report import Entry

_INDENT = "    "
_WIDTH = 24  # h5ls's column for names
_LONGEST_ATTRIBUTE = 100
_MOST_STALE = 5
_FORMAT = "format"  # what a store calls the format of its file
_HOLD_ZARR = ("OCDBT",)  # formats of files that hold documents of Zarr: all others are only shown as Zarr
_MOST_NAMES = 20  # of branches and tags


# -- info ----------------------------------------------------------------------


def array_card(title: str, about: Mapping[str, Any], facts: ArrayFacts) -> Iterator[str]:
    """Yield the lines for one array. `about` is what its store says of it."""
    yield f"{_bold(title)}   {_format(about, facts)} array"
    for name, value in info_rows.rows(facts, to_json):
        yield f"  {_dim(f'{name:<11}')} {fit(visible(value))}"
    yield from _attributes(facts.attributes)
    yield from _notes(facts.notes)
    if facts.problem is not None:
        yield _problem(facts.problem, "  ")


def array_block(facts: ArrayFacts) -> Iterator[str]:
    """Yield the lines for an array among others."""
    kind = f"{visible(facts.data_type)} {_shape_with_names(facts)}"
    yield f"{_bold(visible('/' + facts.path))}  {kind}{_label(facts.attributes)}"
    coding = ", then ".join(facts.codecs) or "uncompressed"
    shards = "" if facts.shards is None else f"shards {wording.lengths(facts.shards)} of "
    sign = fit(" · ")
    parts = [fit(f"{shards}chunks {info_rows.chunks(facts)}"), visible(coding)]
    yield f"{_INDENT}{sign.join(parts)}"
    presence = f"{'stored: ' if facts.bytes_stored is None else ''}{info_rows.presence(facts)}"
    yield f"{_INDENT}{presence}{sign}{info_rows.sizes(facts.bytes_stored, facts.bytes_logical)}"
    yield from (f"{_INDENT}{line.lstrip()}" for line in _notes(facts.notes))
    if facts.problem is not None:
        yield _problem(facts.problem, _INDENT)


def group_lines(title: str, about: Mapping[str, Any], facts: GroupFacts) -> Iterator[str]:
    """Yield the lines for the requested group. `about` is what its store says of it."""
    kind = "group without a document of its own" if facts.is_implicit else "group"
    consolidated = "" if _is_shown(about) else f" · {_consolidated(facts)}"
    yield f"{_bold(title)}   " + fit(f"{_format(about, facts)} {kind}{consolidated}")
    if facts.stale:
        names = ", ".join(f"/{path}" for path in facts.stale[:_MOST_STALE])
        more = f" and {len(facts.stale) - _MOST_STALE} more" if len(facts.stale) > _MOST_STALE else ""
        yield _warn(f"  stale: consolidated metadata differs from the documents of {visible(names)}{more}")
    if facts.problem is not None:
        yield _problem(facts.problem, "  ", "broken consolidated metadata")
    for name, value in meaning.rows(facts.meaning):
        yield f"  {_dim(f'{name:<11}')} {fit(visible(value))}"
    for name, value in summary.rows(facts.ome):
        yield f"  {_dim(f'{name:<11}')} {fit(visible(shorten(value, _LONGEST_ATTRIBUTE)))}"
    yield from _attributes(facts.attributes)
    yield from _notes(facts.notes)


def about_lines(about: Mapping[str, Any], told: Iterable[Note] = ()) -> Iterator[str]:
    """Yield facts about a store: a line for each name, and for each note that was not `told` with a node."""
    for name, value in about.items():
        if name == _FORMAT and _is_shown(about):  # is in the first line
            continue
        if name == NOTES:
            yield from (f"  {line}" for line in note_lines(about, (note.message for note in told)))
            continue
        if isinstance(value, list):
            more = f", and {len(value) - _MOST_NAMES:,} more" if len(value) > _MOST_NAMES else ""
            text = ", ".join(map(str, value[:_MOST_NAMES])) + more
        else:
            text = str(value)
        if text:
            yield f"  {_dim(f'{name:<11}')} {fit(visible(one_line(text)))}"


def unreadable_line(facts: UnreadableFacts) -> str:
    """Return the line for an unreadable node."""
    return f"{_bold(visible('/' + facts.path))}  " + _problem(facts.problem, "", "unreadable")


def block(facts: Facts) -> Iterable[str]:
    """Return the lines for a node among others; none for a group without problems, which the paths below it show."""
    if isinstance(facts, ArrayFacts):
        return array_block(facts)
    if isinstance(facts, UnreadableFacts):
        return (unreadable_line(facts),)
    lines = list(_notes(facts.notes))
    if facts.problem is not None:
        lines.append(_problem(facts.problem, "  ", "broken consolidated metadata"))
    return [_bold(visible("/" + facts.path)), *lines] if lines else ()


def _format(about: Mapping[str, Any], facts: ArrayFacts | GroupFacts) -> str:
    """Return the format of a node in words: for a file that is only shown as Zarr, its own."""
    return visible(str(about[_FORMAT])) if _is_shown(about) else wording.format_name(facts.dialect)


def _is_shown(about: Mapping[str, Any]) -> bool:
    """Return whether a file is only shown as Zarr, by what its store says."""
    return about.get(_FORMAT, _HOLD_ZARR[0]) not in _HOLD_ZARR


def _consolidated(facts: GroupFacts) -> str:
    return "not consolidated" if facts.consolidated == "none" else f"consolidated ({facts.consolidated})"


def _shape_with_names(facts: ArrayFacts) -> str:
    names = facts.dimension_names
    if not names:
        return _tuple(facts.shape)
    pairs = zip(names, facts.shape, strict=True)
    return f"({', '.join(str(n) if name is None else f'{visible(str(name))}={n}' for name, n in pairs)})"


def remark_lines(unknown: str) -> Iterator[str]:
    """Yield the line about unknown facts."""
    if unknown:
        yield _warn(f"  note: {one_line(unknown)}")


def total(arrays: int, groups: int, stored: int | None, logical: int | None) -> str:
    """Return the last line of a listing."""
    counts = f"{wording.plural(groups, 'group')}, {wording.plural(arrays, 'array')}"
    return fit(f"{counts} · {info_rows.sizes(stored, logical)}")


def _label(attributes: Mapping[str, Any]) -> str:
    """Return unit and name of an array from its CF attributes."""
    units, name = presentation.units_of(attributes), presentation.title_of(attributes)
    text = "".join([f"  [{units}]" if units else "", f"  {name}" if name else ""])
    return _dim(fit(visible(shorten(text, _LONGEST_ATTRIBUTE)))) if text else ""


def _attributes(attributes: Mapping[str, Any]) -> Iterator[str]:
    if attributes:
        yield f"  {_dim('attributes')}"
    for name, value in attributes.items():
        yield f"{_INDENT}{visible(name)}: {fit(visible(shorten(to_json(value), _LONGEST_ATTRIBUTE)))}"


def _notes(notes: Iterable[Note]) -> Iterator[str]:
    for note in notes:
        place = f"{one_line(note.pointer)}: " if note.pointer else ""
        yield _warn(f"  note: {place}{one_line(note.message)}")


def _problem(reason: str, indent: str, what: str = "cannot be read here") -> str:
    return f"{indent}{click.style(what, fg='red')}: {one_line(reason)}"


def _warn(text: str) -> str:
    return click.style(text, fg="yellow")


def _bold(text: str) -> str:
    return click.style(text, bold=True)


def _dim(text: str) -> str:
    return click.style(text, dim=True)


# -- ls ------------------------------------------------------------------------


def short_line(name: str, node: Any) -> str:
    """Return the line of `ls`."""
    text = str(Entry.of(node, name))
    if isinstance(node, UnreadableNode):
        return text.replace("Unreadable:", click.style("Unreadable", fg="red") + ":", 1)
    return text


def short_json(node: Any) -> str:
    """Return the entry of ``ls --json``."""
    return json.dumps(Entry.of(node, node.name).to_dict())


# -- tree ----------------------------------------------------------------------


def tree_lines(group: Group, strokes: Branches, max_depth: int | None) -> Iterator[tuple[str, Any]]:
    """Yield each line of the drawing with its node; memory grows only with the depth."""
    stack = [_with_last(members(group))]
    indents = [""]
    while stack:
        found = next(stack[-1], None)
        if found is None:
            stack.pop()
            indents.pop()
            continue
        (name, node), is_last = found
        yield f"{indents[-1]}{strokes.corner if is_last else strokes.tee}{visible(name)}{_leaf(node)}", node
        if isinstance(node, Group) and (max_depth is None or len(stack) < max_depth):
            stack.append(_with_last(members(node)))
            indents.append(indents[-1] + (strokes.gap if is_last else strokes.bar))


def _with_last(items: Iterator[tuple[str, Any]]) -> Iterator[tuple[tuple[str, Any], bool]]:
    """Yield each item, and whether it is the last."""
    held = next(items, None)
    while held is not None:
        following = next(items, None)
        yield held, following is None
        held = following


def _leaf(node: Any) -> str:
    if isinstance(node, Array):
        return " " + _dim(f"{_tuple(node.shape)} {visible(info.type_name(node.metadata))}")
    if isinstance(node, UnreadableNode):
        return " " + click.style("unreadable", fg="red") + f": {one_line(node.error.message)}"
    return ""


def _tuple(shape: tuple[int, ...]) -> str:
    return str(tuple(shape))
