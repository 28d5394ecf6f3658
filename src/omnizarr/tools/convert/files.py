"""Files that are not Zarr in a conversion: which are carried unchanged, and which have no room in the target."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

from omnizarr.errors import InvalidKeyError, NodeExistsError, Remedy, StoreLimitError
from omnizarr.formats.contract import Dialect
from omnizarr.formats.keyspaces import Split
from omnizarr.formats.paths import Above
from omnizarr.model import Loss, Metadata
from omnizarr.nodes.copying import same_value
from omnizarr.nodes.location import StorePath
from omnizarr.stores import LocalStore, pool, verbs
from omnizarr.tools import strangers
from omnizarr.tools.strangers import Strangers
from omnizarr.tools.streaming.few import FewChunks

_UNKNOWN = "the store cannot be listed, so files that are not Zarr, if there are any, were not found"


def told_of(found: Strangers) -> tuple[str, ...]:
    """Return remarks about what is left out, or not known."""
    remarks = (found.remark, "" if found.is_known else _UNKNOWN)
    return tuple(remark for remark in remarks if remark)


def for_dialect(found: Strangers, dialect: Dialect) -> dict[str, str]:
    """Return the files that cannot be in a hierarchy of a dialect, each with the reason."""
    lost = dict.fromkeys(found.unnamed, "no key can have this name, or it is a link that leads out of the store")
    for key in found.files:
        if why := _why_not(key, dialect):
            lost[key] = why
    return lost


def _why_not(key: str, dialect: Dialect) -> str:
    keyspace = dialect.keyspace
    if isinstance(keyspace, Split):
        tops = {place.partition("/")[0] for place in (keyspace.meta, keyspace.data)}
        taken = key.partition("/")[0] in tops or key == keyspace.entry_key
        return "in the target, documents and chunks lie there" if taken else ""
    taken = key.rpartition("/")[2] in keyspace.documents("")
    return "in the target, a document of a node has this name" if taken else ""


def for_place(files: Iterable[str], paths: Iterable[str], place: StorePath) -> dict[str, str]:
    """Return the files that the store of the target cannot hold, each with the reason; `paths` are those of nodes."""
    names = sorted(files)
    is_directory = isinstance(place.store, LocalStore)
    nodes = sorted(paths) if is_directory else []
    files_above = Above(set(names))
    kept: set[str] = set()
    lost = {}
    for key in names:  # sorted: a file comes before what lies below its name
        try:
            verbs.check_storable(place.store, place.prefix + key)
        except (InvalidKeyError, StoreLimitError) as error:
            lost[key] = f"{place.store} has no room for its key: {error.message}"
            continue
        if is_directory and (_is_directory(key, nodes) or not kept.isdisjoint(files_above.of(key))):
            lost[key] = f"{place.store} cannot have a file and a directory of one name"
        elif is_directory:
            kept.add(key)
    return lost


def _is_directory(key: str, paths: Sequence[str]) -> bool:
    """Return whether a key is one of sorted paths, or above one."""
    candidates = (bisect_left(paths, key), bisect_left(paths, f"{key}/"))
    return any(f"{paths[at]}/".startswith(f"{key}/") for at in candidates if at < len(paths))


def losses_of(lost: Mapping[str, str], paths: Iterable[str]) -> list[Loss]:
    """Return losses of files, each with the path of the nearest node above."""
    nodes = Above(set(paths))
    return [
        Loss(next(nodes.of(key), ""), "", f"the file {key!r}", why)
        for key, why in lost.items()
        if not strangers.is_system(key)
    ]


def found_below(
    where: StorePath, nodes: Mapping[str, Metadata | None], known: Iterable[str] = (), few: FewChunks | None = None
) -> Strangers:
    """Return what is below a node without being Zarr; `known` are files that exist even if none can be listed.

    `few` notes the keys of chunks that are listed.
    """
    found = strangers.of(where, nodes, few)
    return found._replace(files=tuple(sorted({*found.files, *known})))


def refuse_in_the_way(source: StorePath, target: StorePath, names: Iterable[str]) -> None:
    """Raise NodeExistsError if another file is at the target where one is to be copied to."""

    def look(name: str) -> str:
        key = target.prefix + name
        is_other = target.store.exists(key) and not same_value(target.store, key, source.store, source.prefix + name)
        return key if is_other else ""

    for _, key in pool.gather(look, names, target.store.features.concurrency):
        if key:
            raise NodeExistsError(
                "a file is in the way of one that is to be copied",
                store=str(target.store),
                path=target.path,
                key=key,
                remedy=Remedy("move it away") | Remedy("pass {overwrite} to replace it", overwrite=True),
            )


def differing(source: StorePath, target: StorePath, names: Sequence[str]) -> tuple[str, ...]:
    """Return the files that are at the target already, with another content."""

    def differs(name: str) -> bool:
        there, copied = source.prefix + name, target.prefix + name
        return target.store.exists(copied) and not same_value(source.store, there, target.store, copied)

    different = dict(pool.gather(differs, names, target.store.features.concurrency))
    return tuple(name for position, name in enumerate(names) if different[position])
