"""The pages of the manual that show figures say what was measured, at the size that it had."""

import copy
import re
import statistics
import struct

import pytest

from benchmarks import pages, quoted, reports, running
from benchmarks.__main__ import FULL, QUICK
from benchmarks.running import ROOT, Report
from benchmarks.workloads import BY_NAME

pytestmark = pytest.mark.rules

PARTS = pages.load()
REPORT = Report.from_json(PARTS["local"])
SCALE = int(PARTS["local"]["about"]["scale"].partition("/")[2])

# Figures that are no measurements: limits, settings, and what examples print, by page.
STATED = {
    "docs/benchmarks-data.md": ("5.3 µs", "6.1 µs"),  # of the run with a million arrays, as in its tables
    "docs/explanation/speed.md": ("20 s", "0.4 ms"),  # of the same run
    "docs/caching.md": ("0.1 s", "3 s", "10 ms"),  # clocks of file systems
    "docs/concurrency.md": ("5 seconds",),
    "docs/howto/chunks.md": (
        "10 to 100 ms",
        "0.1 ms",
        "30 ms",
    ),  # what others say of object stores; what `advise` assumes
    "docs/howto/look.md": ("0.2 s",),
    "docs/howto/serve.md": ("10 seconds",),
    "docs/howto/slow-reads.md": ("3,600 times the",),  # bytes that the example counts
    "docs/native.md": ("30 seconds", "10 seconds"),
    "docs/netcdf.md": ("5 seconds",),
    "docs/security.md": ("10 seconds",),
    "docs/stores.md": ("20 seconds", "30 seconds", "10 minutes"),
}
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
GENERATED = re.compile(r"<!-- (\w[\w ]*): begin -->.*?<!-- \1: end -->", re.DOTALL)
FIGURE = re.compile(
    r"\d[\d.,]*(?: to \d[\d.,]*)?\s(?:(?:µs|ms|ns|s|seconds|minutes|hours|[MG]i?B/s)\b|%|×(?!\s*\d)"
    r"|times\s(?:as|the|faster|slower|with)\b)"
)
MANUAL = [ROOT / "README.md", *(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts)]


@pytest.mark.parametrize("page", pages.pages(PARTS), ids=lambda path: path.name)
def test_page_shows_the_figures_of_the_run(page):
    assert page.read_text("utf-8") == pages.pages(PARTS)[page], "python -m benchmarks.pages"


def test_picture_shows_the_run():
    said = dict(texts(pages.PICTURE.read_bytes()))
    assert said["Source"] == pages.digest(PARTS), "python -m benchmarks.pages"


def texts(png):
    """Yield the texts in a PNG."""
    place = 8
    while place < len(png):
        length, kind = struct.unpack_from(">I4s", png, place)
        if kind == b"tEXt":
            name, _, text = png[place + 8 : place + 8 + length].partition(b"\0")
            yield name.decode(), text.decode()
        place += 12 + length


@pytest.mark.parametrize("name", PARTS["local"]["results"])
def test_row_of_the_run_has_the_title_of_its_size_and_medians_of_its_values(name):
    found, workload = PARTS["local"]["results"][name], BY_NAME[name]
    assert (found["title"], found["group"]) == (workload.title_at(SCALE), workload.group_at(SCALE))
    assert tuple(found["shape"]) == workload.dataset.scaled(SCALE).shape
    assert found["medians"].keys() == found["values"].keys()
    for key, values in found["values"].items():
        assert found["medians"][key] == pytest.approx(statistics.median(values), rel=1e-3)


@pytest.mark.parametrize("scale", [FULL.scale, QUICK.scale])
def test_title_in_the_summary_names_the_size_of_a_run(scale):
    report = Report(
        {**REPORT.about, "scale": f"1/{scale}"}, {}, {}, [running.Result.of(one, scale) for one in BY_NAME.values()]
    )
    told = pages.rows(report, pages.SUMMARY)
    assert len(told) == len(pages.SUMMARY)
    for title, result in told.items():
        facts = {number for fact in result.workload.facts(scale).values() for number in re.findall(r"\d[\d,]*", fact)}
        assert set(re.findall(r"\d[\d,]*", title)) <= facts


