"""What several libraries make of registered and proposed extensions of Zarr v3, by running them.

``python -m tests.extension_results --impl omnizarr --impl zarr-python=PYTHON ... --write`` runs the cases of
zarr-conformance that concern extensions, and cases of proposed chunk keys that are made here, with each library, and
writes the table between its marks in ``docs/formats/extensions.md``. PYTHON is the interpreter that has the library.
Without ``--write`` the table is printed.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from zarr_conformance import cli
from zarr_conformance.case import Case, Sentence, Values, Written
from zarr_conformance.cases import all_cases
from zarr_conformance.cases.making import read
from zarr_conformance.encoder import array_v3, named
from zarr_conformance.process import Implementation, Limits, Request

PAGE: Final = Path("docs/formats/extensions.md")
MARKS: Final = ("<!-- results: begin -->", "<!-- results: end -->")
LEVELS: Final = frozenset(
    {"v3-strings", "v3-registered-types", "v3-structs", "v3-registered-codecs", "v3-grids", "v3-n5", "v3-numcodecs"}
)
_NUMBERS: Final = {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
CORE: Final = (
    _NUMBERS
    | {"bool", "float16", "float32", "float64", "complex64", "complex128"}
    | {
        *("bytes", "transpose", "blosc", "gzip", "crc32c", "sharding_indexed", "regular", "default", "v2"),
    }
)
"""What the text of Zarr v3 itself names."""
_KEYS: Final = ("data_type", "chunk_grid", "chunk_key_encoding")
_WORDS: Final = {"data_type": "data type", "chunk_grid": "chunk grid", "chunk_key_encoding": "chunk keys"}
_ONLY_READ: Final = ("jpeg", "optional", "zarrs.optional", "fixed_size_list")
"""Cases whose elements are not written back as bytes: they lose precision, or consist of several parts."""
_MOST: Final = 60
"""Cases that are read for each extension, so that a run takes a minute."""


def names_of(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield kind and name of the extensions in a document of an array.

    >>> list(names_of({"data_type": "int2", "codecs": ["bytes", {"name": "zstd"}]}))
    [('data type', 'int2'), ('codec', 'zstd')]
    """
    for key in _KEYS:
        said = document.get(key)
        name = said.get("name") if isinstance(said, dict) else said
        if isinstance(name, str) and name not in CORE and not re.fullmatch("r[0-9]+", name):
            yield _WORDS[key], name
    due = list(document.get("codecs", ()))
    while due:
        codec = due.pop(0)
        said = codec if isinstance(codec, dict) else {"name": codec}
        if isinstance(said.get("name"), str) and said["name"] not in CORE:
            yield "codec", said["name"]
        configuration = said.get("configuration")
        inner = configuration if isinstance(configuration, dict) else {}
        due += [*inner.get("codecs", ()), *inner.get("index_codecs", ())]


def proposed() -> Iterator[Case]:
    """Yield cases of what is proposed, or what one program writes: keys and chunks are written out here."""
    yield from _proposed_keys()
    yield from _proposed_types()
    yield from _proposed_layouts()
    yield from _proposed_codecs()


def _case(name: str, document: Mapping[str, Any], chunks: Mapping[str, bytes], values: Any, kind: str) -> Case:
    """Return the case that an array is read whose document differs in some members from a plain one."""
    files = array_v3(np.zeros(values.shape, "uint8"), "uint8", values.shape, [named("bytes")])
    plain = {**json.loads(files["zarr.json"]), **document}
    sentence = Sentence("zarr-extensions, proposals, and drafts of zarrs", name, "As its text or its writer has it.")
    stored = {"zarr.json": json.dumps(plain).encode(), **chunks}
    return read("v3-proposed", name, name, sentence, stored, values, kind)


def _grid(*lengths: int) -> dict[str, Any]:
    return named("regular", chunk_shape=list(lengths))


def _proposed_types() -> Iterator[Case]:
    little = named("bytes", endian="little")
    for name in ("optional", "zarrs.optional"):  # the example of the proposal, which zarrs writes
        codec = named(name, mask_codecs=[named("packbits")], data_codecs=[little])
        kind = {"name": name, "configuration": {"name": "uint8", "configuration": {}}}
        document = {"data_type": kind, "fill_value": None, "codecs": [codec]}
        document["chunk_grid"] = _grid(2, 2)
        packed = ["0100000000000000020000000000000009 0005", "010000000000000003000000000000000b 020307"]
        chunks = {f"c/0/{at}": bytes.fromhex(each) for at, each in enumerate(packed)}
        yield _case(name, document, chunks, np.array([[0, 0, 2, 3], [0, 5, 0, 7]], "uint8"), "uint8")
    listed = named("fixed_size_list", base_data_type="uint16", list_size=3)
    values = np.arange(12, dtype="<u2").reshape(4, 3)
    yield Case(
        "v3-proposed", "fixed_size_list", "fixed_size_list", Sentence("zarr-extensions, proposal 62", "", ""),
        _case("", {"data_type": listed, "fill_value": [0, 0, 0], "codecs": [little]}, {"c/0": values.tobytes()},
              np.zeros(4, "V6"), "r48").files,
        Values((4,), "fixed_size_list", values.tobytes()),
    )  # fmt: skip


