"""How far work is: its state, and what shows it."""

import ast
import inspect
import io
import sys
import time
import types
from contextlib import closing, suppress
from importlib import import_module
from typing import ClassVar

import numpy as np
import pytest

import omnizarr
from omnizarr.netcdf.files import open_file, write_file
from omnizarr.support import progress
from omnizarr.support.progress import Lines, Notebook, Showing, State, Terminal, Tracker
from tests.structure import MODULES


class Screen(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.fixture
def source(tmp_path):
    omnizarr.create_group(tmp_path / "a.zarr").create_array("deep/x", data=np.arange(1000), chunks=100)
    return tmp_path / "a.zarr"


@pytest.fixture
def quick(monkeypatch):
    """Let everything be shown from the beginning."""
    for kind in (Lines, Terminal, Notebook):
        monkeypatch.setattr(kind, "first", 0.0)
        monkeypatch.setattr(kind, "every", 0.005)
    monkeypatch.setattr(progress, "AT_FIRST", 0.0)
    original = progress.Showing.__init__

    def begin(self, state, where):  # the thread may come too late on a busy machine
        original(self, state, where)
        with self._guard:
            where.draw(state)

    monkeypatch.setattr(progress.Showing, "__init__", begin)


def later(state, seconds):
    """Return a state as it is so many seconds after it began."""
    state.started = time.monotonic() - seconds
    return state


def test_words_have_share_amounts_rate_and_time_left():
    state = later(State("converting", 100 * 2**20, 40, done=25 * 2**20, chunks=10, path="/ocean/temp"), 10)
    expected = "converting /ocean/temp: 25 %, 25.0 MiB of 100.0 MiB, 10 of 40 chunks, 2.5 MiB/s, 30 s left"
    assert state.words() == expected


@pytest.mark.parametrize("width", range(20, 120))
def test_words_fit_into_any_width_and_lose_what_matters_least(width):
    state = later(State("converting", 100 * 2**20, 40, done=25 * 2**20, chunks=10, path="/ocean/temp"), 10)
    words = state.words(width)
    assert len(words) <= width
    if width >= 35:
        assert "25 %" in words
        assert "left" in words
    assert ("/ocean/temp" in words) == (width >= len(state.words()))


def test_rate_is_that_of_late(monkeypatch):
    state = State("reading", 1000)
    now = state.started
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    rates = []
    for _ in range(20):
        now += 10
        state.done += 10
        rates.append(state.rate)
    state.done += 400
    now += 10
    assert rates[-1] == pytest.approx(1)
    assert state.rate > 10


def test_terminal_line_is_drawn_in_place_and_taken_away(quick, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    screen = Screen()
    with closing(Showing(State("reading", 100, done=50), Terminal(screen))):
        time.sleep(0.05)
        progress.clear()
        time.sleep(0.05)
    frames = screen.getvalue().split("\r\x1b[2K")
    assert frames[0] == frames[-1] == ""
    assert all(len(frame) < 60 for frame in frames)
    assert any("██████░░░░░░ reading: 50 %" in frame for frame in frames)
    assert "" in frames[1:-1]  # cleared


def test_nothing_is_shown_of_what_takes_less_than_a_second():
    screen, log = Screen(), io.StringIO()
    for where in (Terminal(screen), Lines(log)):
        with closing(Showing(State("reading", 100, done=50), where)):
            time.sleep(0.05)
    assert (screen.getvalue(), log.getvalue()) == ("", "")


def test_log_has_lines_and_a_last_one(quick):
    log = io.StringIO()
    state = State("reading", 100)
    with closing(Showing(state, Lines(log))):
        time.sleep(0.05)
        state.done = 100
    lines = log.getvalue().splitlines()
    assert len(lines) >= 3
    assert lines[0].startswith("reading: 0 %, 0 B of 100 B")
    assert lines[-1].startswith("reading: 100 %, 100 B of 100 B")


def test_terminal_that_has_gone_stops_nothing(quick):
    screen = Screen()
    screen.close()
    with closing(Showing(State("reading", 100), Terminal(screen))):
        time.sleep(0.02)


def test_error_takes_the_bar_away(quick):
    screen = Screen()

    def fail():
        with closing(Showing(State("reading", 100), Terminal(screen))):
            time.sleep(0.02)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert screen.getvalue().endswith("\x1b[2K")


def test_notebook_has_one_bar_that_is_renewed(quick, monkeypatch, source, tmp_path):
    shown = []

    class Handle:
        def update(self, html):
            shown.append(html)

    def display(html, *, display_id):
        assert display_id
        shown.append(html)
        return Handle()

    ipython = types.ModuleType("IPython")
    ipython.get_ipython = type("ZMQInteractiveShell", (), {})
    ipython.display = types.ModuleType("IPython.display")
    ipython.display.HTML, ipython.display.display = str, display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    state = State("reading <b>", 100, done=30)
    with closing(Showing(state, progress.shown())):
        time.sleep(0.05)
        state.done = 100
    assert "<progress" in shown[0]
    assert "&lt;b&gt;" in shown[0]
    assert 'value="1.0000"' in shown[-1]
    # the functions show the same
    del shown[:]
    slow(monkeypatch)
    omnizarr.convert(source, tmp_path / "b.zarr", progress=True)
    assert any("converting /deep/x" in html for html in shown)


def slow(monkeypatch, seconds=0.01):
    """Let a directory take its time for each value that is written."""
    original = omnizarr.stores.LocalStore.set

    def set_slowly(self, key, value):
        time.sleep(seconds)
        original(self, key, value)

    monkeypatch.setattr(omnizarr.stores.LocalStore, "set", set_slowly)


def test_functions_show_their_progress(quick, monkeypatch, source, tmp_path):
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    slow(monkeypatch)
    omnizarr.convert(source, tmp_path / "b.zarr", progress=True)
    lines = log.getvalue().splitlines()
    assert lines[-1].startswith("converting /deep/x: 100 %, 15.6 KiB of 15.6 KiB, 10 of 10 chunks")
    for function, doing in ((omnizarr.check, "checking"), (omnizarr.repair, "checking")):
        log.truncate(0)
        function(tmp_path / "b.zarr", data=True, progress=True)
        assert f"{doing}" in log.getvalue()
        assert "10 chunks" in log.getvalue()


@pytest.mark.parametrize("has_postfix", [True, False])
def test_bars_like_those_of_tqdm_are_reported_bytes_and_arrays(source, tmp_path, has_postfix):
    told = []

    class Bar:
        def __init__(self, **options):
            told.append(options)

        def update(self, n):
            told.append(n)

        def close(self):
            told.append("closed")

    if has_postfix:
        Bar.set_postfix_str = lambda _, text, refresh: told.append((text, refresh))
    omnizarr.convert(source, tmp_path / "b.zarr", progress=Bar)
    assert told[0] == {"total": 16_000, "desc": "converting", "unit": "B", "unit_scale": True}
    assert told[-1] == "closed"
    assert sum(n for n in told if isinstance(n, int)) == 16_000
    assert (("/deep/x", False) in told) == has_postfix


def test_check_tells_each_chunk(source):
    counts = []
    omnizarr.check(source, data=True, progress=counts.append)
    assert sum(counts) == 10


def test_chunks_are_counted_as_they_are_written_and_not_again_as_they_are_compared():
    shown = Tracker(None, "converting", 400, chunks=4, times=2)
    seen = []
    for path in ("a", "b"):
        shown.begin(200, path, 2)
        for _ in range(4):
            shown.tick(50)
            seen.append((shown.state.done, shown.state.chunks))
    shown.begin(0)
    assert seen == [(50, 1), (100, 2), (150, 2), (200, 2), (250, 3), (300, 4), (350, 4), (400, 4)]
    assert shown.state.chunks == 4


def test_more_than_was_expected_is_not_counted():
    shown = Tracker(None, "converting", 100, chunks=1)
    shown.begin(100, "a", 1)
    shown.tick(1000)
    assert (shown.state.done, shown.state.share) == (100, 1.0)


class Told:
    """A bar like those of tqdm, which remembers what it was told."""

    def __init__(self, total, desc, **_):
        self.total, self.desc, self.done = total, desc, 0
        self.updates = self.closed = 0
        self.paths = []
        bars.append(self)

    def update(self, n):
        self.done += n
        self.updates += 1

    def set_postfix_str(self, text, refresh):
        self.paths.append(text)

    def close(self):
        self.closed += 1


bars = []


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("options", [{}, {"compressors": None}], ids=["as it is", "written again"])
def test_copies_tell_what_is_done(source, tmp_path, zarr_format, options):
    del bars[:]
    group = omnizarr.open_group(source, mode="r+")
    group.create_array("y", data=np.arange(10, dtype="int8"))
    dest = omnizarr.create_group(tmp_path / "c.zarr", zarr_format=zarr_format)
    omnizarr.copy_all(group, dest, progress=Told, **options)
    omnizarr.copy(group["deep"], dest, "again", progress=Told, **options)
    assert [(bar.desc, bar.total, bar.done, bar.closed) for bar in bars] == [
        ("copying", 8010, 8010, 1), ("copying", 8000, 8000, 1),
    ]  # fmt: skip
    assert [bar.paths for bar in bars] == [["/deep/x", "/y"], ["/deep/x"]]
    if not options:
        assert bars[1].updates == 10  # chunk by chunk
    assert (dest["again/x"][:] == np.arange(1000)).all()


def test_copy_of_another_library_tells_what_is_done(tmp_path):
    zarr = pytest.importorskip("zarr", reason="zarr-python's group is copied")
    del bars[:]
    theirs = zarr.create_group(tmp_path / "theirs.zarr")
    theirs.create_array("a/b", data=np.arange(100))
    dest = omnizarr.create_group(tmp_path / "c.zarr")
    omnizarr.copy(theirs["a"], dest, "a", progress=Told)
    assert [(bar.total, bar.done) for bar in bars] == [(800, 800)]
    omnizarr.copy(theirs["a"], dest, "again")
    assert len(bars) == 1


def _with_progress():
    """Return the names of the public functions and methods that take ``progress=``, each under its shortest name."""
    named = {}
    modules = [name for name in MODULES if "._" not in name and "as_zarr" not in name]
    for module in sorted(modules, key=lambda name: name.count(".")):
        with suppress(ImportError):  # an extra that is not installed
            found = import_module(module)
            for name in getattr(found, "__all__", ()):
                thing = getattr(found, name)
                methods = vars(thing).items() if inspect.isclass(thing) else ()
                for each, inner in ((thing, ""), *((method, f".{below}") for below, method in methods)):
                    if (
                        inspect.isfunction(each)
                        and "progress" in inspect.signature(each).parameters
                        and "._" not in inner
                    ):
                        named.setdefault(each, f"{module}.{name}{inner}".removeprefix("omnizarr."))
    return set(named.values())


def _image(folder):
    return omnizarr.create_array(folder / "image.zarr", data=np.arange(64.0).reshape(8, 8), chunks=(4, 4))


def _write_file(folder, **how):
    pytest.importorskip("netCDF4", reason="netCDF files need it")
    with omnizarr.netcdf.Dataset(folder / "data.zarr", "w") as dataset:
        dataset.createDimension("x", 10)
        dataset.createVariable("v", "f8", ("x",))[:] = np.arange(10.0)
        write_file(folder / "to.nc", dataset.as_source(), **how)
    with open_file(folder / "to.nc") as written:
        assert (written.read("/v", (slice(0, 10),)) == np.arange(10.0)).all()


CALLS = {
    "check": lambda source, _, **how: omnizarr.check(source, data=True, **how),
    "convert": lambda source, folder, **how: omnizarr.convert(source, folder / "to.zarr", zarr_format=2, **how),
    "copy": lambda source, _, **how: omnizarr.copy(omnizarr.open(source)["deep"], omnizarr.group({}), **how),
    "copy_all": lambda source, _, **how: omnizarr.copy_all(omnizarr.open(source), omnizarr.group({}), **how),
    "copy_node": lambda source, folder, **how: omnizarr.copy_node(source, folder / "to.zarr", **how),
    "delete_node": lambda source, _, **how: omnizarr.delete_node(source, "deep", recursive=True, **how),
    "diff": lambda source, _, **how: omnizarr.diff(source, source, **how),
    "digest_of_bytes": lambda source, _, **how: omnizarr.digest_of_bytes(source, **how),
    "digest": lambda source, _, **how: omnizarr.digest(source, **how),
    "du": lambda source, _, **how: omnizarr.du(source, **how),
    "missing": lambda source, _, **how: omnizarr.missing(source, path="deep/x", **how),
    "move_node": lambda source, folder, **how: omnizarr.move_node(source, folder / "to.zarr", **how),
    "pyramid": lambda _, folder, **how: omnizarr.pyramid(_image(folder), folder / "to.zarr", axes="yx", **how),
    "rechunk": lambda source, folder, **how: omnizarr.rechunk(source / "deep/x", folder / "to.zarr", chunks=50, **how),
    "references": lambda source, folder, **how: omnizarr.references(source, folder / "refs.json", **how),
    "repair": lambda source, _, **how: omnizarr.repair(source, **how),
    "stat": lambda source, _, **how: omnizarr.stat(source, **how),
    "netcdf.files.write_file": lambda _, folder, **how: _write_file(folder, **how),
}  # fmt: skip
"""A call of each public function and method that takes ``progress=``."""
INSTANT = {"move_node"}
"""Functions that rename."""


class Bar:
    """A bar as those of ``tqdm.tqdm``, which remembers what was done."""

    made: ClassVar = []

    def __init__(self, *, total=None, desc="", unit="", unit_scale=False):
        self.total, self.unit = total, unit
        self.done, self.is_closed = 0, False
        self.made.append(self)

    def update(self, n):
        self.done += n

    def close(self):
        self.is_closed = True


@pytest.mark.rules
def test_every_public_function_with_progress_is_called_here():
    assert _with_progress() == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("progress", [True, False, None], ids=str)
def test_progress_is_shown_or_not_by_every_function(quick, capsys, source, tmp_path, name, progress):
    CALLS[name](source, tmp_path, progress=progress)
    assert progress or not capsys.readouterr().err


@pytest.mark.parametrize("name", CALLS)
def test_every_function_takes_what_makes_a_bar(source, tmp_path, name):
    Bar.made.clear()
    CALLS[name](source, tmp_path, progress=Bar)
    assert all(bar.is_closed and bar.unit in ("B", "chunk", "key") for bar in Bar.made)
    assert all(bar.total in (None, bar.done) for bar in Bar.made)
    assert any(bar.done for bar in Bar.made) or name in INSTANT


@pytest.mark.parametrize("name", CALLS)
def test_every_function_takes_a_function_of_a_number(source, tmp_path, name):
    counts = []
    CALLS[name](source, tmp_path, progress=counts.append)
    assert all(isinstance(count, int) and count > 0 for count in counts)
    assert counts or name in INSTANT


@pytest.mark.parametrize("name", CALLS)
def test_every_function_takes_a_bar_and_leaves_it_open(source, tmp_path, name):
    bar = Bar()
    CALLS[name](source, tmp_path, progress=bar)
    assert not bar.is_closed
    assert bar.done > 0 or name in INSTANT


@pytest.mark.parametrize("name", sorted(set(CALLS) - INSTANT))
def test_every_function_refuses_anything_else(source, tmp_path, name):
    with pytest.raises(TypeError, match="progress='yes': expected True, a bar"):
        CALLS[name](source, tmp_path, progress="yes")


@pytest.mark.rules
@pytest.mark.parametrize("module", MODULES)
def test_progress_has_one_type_in_all_signatures(module):
    """So no function can take other values, and a function of each increase has one name and type too."""
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    arguments = [each for node in functions for each in (*node.args.args, *node.args.kwonlyargs)]
    types = {(each.arg, ast.unparse(each.annotation)) for each in arguments if each.annotation is not None}
    assert {(name, of) for name, of in types if name in {"progress", "tick"}} <= {
        ("progress", "Progress"),
        ("tick", "Tick"),
    }


def test_a_part_of_other_work_is_not_what_was_started_last():
    with Tracker(None, "converting", 100) as whole, Tracker(whole.tick, "writing", 100) as part:
        part.tick(60)
    assert progress.last() is whole.state
    assert whole.state.done == 60
