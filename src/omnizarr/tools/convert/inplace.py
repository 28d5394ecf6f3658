"""Converting where the data are: documents of another format are written, and chunks stay in their place.

The deepest nodes get theirs first, and the root last. The old documents stay, unless you ask for their removal, so
removing the new ones restores the old state. A node opens as the format that detection finds first: where the wanted
one comes later in its order, the documents of the other have to go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from omnizarr.errors import NodeExistsError, NotRepresentableError, OmnizarrError, Remedy
from omnizarr.formats import DIALECTS, dialect_named, documents
from omnizarr.formats.contract import Dialect
from omnizarr.formats.conventions import Nodes
from omnizarr.formats.spelling import same, without_copies
from omnizarr.model import JSON, ArrayMetadata, GroupMetadata, Metadata
from omnizarr.nodes import consolidated, detection, stored
from omnizarr.nodes.location import StorePath, dialect_of
from omnizarr.nodes.renewing import Change
from omnizarr.nodes.wording import format_name
from omnizarr.stores import verbs
from omnizarr.tools.convert.planning import Plan, Step
from omnizarr.tools.streaming.chunks import Chunks
from omnizarr.tools.translate.translation import translate

_SHOWN = 5


def run(plan: Plan, *, remove_old: bool, overwrite: bool, dry_run: bool) -> tuple[str, ...]:
    """Carry out a plan where the source is, and return the keys of the documents that were (would be) removed.

    Raises
    ------
    NotRepresentableError
        If chunks cannot stay, or if the old documents would have to go and may not; nothing has been written then.
    NodeExistsError
        If documents of the format wanted are there, and say something else.
    """
    old = dialect_named(plan.source.metadata.dialect)
    _refuse_formats(plan, old)
    _refuse_others("chunks cannot stay where they are", plan, _reasons(plan))
    hidden = DIALECTS.index(plan.dialect) > DIALECTS.index(old)
    missing = []
    there = {step.path: _documents_there(_where(step), plan.dialect) for step in plan.steps}
    nodes = Nodes({path: without_copies(metadata) for path, (_, metadata) in there.items() if metadata is not None})
    for step in plan.steps:
        if not there[step.path][0]:
            missing.append(step)
        elif not _agrees(step, nodes, plan, old):
            if not overwrite:
                raise NodeExistsError(
                    f"there are documents of {format_name(plan.dialect.name)} that say something else",
                    store=str(_where(step).store),
                    path=_where(step).path,
                    remedy=Remedy("pass {overwrite} to replace them", overwrite=True),
                )
            missing.append(step)
    if hidden and not remove_old:
        _refuse_hidden(plan, old, [step for step in missing if _says_something(step, plan)])
        missing = []
    is_removing = remove_old or hidden
    removed = (
        [key for step in reversed(plan.steps) for key in _old_keys(step, old, plan.dialect)] if is_removing else []
    )
    if not dry_run:
        with Change(plan.source.where, "new") as change:
            change.begin()
            _write(plan, missing)
            verbs.delete_many(plan.source.where.store, removed)
        for step in reversed(plan.steps):
            if step.has_copies and step in missing and step.target is not None:
                consolidated.consolidate(_where(step))
    return tuple(removed)


def _where(step: Step) -> StorePath:
    if step.found is None:
        raise TypeError("a node that cannot be read is nowhere")
    return step.found.where


def _refuse_formats(plan: Plan, old: Dialect) -> None:
    for dialect in (old, plan.dialect):
        if dialect.entry_point is not None:
            raise NotRepresentableError(
                f"{format_name(dialect.name)} keeps chunks elsewhere, so that nothing can be converted in place",
                store=str(plan.source.where.store),
                path=plan.source.where.path,
                remedy="give a target",
            )
    if old == plan.dialect:
        raise NotRepresentableError(
            f"it is {format_name(old.name)} already",
            store=str(plan.source.where.store),
            path=plan.source.where.path,
            remedy=Remedy("{source_format} names the documents to convert, where there are several", source_format=...),
        )


def _refuse_others(what: str, plan: Plan, reasons: list[str]) -> None:
    if reasons:
        more = f"; and {len(reasons) - _SHOWN} more" if len(reasons) > _SHOWN else ""
        raise NotRepresentableError(
            f"{what}: {'; '.join(reasons[:_SHOWN])}{more}",
            store=str(plan.source.where.store),
            path=plan.source.where.path,
            remedy=Remedy("give a target instead of {in_place}", in_place=True),
        )


def _reasons(plan: Plan) -> list[str]:
    """Return the obstacles to a conversion in place, for each node."""
    return [f"/{step.path}: {reason}" for step in plan.steps for reason in [_reason(step, plan.dialect)] if reason]


def _reason(step: Step, dialect: Dialect) -> str:
    found, made = step.found, step.translation
    if found is None or made is None:
        return step.losses[0].why
    if made.target is None:
        is_needless = isinstance(found.metadata, GroupMetadata) and not dialect.has_groups
        return "" if is_needless else step.losses[0].why if step.losses else "it has no place there"
    if not isinstance(made.source, ArrayMetadata) or not isinstance(made.target, ArrayMetadata):
        return ""
    if not made.same_bytes:
        return "its chunks have to be encoded again"
    before, after = Chunks.of(found.where, made.source), Chunks.of(found.where, made.target)
    if not made.same_fill and before.lacks_some():
        return "its fill value changes, and chunks are missing that would have to be written"
    if (before.prefix, before.encoding) != (after.prefix, after.encoding):
        first = (0,) * len(made.source.shape)
        return f"its chunks would be looked for at {after.key_of(first)}, not at {before.key_of(first)}"
    return ""


def _documents_there(where: StorePath, dialect: Dialect) -> tuple[Mapping[str, JSON], Metadata | None]:
    """Return the documents of a format at a place, none if they make no node; and the node, if they can be read."""
    found = detection.read_documents(where, dialect)
    try:
        metadata = detection.load(where, dialect, found)
    except OmnizarrError:
        return found, None
    return (found if metadata is not None else {}), metadata


def _agrees(step: Step, nodes: Nodes, plan: Plan, old: Dialect) -> bool:
    """Whether documents that exist say what would be written, or what exists follows from them."""
    metadata = nodes.get(step.path)
    if metadata is None or step.found is None:
        return False
    if step.target is not None and _same(metadata, step.target, plan.dialect):
        return True
    back = translate(metadata, old, path=step.path, nodes=nodes, in_place=True).target
    return back is not None and _same(back, without_copies(step.found.metadata), old)


def _same(left: Metadata, right: Metadata, dialect: Dialect) -> bool:
    return same(dialect.dump(left), dialect.dump(right))


def _says_something(step: Step, plan: Plan) -> bool:
    """Whether a node without documents would be missed: not a group that those below it imply."""
    metadata = None if step.found is None else step.found.metadata
    if isinstance(metadata, GroupMetadata) and not metadata.attributes and not metadata.unknown:
        inside = f"{step.path}/" if step.path else ""
        return not any(other.is_array and other.path.startswith(inside) for other in plan.steps)
    return step.target is not None


def _refuse_hidden(plan: Plan, old: Dialect, missing: list[Step]) -> None:
    if missing:
        raise NotRepresentableError(
            f"documents of {format_name(plan.dialect.name)} would be of no use beside those of "
            f"{format_name(old.name)}, which are what is opened",
            store=str(plan.source.where.store),
            path=plan.source.where.path,
            found=", ".join(f"/{step.path}" for step in missing[:_SHOWN]),
            remedy=Remedy("pass {remove_old} to have these removed", remove_old=True) | Remedy("give a target"),
        )


def _old_keys(step: Step, old: Dialect, new: Dialect) -> Iterator[str]:
    """Yield the keys of a node's documents in the old format, first of the one that makes it a node."""
    where = _where(step)
    kept = set(new.keyspace.documents(where.path).values())
    for key in old.keyspace.documents(where.path).values():
        if key not in kept and where.store.exists(key):
            yield key


def _write(plan: Plan, missing: list[Step]) -> None:
    """Write documents, those of the deepest nodes first."""
    for step in sorted(missing, key=lambda step: step.path.count("/") + bool(step.path), reverse=True):
        if step.target is None:
            continue
        where = _where(step)
        dialect = dialect_of(where, step.target)
        made = stored.dump(where, without_copies(step.target))
        with where.lock():
            for name, key in reversed(dialect.keyspace.documents(where.path).items()):
                if name in made:
                    where.store.set(key, documents.render(made[name]))
