"""Creating a node at a place within a hierarchy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from omnizarr.api.creating import create_array, create_group
from omnizarr.nodes import creating
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group
from omnizarr.tools.edit import places


def make(
    place: Any,
    options: Mapping[str, Any],
    *,
    kind: Literal["array", "group"],
    like: Array | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Array | Group:
    """Create an array or a group; `options` are keywords of `create_array`, with defaults from the array `like`."""
    with places.opened(place, None, "a", storage_options) as where:
        if kind == "group":
            return create_group(where, **options)
        return create_array(where, **(options if like is None else _like(like, options)))


def _like(template: Array, options: Mapping[str, Any]) -> dict[str, Any]:
    found = creating.like(template, options)
    if options.keys() & {"chunks", "shards", "compressors"}:
        found.pop("codecs", None)
    if "chunks" in options and "shards" not in options:
        found.pop("shards", None)
    return {"attributes": template.attrs.asdict(), **found, **options}