def _proposed_layouts() -> Iterator[Case]:
    values = np.arange(35, dtype="uint8").reshape(7, 5)
    cut = {f"c/{y}/{x}": values[4 * y : 4 * y + 4, 3 * x : 3 * x + 3].tobytes() for y in (0, 1) for x in (0, 1)}
    bounded = named("zarrs.regular_bounded", chunk_shape=[4, 3])
    yield _case("zarrs.regular_bounded", {"chunk_grid": bounded}, cut, values, "uint8")
    # a shard of 4 by 4 whose inner chunks are 3 by 4: the edge cuts the last one
    values = np.arange(16, dtype="uint8").reshape(4, 4)
    inner = [values[:3].tobytes(), values[3:].tobytes()]
    index = np.array([0, 12, 12, 4], "<u8").tobytes()
    shard = named("sharding_indexed", chunk_shape=[3, 4], codecs=[named("bytes")],
                  index_codecs=[named("bytes", endian="little")], index_location="end")  # fmt: skip
    document = {"codecs": [shard], "chunk_grid": _grid(4, 4)}
    yield _case("uneven inner chunks", document, {"c/0/0": b"".join(inner) + index}, values, "uint8")


def _proposed_codecs() -> Iterator[Case]:
    import imagecodecs

    smooth = np.add.outer(np.arange(16), np.arange(24)).astype("uint8")
    lossless = {"lossless": True, "bitspersample": 8}
    coded = [
        ("jpeg", named("jpeg"), imagecodecs.jpeg_encode(smooth, level=95)),
        ("jpegxl", named("jpegxl", **lossless), imagecodecs.jpegxl_encode(smooth, lossless=True)),
    ]
    for name, codec, data in coded:
        values = imagecodecs.jpeg_decode(data) if name == "jpeg" else smooth
        yield _case(name, {"codecs": [codec]}, {"c/0/0": bytes(data)}, values, "uint8")
    codecs = [named("bytes"), named("lzw")]
    yield _case("lzw", {"codecs": codecs}, {"c/0/0": bytes(imagecodecs.lzw_encode(smooth.tobytes()))}, smooth, "uint8")
    for name in ("zarrs.squeeze", "singleton_dim"):
        configuration = {} if name == "zarrs.squeeze" else {"operations": [{"remove": 1}]}
        codecs = [named(name, **configuration), named("bytes")]
        yield _case(name, {"codecs": codecs}, {"c/0/0/0": smooth.tobytes()}, smooth[:, None], "uint8")


def _proposed_keys() -> Iterator[Case]:
    values = np.arange(24, dtype="int32").reshape(4, 6)
    sentence = Sentence("zarr-extensions, proposals 28, 31 and 69", "Examples", "The keys that the proposals show.")
    base = {"name": "default", "configuration": {"separator": "/"}}
    forms: list[tuple[str, Any, dict[str, str]]] = [
        ("suffix", {"suffix": ".tiff", "base_encoding": base}, {"c/0/0": "c/0/0.tiff", "c/0/1": "c/0/1.tiff"}),
        (
            "template",
            {"template": "images/{-1}_{0:03}.raw"},
            {"c/0/0": "images/0_000.raw", "c/0/1": "images/1_000.raw"},
        ),
        ("fanout", {"max_children": 100}, {"c/0/0": "c/0/00/0/00", "c/0/1": "c/0/00/0/01"}),
        ("zarrs.default_suffix", {"suffix": ".x"}, {"c/0/0": "c/0/0.x", "c/0/1": "c/0/1.x"}),
    ]
    for name, configuration, keys in forms:
        files = array_v3(values, "int32", (4, 3), [{"name": "bytes", "configuration": {"endian": "little"}}])
        document = json.loads(files["zarr.json"])
        document["chunk_key_encoding"] = {"name": name, "configuration": configuration}
        moved = {keys.get(key, key): value for key, value in files.items()}
        moved["zarr.json"] = json.dumps(document).encode()
        yield read("v3-proposed", name, name, sentence, moved, values, "int32")