@pytest.mark.parametrize("page", MANUAL, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_figure_in_a_sentence_is_quoted_from_the_run(page):
    name, text = page.relative_to(ROOT).as_posix(), page.read_text("utf-8")
    text = GENERATED.sub("", text)
    if page == pages.README:
        text = text.replace(pages.front(PARTS, REPORT), "")
    for one in quoted.QUOTED:
        if one.page == name:
            text, count = one.pattern.subn("", text)
            assert count == 1, one.text
    text = CODE.sub("", text)
    found, stated = set(FIGURE.findall(text)), set(STATED.get(name, ()))
    assert stated <= found, f"{name} does not say this any more"
    assert found <= stated, f"{name}: add them to benchmarks/quoted.py, or to STATED if they are no measurements"


def test_figures_are_recognized():
    text = "It takes 7 µs, 21 to 45 times as long, 0.9 × the floor, 12 to 15 % more, 1.5 GiB/s, 0.3 s; 4 × 4 chunks."
    assert FIGURE.findall(text) == ["7 µs", "21 to 45 times as", "0.9 ×", "12 to 15 %", "1.5 GiB/s", "0.3 s"]


def test_figures_of_another_run_are_put_into_sentences():
    parts = copy.deepcopy(PARTS)
    for found in parts["local"]["results"].values():
        for number, values in enumerate(found["values"].values(), 2):
            values[:] = [value * number * 10 for value in values]
    report, other = Report.from_json(parts["local"]), pages.pages(parts)
    changed = 0
    for one in quoted.QUOTED:
        expected = one.figures(report)
        found = one.pattern.search(other[ROOT / one.page])
        assert [figure.split() for figure in found.groups()] == [figure.split() for figure in expected]
        changed += list(expected) != list(one.figures(REPORT))
    assert changed >= len(quoted.QUOTED) - 3  # a version, and what the source says: from which ratio or time on


def test_sentence_that_a_page_does_not_have_is_noticed():
    one = quoted.Quoted("README.md", "It takes {}.", lambda _: ["1 s"])
    assert one.put("Here. It\ntakes 2 s. There.", REPORT) == "Here. It\ntakes 1 s. There."
    for page in ("Nothing.", "It takes 1 s. It takes 2 s."):
        with pytest.raises(AssertionError, match="times: It takes"):
            one.put(page, REPORT)


def test_fastest_of_a_row_in_the_summary_is_bold_whoever_it_is():
    result = running.Result.of(BY_NAME["read-small-zstd"], 16)
    report = Report({**REPORT.about, "scale": "1/16"}, {"omnizarr": "1"}, {}, [result])
    for times, bold in (((1.0, 2.0, 3.0), "1 s"), ((2.0, 1.0, 3.0), "1 s"), ((2.0, 4.0, 1.5), "1.5 s")):
        result.values.update(
            {key: [time] for key, time in zip(("omnizarr", "tensorstore", "z5py"), times, strict=True)}
        )
        line = pages.summary(report).splitlines()[-1].replace("\N{NO-BREAK SPACE}", " ")
        assert set(re.findall(r"\*\*(.*?)\*\*", line)) == {bold}


def test_run_that_lacks_a_row_says_which():
    with pytest.raises(quoted.Missing, match="no row read-small-zstd"):
        quoted.per_chunk(Report({}, {"omnizarr": "1"}, {}, []), "read-small-zstd")


def test_rows_in_which_another_library_is_faster_are_named():
    near, far = (running.Result.of(BY_NAME[name], 1) for name in ("read-large-raw", "read-large-zstd"))
    near.values.update({"omnizarr": [1.04], "zarrista": [1.0], "floor": [0.5]})
    far.values.update({"omnizarr": [1.06], "zarrista": [1.0], "tensorstore": [2.0]})
    report = Report({}, {"omnizarr": "1"}, {}, [near, far])
    assert quoted.behind(report) == "- Read 512 MiB, zstd: 1.06 s, zarrista 1 s\n"


def are_close(one, other):
    """Return whether figures are the same to three digits: the median of rounded figures is not the rounded median."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(are_close(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(are_close, one, other))
    if isinstance(one, str) and isinstance(other, str):
        return re.sub(r"× [\d.]+", "×", one) == re.sub(r"× [\d.]+", "×", other)
    return one == (pytest.approx(other, rel=1e-3) if isinstance(other, float) else other)


def test_saved_run_keeps_four_figures_and_other_parts(tmp_path):
    path = tmp_path / "benchmarks.json"
    pages.save("remote", {"rows": {}}, path)
    pages.save("local", reports.details(REPORT), path)
    again = pages.load(path)
    assert again["remote"] == {"rows": {}}
    assert are_close(again["local"], PARTS["local"])
    pages.save("local", {"seconds": [0.123456, 1234567.0]}, path)
    assert pages.load(path)["local"] == {"seconds": [0.1235, 1235000.0]}


def test_rows_that_are_measured_again_replace_theirs_and_are_counted(tmp_path):
    file = tmp_path / "saved.json"
    first = {"about": {"date": "2026-01-01", "load": "0.1"}, "results": {"a": {"medians": 1}, "b": {"medians": 2}}}
    pages.save("local", first, file)
    again = {"about": {"date": "2026-02-02", "load": "0.7"}, "results": {"b": {"medians": 3}}}
    for _ in range(2):
        pages.save_again("local", again, file)
    saved = pages.load(file)["local"]
    assert saved["results"] == {"a": {"medians": 1}, "b": {"medians": 3}}
    assert saved["about"] == first["about"] | {"again": "b", "load again": "0.7"}
