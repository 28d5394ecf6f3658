"""The pages of the manual that show figures: ``python -m benchmarks.pages`` writes them again.

All figures come from ``docs/benchmarks.json``, which a run with ``--docs`` writes: ``python -m benchmarks`` its part
"local", ``python -m benchmarks.latency`` its part "remote". A test compares the pages and the picture with it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks import latency, pipeline, quoted, reports, running
from benchmarks.running import Report, Result
from benchmarks.targets import fastest_peer

DOCS: Final = running.ROOT / "docs"
RESULTS: Final = DOCS / "benchmarks.json"
PICTURE: Final = DOCS / "benchmarks.png"
README: Final = running.ROOT / "README.md"
SUMMARY: Final = {
    "read-large-zstd": "read {size} in chunks of {chunk}, zstd",
    "write-large-zstd": "write {size} in chunks of {chunk}, zstd",
    "read-small-zstd": "read {chunks} chunks of {chunk}, zstd",
    "windows": "read {count} random windows of {part} from shards, zstd",
    "rows": "read {count} scattered rows, zstd",
    "latency": "open an array, read one chunk of {chunk}",
    "open-nodes": "open {nodes} arrays",
    "consolidated": "open {nodes} arrays from consolidated metadata",
    "create-nodes": "create {nodes} arrays",
    "joined-12000-series": "read a series of {nodes} arrays as one",
}
"""The rows of the summary, with titles that stand alone (`Workload.facts`)."""
FRONT: Final = ("read-small-zstd", "windows", "open-nodes", "consolidated", "create-nodes")
"""Those of the README."""
DRAWN: Final = ("read-large-zstd", "read-small-zstd", "windows", "rows", "open-nodes", "create-nodes")
"""Those of the picture on the front page of the manual, which `docs/extensions/speed.py` draws."""
FAR: Final = "HTTP: read 1,000 chunks of 16 KiB, raw"
"""The row of the README with requests that take time."""
COLUMNS: Final = {
    "omnizarr": ("omnizarr",),
    "zarr-python": ("zarr-python", "zarr-python-fused"),
    "TensorStore": ("tensorstore",),
}
"""What the summary shows, and of which peers the fastest counts."""


def load(path: Path = RESULTS) -> dict[str, Any]:
    """Return what was measured, by part."""
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def save(part: str, document: dict[str, Any], path: Path = RESULTS) -> None:
    """Replace a part of what was measured."""
    parts = (load(path) if path.exists() else {}) | {part: document}
    path.write_text(as_lines(parts), "utf-8")


def save_again(part: str, document: dict[str, Any], path: Path = RESULTS) -> None:
    """Replace some rows of what was measured, and say which."""
    saved = load(path)[part]
    about = saved["about"]
    rows = {*about.get("again", "").split(), *document["results"]}
    saved["about"] = about | {"again": " ".join(sorted(rows)), "load again": document["about"]["load"]}
    saved["results"] |= document["results"]
    save(part, saved, path)


def as_lines(document: Any, depth: int = 3) -> str:
    """Return a document as JSON, with a line for each member down to a depth, and four figures of each number."""

    def short(found: Any) -> Any:
        if isinstance(found, float):
            return float(f"{found:.4g}")
        if isinstance(found, dict):
            return {name: short(member) for name, member in found.items()}
        return [short(member) for member in found] if isinstance(found, list | tuple) else found

    def lines(found: Any, level: int) -> str:
        if level == depth or not isinstance(found, dict) or not found:
            return json.dumps(short(found), ensure_ascii=False)
        members = ",\n".join(
            f"{' ' * (level + 1)}{json.dumps(name)}: {lines(member, level + 1)}" for name, member in found.items()
        )
        return f"{{\n{members}\n{' ' * level}}}"

    return lines(document, 0) + "\n"


def digest(parts: dict[str, Any]) -> str:
    """Return what a picture says of the run that it was drawn from."""
    return hashlib.sha256(json.dumps(parts["local"], sort_keys=True).encode()).hexdigest()


# -- tables ----------------------------------------------------------------------------------------------------------


def rows(report: Report, names: Iterable[str]) -> dict[str, Result]:
    """Return those of some rows that a run has, by titles that stand alone."""
    scale = int(report.about["scale"].partition("/")[2])
    found = {result.workload.name: result for result in report.results}
    return {SUMMARY[name].format(**found[name].workload.facts(scale)): found[name] for name in names if name in found}


def columns(result: Result) -> dict[str, str | None]:
    """Return what a row says of each library of the summary; None if it has no figure."""
    best = {
        library: min((found for key in keys if (found := result.median(key)) is not None), default=None)
        for library, keys in COLUMNS.items()
    }
    return {
        library: None if one is None else reports.amount(one, result.workload.unit) for library, one in best.items()
    }


def _cells(result: Result, others: Sequence[float] = ()) -> list[str]:
    """Return the cells of the libraries; the fastest is bold unless one of others is faster."""
    medians = [found for keys in COLUMNS.values() for key in keys if (found := result.median(key)) is not None]
    least = reports.amount(min([*medians, *others]), result.workload.unit)
    return [
        "-" if text is None else f"**{_unbroken(text)}**" if text == least else _unbroken(text)
        for text in columns(result).values()
    ]


def _unbroken(text: str) -> str:
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def summary(report: Report) -> str:
    """Return the table of the summary."""
    heads = ["", *COLUMNS, "fastest other library"]
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "--:|" * (len(heads) - 1)]
    for title, result in rows(report, SUMMARY).items():
        best, ours, other = fastest_peer(result), result.median(report.ours), "-"
        if best is not None:
            time = _unbroken(reports.amount(best[1], result.workload.unit))
            is_first = ours is not None and best[1] < ours
            other = f"{reports.label(best[0])}, " + (f"**{time}**" if is_first else time)
        lines.append("| " + " | ".join([title, *_cells(result, [best[1]] if best else []), other]) + " |")
    return "\n".join([reports.where(report), "", *lines, ""])


def front(parts: dict[str, Any], report: Report) -> str:
    """Return the rows of the README that are times."""
    lines = ["| " + " | ".join([title, *_cells(result)]) + " |" for title, result in rows(report, FRONT).items()]
    far = next((row for row in latency.rows_of(parts["remote"]) if row.title == FAR), None)
    if far is not None:
        delay = f"{parts['remote']['seconds per request'] * 1e3:g} ms"
        title = f"{far.case.title.replace(', raw', '')} over HTTP, {delay} per request"
        lines.append("| " + " | ".join([title, *_far(far)]) + " |")
    return "\n".join(lines) + "\n"


def _far(row: latency.Row) -> list[str]:
    """Return the best of each library, and what it takes as it comes where that is more."""
    told, least = [], row.best(peer for peer in row.seconds if peer != latency.BARE)
    for label in ("omnizarr", "zarr-python, obstore", "TensorStore"):
        peers = [peer for peer in row.seconds if latency.label_of(peer) == label]
        best, plain = row.best(peers), next((peer for peer in peers if not latency.how(peer)), None)
        if best is None:
            told.append("-")
            continue
        text = reports.amount(row.median(best), "s")
        default = "" if plain in {None, best} else f" ({reports.amount(row.median(plain), 's')} by default)"
        told.append((f"**{text}**" if best == least else text) + default)
    return told


def between(page: str, name: str, text: str) -> str:
    """Return a page with a text between the marks of this name."""
    before, _, rest = page.partition(f"<!-- {name}: begin -->")
    _, end, after = rest.partition(f"<!-- {name}: end -->")
    assert end, f"no marks: {name}"
    return f"{before}<!-- {name}: begin -->\n\n{text}\n<!-- {name}: end -->{after}"


def rows_below(page: str, first: str, text: str) -> str:
    """Return a page in whose table other rows follow the one that begins like this."""
    found, count = re.subn(rf"(?m)^({re.escape(first)}.*\n)(?:\|.*\n)*", rf"\g<1>{text}", page)
    assert count == 1, f"no row: {first}"
    return found


# -- pages -----------------------------------------------------------------------------------------------------------


def pages(parts: dict[str, Any] | None = None) -> dict[Path, str]:
    """Return the pages with figures as they should be."""
    parts = load() if parts is None else parts
    report = Report.from_json(parts["local"])
    generated = {
        DOCS / "benchmarks.md": {"summary": summary(report)},
        DOCS / "benchmarks-data.md": {
            "measured": reports.markdown(report),
            "pipelines": pipeline.markdown(report),
            "latency": latency.markdown_of(parts["remote"]),
        },
        DOCS / "explanation" / "speed.md": {"behind": quoted.behind(report)},
        README: {},
    }
    found = {path: path.read_text("utf-8") for path in generated}
    for path, texts in generated.items():
        for name, text in texts.items():
            found[path] = between(found[path], name, text)
    found[README] = rows_below(found[README], "| two processes write", front(parts, report))
    for one in quoted.QUOTED:
        path = running.ROOT / one.page
        found[path] = one.put(found.get(path) or path.read_text("utf-8"), report)
    return found


def main() -> None:
    """Write pages and picture."""
    from benchmarks.plotting import plot

    parts = load()
    for path, text in pages(parts).items():
        if path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            print(path.relative_to(running.ROOT))
    plot(Report.from_json(parts["local"]), PICTURE, digest(parts))


if __name__ == "__main__":
    main()
