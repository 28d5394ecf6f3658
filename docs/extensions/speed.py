"""The picture of the front page: a few rows of the benchmarks, drawn from their tables when the manual is built."""

import re
from html import escape
from pathlib import Path

PAGE = "index"
PLACE = re.compile(r"<!-- speed:.*?-->", re.DOTALL)
BENCHMARKS = Path(__file__).parents[1] / "benchmarks.md"

# Rows of the tables, in other words.
ROWS = {
    "read whole, blosc": "read large chunks, blosc",
    "read whole, 16,384 chunks of 16 KiB, zstd": "read small chunks, zstd",
    "200 random windows of 40³, zstd": "read windows of shards, zstd",
    "1,000 rows (orthogonal)": "read 1,000 scattered rows",
    "open each": "open 1,000 arrays",
    "create": "create 1,000 arrays",
}
# Of several columns the fastest counts.
LIBRARIES = {
    "omnizarr": ("#d6246e", ("omnizarr",)),
    "zarr-python": ("#3b6fb6", ("zarr-python", "zarr-python, fused")),
    "TensorStore": ("#3a915c", ("TensorStore",)),
}
SECONDS = {"s": 1, "ms": 1e-3, "µs": 1e-6}
LABEL, WIDTH, BAR, GAP = 210, 640, 11, 14


def setup(app):
    app.connect("source-read", fill)
    return {"parallel_read_safe": True}


def fill(app, name, source):
    """Put the picture into the front page, when Sphinx reads that."""
    if name == PAGE:
        source[0], count = PLACE.subn(lambda _: picture(rows()), source[0])
        assert count == 1, f"{name}: no place for the picture"


def rows():
    """Return the times of the rows as they are written, by library."""
    found, columns = {}, []
    for line in BENCHMARKS.read_text("utf-8").splitlines():
        cells = [cell.strip(" *") for cell in line.strip("|").split("|")]
        if len(cells) > 1 and cells[1] == "omnizarr":
            columns = cells
        elif cells[0] in ROWS and cells[0] not in found:
            times = dict(zip(columns, cells, strict=False))
            found[cells[0]] = {
                library: min((times[name] for name in names if times.get(name)), key=seconds)
                for library, (_, names) in LIBRARIES.items()
            }
    assert found.keys() == ROWS.keys(), f"not in benchmarks.md: {ROWS.keys() - found.keys()}"
    return {name: found[name] for name in ROWS}


def seconds(text):
    """Return a time of the tables as a number.

    >>> seconds("408 µs")
    0.000408
    """
    number, unit = text.split()
    return round(float(number) * SECONDS[unit], 9)


def picture(times):
    """Return the picture in SVG: bars per row, the longest of each row as long as there is room."""
    lines, y = [], 24
    x = LABEL
    for library, (color, _) in LIBRARIES.items():
        lines.append(f'<rect x="{x}" y="2" width="{BAR}" height="{BAR}" rx="2" fill="{color}"/>')
        lines.append(f'<text x="{x + BAR + 5}" y="12">{library}</text>')
        x += 110
    for name, row in times.items():
        longest = max(map(seconds, row.values()))
        lines.append(f'<text x="{LABEL - 12}" y="{y + 22}" text-anchor="end">{escape(ROWS[name])}</text>')
        for library, (color, _) in LIBRARIES.items():
            length = max(2, (WIDTH - LABEL - 70) * seconds(row[library]) / longest)
            lines.append(f'<rect x="{LABEL}" y="{y}" width="{length:.1f}" height="{BAR - 1}" rx="2" fill="{color}"/>')
            lines.append(f'<text x="{LABEL + length + 6:.1f}" y="{y + 9}" class="time">{row[library]}</text>')
            y += BAR
        y += GAP
    said = "; ".join(
        f"{ROWS[name]}: {', '.join(f'{key} {time}' for key, time in row.items())}" for name, row in times.items()
    )
    head = f'<svg class="speed" viewBox="0 0 {WIDTH} {y}" role="img" aria-label="{escape(said)}">'
    return "\n".join([head, *lines, "</svg>"])
