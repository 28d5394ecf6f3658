"""What verbs hold for each node of a large hierarchy: counted in bytes of Python's memory, not timed.

A limit is for the peak that a further node adds. The parsed documents of a node are 5,000.
"""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable
from typing import Final

import pytest

import omnizarr
from omnizarr.formats import scanning
from omnizarr.support.memo import ById, Memo

FEW, MANY = 400, 1000

VERBS: Final[dict[str, tuple[Callable[[dict[str, bytes]], object], int]]] = {
    "check": (omnizarr.check, 2300),
    "digest": (omnizarr.digest, 1900),
    "diff": (lambda values: omnizarr.diff(values, dict(values)), 2700),
    "stat": (omnizarr.stat, 1300),
    "du": (omnizarr.du, 1300),
    "ls": (lambda values: omnizarr.ls(values, recursive=True), 1200),
    "convert": (lambda values: omnizarr.convert(values, {}, dry_run=True), 4200),
    "convert to v2": (lambda values: omnizarr.convert(values, {}, zarr_format=2, dry_run=True), 5600),
}


@pytest.fixture(autouse=True)
def _few_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remember few results, so that what is remembered does not grow from one hierarchy to the next."""
    for each in gc.get_objects():
        if isinstance(each, Memo | ById):
            monkeypatch.setattr(each, "_most", 8)


def hierarchy(count: int, levels: int = 20) -> dict[str, bytes]:
    """Return so many arrays, without elements and each with attributes of its own, in groups of a hundred."""
    values = {"zarr.json": json.dumps({"zarr_format": 3, "node_type": "group"}).encode()}
    for number in range(count):
        group = f"group{number // 100}"
        values[f"{group}/zarr.json"] = values["zarr.json"]
        document = {
            "zarr_format": 3,
            "node_type": "array",
            "shape": [0],
            "data_type": "int16",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": 0,
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            "attributes": {
                "number": number,
                "title": f"array {number}",
                "levels": list(range(number, number + levels)),
            },
        }
        values[f"{group}/array{number}/zarr.json"] = json.dumps(document, indent=1).encode()
    return values


def peak(run: Callable[[dict[str, bytes]], object], values: dict[str, bytes]) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        run(values)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_a_further_node_takes_little(verb: str) -> None:
    run, limit = VERBS[verb]
    few, many = hierarchy(FEW), hierarchy(MANY)
    run(few)  # what is imported and remembered
    assert (peak(run, many) - peak(run, few)) / (MANY - FEW) < limit


CONSOLIDATED: Final = {"check": 5400, "convert": 4200}


@pytest.mark.slow
@pytest.mark.parametrize("verb", CONSOLIDATED)
def test_a_further_node_with_a_copy_takes_little(verb: str) -> None:
    if not scanning.is_possible():
        pytest.skip("the reference engine parses all copies")
    run, limit = VERBS[verb][0], CONSOLIDATED[verb]
    few, many = hierarchy(FEW), hierarchy(MANY)
    omnizarr.consolidate_metadata(few)
    omnizarr.consolidate_metadata(many)
    run(few)
    assert (peak(run, many) - peak(run, few)) / (MANY - FEW) < limit


@pytest.mark.slow
def test_consolidating_holds_the_document_and_little_more() -> None:
    omnizarr.consolidate_metadata(hierarchy(100, 400))
    peaks, lengths = [], []
    for count in (1000, 2000):  # more than a document that is indented for people
        values = hierarchy(count, 400)
        peaks.append(peak(omnizarr.consolidate_metadata, values))
        lengths.append(len(values["zarr.json"]))
    assert lengths[0] > 3 * 2**19
    assert peaks[1] - peaks[0] < 2 * (lengths[1] - lengths[0])


def _as_v2(values: dict[str, bytes]) -> dict[str, bytes]:
    old = {}
    for key, value in values.items():
        document = json.loads(value)
        if document["node_type"] == "group":
            old[key.replace("zarr.json", ".zgroup")] = b'{"zarr_format": 2}'
            continue
        members = {"dtype": "<i2", "chunks": [4], "compressor": None, "filters": None, "order": "C", "fill_value": 0}
        array = {"zarr_format": 2, "shape": [0], **members}
        old[key.replace("zarr.json", ".zarray")] = json.dumps(array).encode()
        old[key.replace("zarr.json", ".zattrs")] = json.dumps(document["attributes"]).encode()
    return old


@pytest.mark.slow
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_change_of_consolidated_metadata_holds_their_text_and_little_more(zarr_format: int) -> None:
    if not scanning.is_possible():
        pytest.skip("the reference engine parses all copies")

    def change(values: dict[str, bytes]) -> None:
        omnizarr.open_group(values, mode="r+").create_array("added", shape=(1,), dtype="i1")
        omnizarr.open_group(values, mode="r+").__delitem__("added")

    peaks, lengths = [], []
    for count in (500, 1000):
        values = hierarchy(count) if zarr_format == 3 else _as_v2(hierarchy(count))
        omnizarr.consolidate_metadata(values)
        text = max(map(len, values.values()))
        peaks.append(peak(change, values))
        lengths.append(text)
        assert max(map(len, values.values())) == text
    assert peaks[1] - peaks[0] < 3 * (lengths[1] - lengths[0]) + 900 * 500