def cases() -> dict[str, tuple[Case, list[tuple[str, str]]]]:
    """Return cases that are read, and the same to be written, by their ids, with the extensions in them."""
    found: dict[str, tuple[Case, list[tuple[str, str]]]] = {}
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for case in [*all_cases(), *proposed()]:
        expects = case.expects
        if case.level not in LEVELS | {"v3-proposed"} or not isinstance(expects, Values):
            continue
        key = f"{case.path}/zarr.json".lstrip("/")
        document = json.loads(case.files[key]) if key in case.files else {}
        names = list(dict.fromkeys(names_of(document)))
        if case.level == "v3-proposed" and not names:
            names = [("shards", case.name)]
        if not names or all(counts[name] >= _MOST for name in names):
            continue
        for name in names:
            counts[name] += 1
        found[case.id] = case, names
        if expects.raw is not None and not case.path and case.selection is None and case.name not in _ONLY_READ:
            written = Written(document, expects.shape, expects.data_type, expects.raw)
            other = replace(case, level="written", name=case.id, files={}, expects=written)
            found[other.id] = other, names
    return found


def outcomes(implementation: str, python: str | None) -> tuple[str, dict[str, str]]:
    """Return what an implementation is called, and its outcomes by the ids of cases.

    What it has written, omnizarr reads.
    """
    limits = Limits(20.0, 3072 << 20)
    process, reader = (
        Implementation(cli.command_of(argparse.Namespace(impl=name, python=of)), limits, batch=None)
        for name, of in ((implementation, python), ("omnizarr", None))
    )
    found: dict[str, str] = {}
    masks = {case.id: case.expects.mask for case, _ in cases().values() if isinstance(case.expects, Values)}
    with tempfile.TemporaryDirectory() as temporary, process, reader:
        for number, (case, _) in enumerate(cases().values()):
            directory = Path(temporary) / str(number)
            directory.mkdir()
            path = str(case.put(directory))
            answer = process.ask(
                Request(case.verb, path, case.selection, case.expects.format, str(directory / "case.json"))
            )
            found[case.id] = answer.state
            if answer.state == "ok" and isinstance(case.expects, Written):
                answer = reader.ask(Request("read", path))
            if found[case.id] == "ok":
                expects = known_values(case, masks)
                found[case.id] = "wrong" if answer.state != "ok" or expects.differences(answer.output) else "pass"
    about = process.about or {}
    return f"{about.get('implementation', implementation)} {about.get('version', '')}".strip(), found


def known_values(case: Case, masks: Mapping[str, int | None]) -> Values:
    """Return the values that must come out, of a case that is read or written."""
    expects = case.expects
    if isinstance(expects, Written):
        return Values(expects.shape, str(expects.data_type), expects.raw, mask=masks.get(case.name))
    if not isinstance(expects, Values):
        raise TypeError(case.id)
    return expects


def cell(found: Sequence[str]) -> str:
    """Return what a library does, by the outcomes of the cases of an extension.

    >>> cell(["pass", "pass"]), cell(["pass", "refused"]), cell(["unsupported"]), cell([])
    ('yes', '1 of 2', '-', '')
    """
    passed = found.count("pass")
    if not found:
        return ""
    wrong = ", **wrong**" if "wrong" in found else ""
    return "yes" if passed == len(found) else f"{passed} of {len(found)}{wrong}" if passed or wrong else "-"


def table(runs: Mapping[str, Mapping[str, str]]) -> str:
    """Return the table in Markdown: extensions by libraries, what is read and what is written."""
    known = cases()
    names = dict.fromkeys(name for _, listed in known.values() for name in listed)
    titles = list(runs)
    lines = [
        "| kind | name | " + " | ".join(titles) + " |",
        "|---|---|" + "---|" * len(titles),
    ]
    for kind, name in sorted(names, key=lambda pair: (pair[0], pair[1])):
        cells = []
        for outcome in runs.values():
            ids = [each for each, (_, listed) in known.items() if (kind, name) in listed]
            read_as = [outcome[each] for each in ids if each in outcome and not each.startswith("written/")]
            written_as = [outcome[each] for each in ids if each.startswith("written/")]
            written_as = [each for each in written_as if each in ("pass", "wrong")]  # others the adapter cannot ask
            cells.append(", ".join(filter(None, (cell(read_as), f"written: {cell(written_as)}" if written_as else ""))))
        lines.append(f"| {kind} | `{name}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the libraries, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--impl", action="append", default=[], metavar="NAME[=PYTHON]")
    parser.add_argument("--json", type=Path, help="keep outcomes here, and use those that are here")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    kept: dict[str, dict[str, str]] = (
        json.loads(options.json.read_text()) if options.json and options.json.exists() else {}
    )
    for each in options.impl:
        name, _, python = each.partition("=")
        title, found = outcomes(name, python or None)
        kept[title] = found
        sys.stderr.write(f"{title}: {Counter(found.values())}\n")
        if options.json:
            options.json.write_text(json.dumps(kept))
    made = table(kept)
    if not options.write:
        sys.stdout.write(f"{made}\n")
        return
    text = PAGE.read_text("utf-8")
    before, _, rest = text.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    dated = f"As of {dt.datetime.now(dt.UTC):%B %Y}, on {sys.platform}:"
    PAGE.write_text(f"{before}{MARKS[0]}\n{dated}\n\n{made}\n{MARKS[1]}{after}", "utf-8")


if __name__ == "__main__":
    main()
