"""``license``: under which licence data may be used. A group says it for everything below it.

Spec: https://github.com/clbarnes/zarr-convention-license, v1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from omnizarr.formats.conventions.contract import Convention, Fault, Nodes
from omnizarr.formats.conventions.registered.records import Checking, Known, unchanged
from omnizarr.formats.paths import upwards
from omnizarr.formats.reader import is_object
from omnizarr.model import Metadata

KEY: Final = "license"
FORMS: Final = ("spdx", "url", "text", "file", "path")
"""Members of the object; the first that is there counts."""
_LONGEST: Final = 60

LICENCE: Final = Known(
    name="license",
    uuid="b77365e5-2b0c-4141-b917-c03b7c68e935",
    schema_url="https://raw.githubusercontent.com/clbarnes/zarr-convention-license/refs/tags/v1/schema.json",
    spec_url="https://github.com/clbarnes/zarr-convention-license/blob/v1/README.md",
    description="License specifier for Zarr data",
    repositories=("clbarnes/zarr-convention-license",),
    keys=(KEY,),
    nodes=("array", "group"),
    state="proposal",
)


def said_of(path: str, nodes: Nodes) -> str | None:
    """Return the licence of a node in a few words, its own or that of the nearest group above; None without one."""
    for at in upwards(path):
        node = nodes.get(at)
        found = None if node is None else _own(node)
        if found is not None:
            return _words(found)
    return None


def _own(node: Metadata) -> Mapping[str, Any] | None:
    found = node.attributes.get(KEY)
    return found if is_object(found) and any(isinstance(found.get(form), str) for form in FORMS) else None


def _words(said: Mapping[str, Any]) -> str:
    form = next(form for form in FORMS if isinstance(said.get(form), str))
    text = str(said[form])
    if form == "text":
        first = " ".join(text.split())
        return first if len(first) <= _LONGEST else f"{first[:_LONGEST]}..."
    return {"file": f"in the file {text}", "path": f"as of {text}"}.get(form, text)


def _recognise(path: str, nodes: Nodes) -> bool:
    node = nodes[path]
    return LICENCE.is_declared(node) or _own(node) is not None


def _faults(path: str, nodes: Nodes) -> Iterator[Fault]:
    node = nodes[path]
    at = Checking(LICENCE, path, node, "license-invalid")
    yield from at.about()
    found = node.attributes.get(KEY)
    if not is_object(found) or not any(form in found for form in FORMS):
        yield at.fault((KEY,), "no licence in a form of the convention", found, f"an object with {' or '.join(FORMS)}")
        return
    for form in FORMS:
        if form in found and not isinstance(found[form], str):
            yield at.fault((KEY, form), f"the {form} is no text", found[form], "a text")
    relative = found.get("path")
    if isinstance(relative, str):
        target = _resolved(path, relative)
        if target is not None and (target not in nodes or _own(nodes[target]) is None):
            message = "the path leads to no node with a licence"
            yield at.fault((KEY, "path"), message, relative, None, "license-missing")


def _resolved(path: str, relative: str) -> str | None:
    """Return a path that is relative to a node; None if it leads out of the hierarchy, where nothing is known."""
    parts = path.split("/") if path else []
    for part in relative.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


CONVENTION: Final = Convention(
    name="license",
    title="license",
    spec=LICENCE.spec_url,
    attributes=frozenset({KEY}),
    recognise=_recognise,
    carry=unchanged,
    faults=_faults,
)
