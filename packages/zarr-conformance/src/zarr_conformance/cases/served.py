"""Stores behind a web server: ranges, keys that are missing, keys that may not be read, no listing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import numpy as np

from zarr_conformance.case import Array, Case, Expectation, Json, Nodes, Refusal, Sentence, values_of
from zarr_conformance.cases.making import ramp
from zarr_conformance.encoder import LITTLE, array_v2, array_v3, group_v2, group_v3, named, text_of

LEVEL = "http"
GET = Sentence(
    "Zarr v3.0", "Abstract store interface", "A store returns the value of a key, or says that there is none."
)
RANGE = Sentence("Zarr v3.0", "Abstract store interface", "A store returns ranges of a value.")
MISSING = Sentence("Zarr v3.0", "Array metadata, fill_value", "Elements of chunks that are not stored have this value.")
FAILED = Sentence(
    "zarr-conformance", "HTTP", "A chunk that the server could not give is not a missing one: its values are unknown."
)
UNLISTED = Sentence("Zarr v3.0", "Operations", "If a store cannot list keys, consolidated metadata says what there is.")


def cases() -> Iterator[Case]:
    """Yield all cases of HTTP."""
    values = ramp((9, 14))
    holes = values.copy()
    holes[:4, :6] = 7
    shard = named("sharding_indexed", chunk_shape=[2, 3], codecs=[LITTLE], index_codecs=[LITTLE, {"name": "crc32c"}])
    plain, shards = array_v3(values, "int32", (4, 6)), array_v3(values, "int32", (4, 6), [shard])
    yield of("v3", "an array of Zarr v3", GET, plain, values)
    yield of("v2", "an array of Zarr v2", GET, array_v2(values, "<i4", (4, 6)), values)
    yield of(
        "v2-nested",
        "an array of Zarr v2 with slashes",
        GET,
        array_v2(values, "<i4", (4, 6), dimension_separator="/"),
        values,
    )
    yield of("shards", "shards", RANGE, shards, values)
    yield of("shards-selection", "a part of a shard", RANGE, shards, values, "1:3,2:5")
    at_start = named("sharding_indexed", **{**shard["configuration"], "index_location": "start"})
    yield of(
        "shards-index-at-start",
        "a part of a shard with its index at the start",
        RANGE,
        array_v3(values, "int32", (4, 6), [at_start]),
        values,
        "1:3,2:5",
    )
    yield of("missing-chunk", "404 for a chunk", MISSING, array_v3(holes, "int32", (4, 6), None, 7, fill=7), holes)
    yield of(
        "missing-chunk-v2", "404 for a chunk of Zarr v2", MISSING, array_v2(holes, "<i4", (4, 6), 7, fill=7), holes
    )
    yield of("missing-shard", "404 for a shard", MISSING, array_v3(holes, "int32", (4, 6), [shard], 7, fill=7), holes)
    deep = {**group_v3(), **group_v3("a b"), **array_v3(values, "int32", (4, 6), path="a b/é+%")}
    yield of("name", "a name that URLs escape", GET, deep, values, path="a b/é+%")
    for status in (403, 400):
        for name, files, key in (("", plain, "c/0/0"), ("-shard", shards, "c/0/0")):
            if status == 403 and name:
                continue
            yield Case(
                LEVEL,
                f"chunk-{status}{name}",
                f"{status} for a {'shard' if name else 'chunk'}",
                FAILED,
                files,
                Refusal(f"the server answers {status}"),
                store="http",
                faults={key: status},
            )
        yield Case(
            LEVEL,
            f"document-{status}",
            f"{status} for the document",
            FAILED,
            plain,
            Refusal(f"the server answers {status}"),
            store="http",
            faults={"zarr.json": status},
        )
    yield Case(LEVEL, "nothing", "404 for all", GET, {"other": b""}, Refusal("there is no array"), store="http")
    x = ramp((3,))
    tree = {**group_v2(), **group_v2("a"), **array_v2(x, "<i4", (2,), path="a/x")}
    together = {k: json.loads(v) for k, v in tree.items() if k.rpartition("/")[2].startswith(".z")}
    listed: dict[str, Json] = {"a": "group", "a/x": "array"}
    yield nodes(
        "consolidated-v2",
        {**tree, ".zmetadata": text_of({"zarr_consolidated_format": 1, "metadata": together})},
        listed,
    )
    tree = {**group_v3("a"), **array_v3(x, "int32", (2,), path="a/x")}
    metadata = {path: json.loads(tree[f"{path}/zarr.json"]) for path in listed}
    inline = {"kind": "inline", "must_understand": False, "metadata": metadata}
    yield nodes("consolidated-v3", {**tree, **group_v3(consolidated_metadata=inline)}, listed)


def of(
    name: str,
    title: str,
    sentence: Sentence,
    files: Mapping[str, bytes],
    values: Array,
    selection: str | None = None,
    path: str = "",
) -> Case:
    part = values if selection is None else values[1:3, 2:5]
    expects: Expectation = values_of(np.ascontiguousarray(part), "int32")
    return Case(LEVEL, name, title, sentence, files, expects, path=path, selection=selection, store="http")


def nodes(name: str, files: Mapping[str, bytes], kinds: Mapping[str, Json]) -> Case:
    rows = tuple({"path": path, "node_type": kind} for path, kind in kinds.items())
    return Case(
        LEVEL, name, "consolidated metadata of a store that cannot list", UNLISTED, files, Nodes(rows), store="http"
    )
