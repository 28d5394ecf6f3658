"""The picture of the front page: a few rows of the benchmarks, drawn when the manual is built."""

import re
from html import escape

from benchmarks import pages
from benchmarks.running import Report

PAGE = "index"
PLACE = re.compile(r"<!-- speed:.*?-->", re.DOTALL)
COLORS = {"omnizarr": "#d6246e", "zarr-python": "#3b6fb6", "TensorStore": "#3a915c"}
SECONDS = {"s": 1, "ms": 1e-3, "µs": 1e-6}
LABEL, WIDTH, BAR, GAP = 310, 720, 11, 14


def setup(app):
    app.connect("source-read", fill)
    return {"parallel_read_safe": True}


def fill(app, name, source):
    """Put the picture into the front page, when Sphinx reads that."""
    if name == PAGE:
        app.env.note_dependency(str(pages.RESULTS))
        source[0], count = PLACE.subn(lambda _: picture(rows()), source[0])
        assert count == 1, f"{name}: no place for the picture"


def rows():
    """Return the times of the rows as they are written, by title and library."""
    report = Report.from_json(pages.load()["local"])
    found = {title: pages.columns(result) for title, result in pages.rows(report, pages.DRAWN).items()}
    return {title: {name: time for name, time in row.items() if time} for title, row in found.items()}


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
    for library, color in COLORS.items():
        lines.append(f'<rect x="{x}" y="2" width="{BAR}" height="{BAR}" rx="2" fill="{color}"/>')
        lines.append(f'<text x="{x + BAR + 5}" y="12">{library}</text>')
        x += 110
    for name, row in times.items():
        longest = max(map(seconds, row.values()))
        lines.append(f'<text x="{LABEL - 12}" y="{y + 22}" text-anchor="end">{escape(name)}</text>')
        for library, color in COLORS.items():
            if library not in row:
                continue
            length = max(2, (WIDTH - LABEL - 70) * seconds(row[library]) / longest)
            lines.append(f'<rect x="{LABEL}" y="{y}" width="{length:.1f}" height="{BAR - 1}" rx="2" fill="{color}"/>')
            lines.append(f'<text x="{LABEL + length + 6:.1f}" y="{y + 9}" class="time">{row[library]}</text>')
            y += BAR
        y += GAP
    said = "; ".join(
        f"{name}: {', '.join(f'{key} {time}' for key, time in row.items())}" for name, row in times.items()
    )
    head = f'<svg class="speed" viewBox="0 0 {WIDTH} {y}" role="img" aria-label="{escape(said)}">'
    return "\n".join([head, *lines, "</svg>"])
