"""Data that other programs wrote, with what these programs themselves read back: levels ``corpus-*``.

A recorded case is a directory ``<writer>/<case>/`` with `store.zip`, `expected.json` and `expected.npz`. They come with
the package, or lie in ``tests/corpus`` of the repository, where README.md describes them.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from zarr_conformance.case import Array, Case, Json, Sentence, Values, raw_of

PLACES = (Path(__file__).parents[5] / "tests" / "corpus", Path(__file__).parents[1] / "corpus")

WRITERS = {
    "zarr0": "zarr 0.4, of 2016",
    "zarr1": "zarr 1.0 and 1.1, of 2016: Zarr v1",
    "zarr2": "zarr-python 2.18: Zarr v2",
    "zarr3": "zarr-python 3.4: Zarr v3, and v2",
    "zarr300": "zarr-python 3.0: codecs of numcodecs",
    "zarrita2023": "zarrita of 2023: Zarr v3 under its last other names",
    "tensorstore": "TensorStore: Zarr v2 and v3",
    "zarrista": "zarrista (zarrs): Zarr v3",
    "draft_zarr": "zarr-python 2.12 and 2.18: the draft of v3 of 2020",
    "draft_gdal": "GDAL 3.6: the draft of v3 of 2020",
    "xtensor": "xtensor-zarr: the draft of v3 of 2020",
    "zarrita": "zarrita of 2020 to 2022: the drafts of v3, by stages",
}
"""The writers of the corpus. In drafts of v3, a node is no directory: PATH is that of the root and that of the node, joined."""

LEVELS = {f"corpus-{writer}": text for writer, text in WRITERS.items()}
CARRIERS = {1: "u1", 2: "u2", 4: "u4"}


def found() -> Path | None:
    """Return where recorded cases lie."""
    return next((place for place in PLACES if place.is_dir()), None)


@functools.cache
def cases() -> tuple[Case, ...]:
    """Return all recorded cases, none if they are not here."""
    root = found()
    if root is None:
        return ()
    return tuple(
        case for writer in WRITERS for path in sorted((root / writer).iterdir()) for case in recorded(writer, path)
    )


def recorded(writer: str, directory: Path) -> Iterator[Case]:
    """Yield the arrays of one recorded hierarchy whose elements have bytes, or are texts or byte strings."""
    document = json.loads((directory / "expected.json").read_text("utf-8"))
    path = directory / "expected.npz"
    arrays: Any = np.load(path) if path.is_file() else {}
    program = document["program"]
    sentence = Sentence(
        f"{program}", f"{writer}/{directory.name}", "These are the values that the writer itself read back."
    )
    for name, node in document["nodes"].items():
        if node["node_type"] != "array" or "open" in node or "open" in document:
            continue
        if document["store"] == "zip" and name:
            continue
        if name.partition("/")[0] in {"meta", "data"}:  # directories of the drafts: the path would mean these
            continue
        expects = in_json(node) if "values" in node else in_bytes(arrays[f"{name}/values"])
        if expects is not None:
            label = f"{directory.name}/{name}" if name else directory.name
            store = "zip" if document["store"] == "zip" else "directory"
            yield Case(
                f"corpus-{writer}", label, f"{name or 'the root'} of {directory.name}", sentence, {}, expects, path=name,
                store=store, writer=program, licence="MIT", archive=directory / "store.zip",
            )  # fmt: skip


def in_bytes(values: Array) -> Values | None:
    """Return the expectation of an array in a `.npz`, little-endian whatever the writer's order was."""
    if values.dtype.hasobject:
        return None
    return Values(values.shape, values.dtype.name, raw=raw_of(values))


def in_json(node: Json) -> Values | None:
    """Return the expectation of texts or byte strings; other objects have no form that all languages know."""
    items: list[Any] = []
    for item in node["values"]:
        if isinstance(item, str):
            items.append(item)
        elif isinstance(item, dict) and item.keys() == {"bytes"}:
            items.append(item["bytes"])
        else:
            return None
    flat = np.empty(len(items), object)
    flat[:] = items
    return Values(tuple(node["shape"]), node.get("dtype", "object"), items=flat.reshape(node["shape"]).tolist())
