"""The command line, run as a user runs it, in this process (`run`) or in one of its own (`command`)."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from types import ModuleType, SimpleNamespace

import click
import numpy as np
import pytest

import omnizarr
from omnizarr.cli import commands, main
from omnizarr.settings import engines

VALUES = np.arange(30 * 40 * 50, dtype="float32").reshape(30, 40, 50) / 7


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A hierarchy of v3 nodes, with one of v2, one that names an unknown codec, and one with a broken document."""
    path = tmp_path_factory.mktemp("cli") / "x.zarr"
    root = omnizarr.create_group(path, attributes={"title": "buoys\x1b[31m"})
    root.create_array(
        "ocean/temp",
        data=VALUES,
        chunks=(10, 10, 10),
        dimension_names=["t", "y", "x"],
        attributes={"units": "K"},
        compressors={"name": "gzip", "configuration": {"level": 5}},
    )
    root.create_array("ocean/part", shape=(100,), chunks=(10,), dtype="int16", fill_value=7)[:25] = 1
    root.create_array("names", data=np.array(["a,b", "é", "c\nd"], np.dtypes.StringDType()))
    root.create_array("huge", shape=(2**63 - 1, 2**62), chunks=(2**20, 1), dtype="uint8")
    omnizarr.create_group(path, path="old", zarr_format=2).create_array("x", data=np.arange(6).reshape(2, 3))
    root.create_array("mystery", data=np.arange(4))
    document = path / "mystery" / "zarr.json"
    changed = json.loads(document.read_text())
    changed["codecs"].append({"name": "enigma"})
    document.write_text(json.dumps(changed))
    (path / "broken").mkdir()
    (path / "broken" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "array"}')
    return path


def command(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "omnizarr", *map(str, arguments)],
        capture_output=True,
        timeout=60,
        check=False,
        **options,
    )


# -- get -----------------------------------------------------------------------


def test_get_prints_what_numpy_prints(run, path):
    assert run("get", path / "ocean/temp") == (0, f"{VALUES}\n", "")


@pytest.mark.parametrize(
    ("text", "selection"),
    [
        ("0", np.s_[0]),
        ("0:10, ::2, -1", np.s_[0:10, ::2, -1]),
        ("-1, ::-7", np.s_[-1, ::-7]),
        ("..., 3", np.s_[..., 3]),
        ("5:2, 0", np.s_[5:2, 0]),
        ("1, 2, 3", np.s_[1, 2, 3]),
        ("[2:4, 0]", np.s_[2:4, 0]),
        ("[0, 3], :2, 5", np.s_[[0, 3], :2, 5]),
        ("0, None, newaxis, :3, 1", np.s_[0, None, None, :3, 1]),
        ("100:, 0, 0", np.s_[100:, 0, 0]),
    ],
)
def test_selection_means_what_it_means_in_numpy(run, path, text, selection):
    assert run("get", path / "ocean/temp", text) == (0, str(VALUES[selection]) + "\n", "")


def test_selection_may_be_typed_without_quotes(run, path):
    assert run("get", path / "ocean/temp", "-1,", "3,", "::-10") == (0, f"{VALUES[-1, 3, ::-10]}\n", "")


def test_name_of_a_field_without_quotes_is_explained(run, path):
    assert "\"'speed'\"" in run("get", path / "ocean/temp", "speed")[2]


def test_two_ellipses_are_named(run, path):
    code, _, err = run("get", path / "ocean/temp", "..., ...")
    assert code == 2
    assert "too many ellipses: found ..., ..., expected '...' once at most" in err


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "1.5",
        "True",
        "2**3",
        "1:2:0",
        "[1:",
        "0]+_[1",
        "__import__('os')",
        "[1, 'a']",
        "-" * 9000 + "1",
        "99",
        "0, 0, 0, 0",
    ],
)
def test_selection_without_sense_is_a_usage_error_on_one_line(run, path, text):
    code, out, err = run("get", path / "ocean/temp", *([text] if text[0] != "-" else ["0,", text]))
    assert (code, out) == (2, "")
    assert err.startswith("omnizarr: ")
    assert err.count("\n") == 1


def test_times_without_a_unit_are_numbers(run, tmp_path):
    times = np.array([5, 7, -(2**63)], "i8").view("M8")
    omnizarr.create_array(tmp_path / "t.zarr", data=times)
    assert run("get", tmp_path / "t.zarr")[1] == "[5 7 NaT]\n"
    assert run("get", tmp_path / "t.zarr", "1")[1] == "7\n"
    assert run("get", "--csv", tmp_path / "t.zarr")[1] == "5\n7\nNaT\n"
    code, out, _ = run("stat", tmp_path / "t.zarr")
    assert code == 0
    assert out.splitlines()[1].split()[1:3] == ["5", "7"]
    assert run("show", tmp_path / "t.zarr")[0] == 0


def test_csv_has_lines_and_columns(run, path):
    code, out, _ = run("get", path / "ocean/temp", "--csv", "3")
    assert code == 0
    assert np.array_equal(np.array(list(csv.reader(io.StringIO(out))), "float32"), VALUES[3])


def test_csv_quotes_text(run, path):
    _, out, _ = run("get", path / "names", "--csv")
    assert [row[0] for row in csv.reader(io.StringIO(out))] == ["a,b", "é", "c\nd"]


def test_csv_of_three_dimensions_is_refused(run, path):
    code, out, err = run("get", path / "ocean/temp", "--csv")
    assert (code, out) == (2, "")
    assert "select two dimensions" in err


def test_json_is_nested_lists(run, path):
    _, out, _ = run("get", path / "ocean/temp", "--json", "::7, ::9, ::-11")
    assert np.array_equal(np.array(json.loads(out), "float32"), VALUES[::7, ::9, ::-11])


def test_json_writes_small_floats_as_short_unchanged(run, tmp_path):
    omnizarr.create_array(tmp_path / "a.zarr", data=np.array([0.1, np.nan, -np.inf], "float32"))
    assert run("get", tmp_path / "a.zarr", "--json")[1] == '[0.1, "NaN", "-Infinity"]\n'


@pytest.mark.parametrize("text", ["...", "::-2, [1, 5], 3:", "4, None", "0, 0, 0", "3:3"])
def test_npy_is_read_by_numpy(run, path, tmp_path, text):
    code, _, err = run("get", path / "ocean/temp", "--npy", "-o", tmp_path / "a.npy", text)
    assert (code, err) == (0, "")
    expected = VALUES[eval(f"np.s_[{text}]")]
    loaded = np.load(tmp_path / "a.npy")
    assert loaded.dtype == VALUES.dtype
    assert np.array_equal(loaded, expected)
    assert loaded.shape == expected.shape


def test_blocks_together_are_the_selection(path):
    from omnizarr.cli.selections import parse, select

    part = select(omnizarr.open(path / "ocean/temp"), parse("::-1, 3:33, ::3"))
    for limit in (1, 7, 100, 100_000):
        blocks = list(part.blocks(limit))
        assert np.array_equal(np.concatenate(blocks), VALUES[::-1, 3:33, ::3].ravel())
        assert max(map(len, blocks)) <= limit


def test_npy_of_text_leaves_no_half_a_file(run, path, tmp_path):
    code, _, err = run("get", path / "names", "--npy", "-o", tmp_path / "a.npy")
    assert code == 1
    assert "use --json or --csv" in err
    assert list(tmp_path.iterdir()) == []


def test_fields_are_selected_by_name(run, tmp_path):
    data = np.array([(1.5, 2), (2.5, 3)], [("x", "f8"), ("n", "i4")])
    omnizarr.create_array(tmp_path / "s.zarr", data=data, zarr_format=2)
    assert run("get", tmp_path / "s.zarr", "'x', 1:")[1] == "[2.5]\n"
    assert run("get", tmp_path / "s.zarr", "--csv")[1] == "x,n\n1.5,2\n2.5,3\n"
    assert run("get", tmp_path / "s.zarr", "'y'")[0] == 2


def test_corner_of_an_array_larger_than_any_memory_is_printed(run, path):
    code, out, _ = run("get", path / "huge")
    assert code == 0
    assert out == f"{np.broadcast_to(np.uint8(0), (2000, 2000))}\n"


def test_get_of_a_group_says_what_to_do(run, path):
    code, _, err = run("get", path)
    assert code == 1
    assert "omnizarr ls -r" in err


# -- info ----------------------------------------------------------------------


def test_info_of_an_array_counts_what_is_stored(run, path):
    code, out, _ = run("info", path / "ocean/part")
    assert code == 0
    for fact in ("int16", "Zarr v3", "3 of 10 chunks present, 7 missing", "fill value  7"):
        assert fact in out


def test_info_shows_codecs_in_plain_words(run, path):
    assert "gzip level 5" in run("info", path / "ocean/temp")[1]


def test_one_unreadable_array_does_not_hide_the_rest(run, path):
    code, out, err = run("info", path)
    assert (code, err) == (1, "")
    assert "unknown codec" in out
    assert "/broken  unreadable:" in out
    for name in ("/ocean/temp", "/huge", "/old/x", "/names"):
        assert name in out
    assert "3 groups, 6 arrays" in out


def test_info_json_is_json(run, path):
    code, out, _ = run("info", "--json", path)
    document = json.loads(out)
    assert code == 1
    temp = next(node for node in document["nodes"] if node["path"] == "/ocean/temp")
    assert (temp["stored"], temp["expected"], temp["shape"]) == (60, 60, [30, 40, 50])
    assert temp["bytes_logical"] == VALUES.nbytes
    assert document["totals"]["arrays"] == 6
    assert json.loads(run("info", "--json", path / "ocean/temp")[1])["stored"] == 60


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_info_says_whether_consolidated_metadata_is_current(run, tmp_path, zarr_format):
    path = tmp_path / "c.zarr"
    omnizarr.create_group(path, zarr_format=zarr_format).create_array("a", data=np.arange(5))
    assert "not consolidated" in run("info", path)[1]
    omnizarr.consolidate_metadata(path)
    assert "consolidated (current)" in run("info", path)[1]
    key = path / {2: ".zmetadata", 3: "zarr.json"}[zarr_format]
    copies = key.read_bytes()
    omnizarr.open_array(path / "a").attrs["units"] = "m"
    key.write_bytes(copies)  # as programs leave it that do not know of it
    out = run("info", path)[1]
    assert "consolidated (stale)" in out
    assert "/a" in out.splitlines()[1]


def test_text_of_others_cannot_command_the_terminal(run, path):
    out = run("info", path)[1]
    assert "\x1b" not in out
    assert "buoys" in out


# -- ls and tree ---------------------------------------------------------------


def test_ls_is_as_brief_as_h5ls(run, path):
    code, out, _ = run("ls", path / "ocean")
    assert (code, out.splitlines()) == (
        0,
        ["part                     Array {100} int16", "temp                     Array {30, 40, 50} float32"],
    )


def test_ls_r_shows_full_paths(run, path):
    code, out, _ = run("ls", "-r", path)
    assert code == 1  # one is broken
    assert [line.split()[0] for line in out.splitlines()] == [
        *["/", "/broken", "/huge", "/mystery", "/names", "/ocean", "/ocean/part", "/ocean/temp", "/old", "/old/x"]
    ]


def test_ls_json_lists_nodes(run, path):
    assert json.loads(run("ls", "--json", path / "ocean")[1]) == [
        {"path": "/part", "node_type": "array", "shape": [100], "data_type": "int16"},
        {"path": "/temp", "node_type": "array", "shape": [30, 40, 50], "data_type": "float32"},
    ]


def test_tree_draws(run, path):
    lines = run("tree", path)[1].splitlines()
    assert lines[-2:] == ["└── old", "    └── x (2, 3) int64"]
    assert "│   └── temp (30, 40, 50) float32" in lines


def test_tree_stops_at_a_level(run, path):
    assert "temp" not in run("tree", "-L", 1, path)[1]


# -- paths ---------------------------------------------------------------------


def test_path_inside_a_zip_archive(run, tmp_path):
    with omnizarr.open_group(tmp_path / "x.zip", mode="w") as root:
        root["a/b"] = np.arange(4)
    assert run("get", tmp_path / "x.zip/a/b", "1:")[1] == "[1 2 3]\n"
    assert run("ls", "-r", tmp_path / "x.zip/a")[1].splitlines()[1].split()[0] == "/b"


@pytest.mark.parametrize(("typed", "meant"), [("ocean/tmp", "temp"), ("oceam/temp", "ocean"), ("../y.zarr", "x.zarr")])
def test_misspelt_path_brings_a_suggestion(run, path, typed, meant):
    code, out, err = run("info", path / typed)
    assert (code, out) == (1, "")
    assert "did you mean" in err
    assert meant in err
    assert err.count("\n") == 1


def test_looking_creates_nothing(run, tmp_path):
    assert run("info", tmp_path / "new.zarr")[0] == 1
    assert run("info", tmp_path / "new.zip")[0] == 1
    assert list(tmp_path.iterdir()) == []


# -- the program ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("built", "wanted", "said"),
    [
        ("9.8.7", None, "native 9.8.7"),
        ("9.8.7", "native", "native 9.8.7"),
        ("9.8.7", "reference", "reference, as chosen; native 9.8.7 is available"),
        (None, None, "reference; native engine not built"),
        (None, "reference", "reference; native engine not built"),
    ],
)
def test_version_says_which_engine_serves_and_why(run, monkeypatch, built, wanted, said):
    module = None if built is None else SimpleNamespace(__version__=built)
    monkeypatch.setattr(engines, "module", lambda: module)
    monkeypatch.setattr(engines, "_FROM_ENVIRONMENT", None)
    monkeypatch.setitem(sys.modules, "omnizarr._native", None)  # as if there were no such file
    with omnizarr.config.set({"engine": wanted}):
        code, out, _ = run("--version")
    assert code == 0
    assert out.startswith(f"omnizarr {omnizarr.__version__} (engine: {said}; numpy {np.__version__}, numcodecs ")


def test_version_says_why_a_native_engine_that_was_built_does_not_serve(run, monkeypatch):
    class Loader:
        def find_spec(self, name, *_):
            if name == "omnizarr._native":
                raise ImportError("it needs a newer libc")

    monkeypatch.setattr(engines, "module", lambda: None)
    monkeypatch.delitem(sys.modules, "omnizarr._native", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Loader(), *sys.meta_path])
    _, out, _ = run("--version")
    assert "(engine: reference; native engine cannot be loaded: it needs a newer libc; numpy" in out


@pytest.mark.parametrize("arguments", [["--help"], ["info", "-h"], ["tree", "--help"], ["ls", "-h"], ["get", "--help"]])
def test_help_has_examples(run, arguments):
    code, out, _ = run(*arguments)
    assert code == 0
    assert "Examples:\n  " in out


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["get"],
        ["info", "--nonsense", "x"],
        ["get", "x", "--nonsense"],
        ["get", "x", "-x"],
        ["info", ""],
        ["tree", "-L", "0", "x"],
    ],
)
def test_usage_error_is_one_line_and_exit_code_2(run, arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert "--help" in err
    assert err.count("\n") == 1


def test_missing_packages_are_named_with_the_remedy(monkeypatch, capsys):
    for name in [name for name in sys.modules if name.partition(".")[0] == "click" or name.startswith("omnizarr.cli.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "click", None)
    assert main(["info", "x"]) == 2
    assert 'pip install "omnizarr[cli]"' in capsys.readouterr().err
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith(f"omnizarr {omnizarr.__version__} (engine: ")


def test_module_runs():
    done = command("--version")
    assert done.returncode == 0


def test_closed_pipe_is_no_error(path):
    with subprocess.Popen(
        [sys.executable, "-m", "omnizarr", "get", str(path / "huge"), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout.read(10) == b"[[0, 0, 0,"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no sh")
@pytest.mark.parametrize("command", ["show", "info", "get", "tree", "stat"])
def test_no_stdout_is_no_error(path, command):
    place = path / "ocean" if command in ("info", "tree") else path / "ocean/temp"
    script = f"exec {sys.executable} -m omnizarr {command} {place} >&-"
    done = subprocess.run(["sh", "-c", script], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_option_without_its_value_names_the_help_of_its_command(run, path):
    assert run("convert", path, "x.zarr", "--shards")[2].endswith("see 'omnizarr convert --help'\n")


def test_an_empty_path_is_a_usage_error(run):
    code, _, err = run("ls", "")
    assert code == 2
    assert "the path is empty" in err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for other processes")
def test_interruption_exits_with_130(path):
    with subprocess.Popen(
        [sys.executable, "-m", "omnizarr", "get", str(path / "huge"), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdout.read(10)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert b"Traceback" not in process.stderr.read()
        assert process.wait(60) == 130


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_terminal_with_few_characters_is_no_error(path, encoding):
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    for arguments in (["tree", path], ["info", path], ["get", path / "names"], ["get", path / "names", "--csv"]):
        done = command(*arguments, env=environment)
        assert done.returncode in {0, 1}
        assert done.stderr == b""
        done.stdout.decode(encoding)


def test_piped_output_has_no_colours_and_no_progress(path):
    done = command("info", path)
    assert done.stderr == b""
    assert b"\x1b" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (["--version"], {"numpy", "numcodecs", "rich"}),
        (["info", "ocean/temp"], {"numcodecs", "rich", "netCDF4", "omnizarr.netcdf.dataset", "obstore", "dask"}),
        (["ls", "ocean"], {"numcodecs", "rich", "netCDF4", "omnizarr.netcdf", "obstore", "dask"}),
    ],
)
def test_command_imports_only_what_it_needs(path, arguments, unwanted):
    name, *place = arguments
    typed = [name, *(str(path / each) for each in place)]
    code = f"import sys; from omnizarr.cli import main; main({typed!r}); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert unwanted.isdisjoint(done.stderr.split())


def test_name_of_a_command_may_have_a_hyphen(monkeypatch):
    module = ModuleType("omnizarr.cli.count_nodes")
    module.count_nodes = click.Command("count-nodes")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(commands._MODULES, "count-nodes", "count_nodes")
    assert commands.omnizarr.get_command(click.Context(commands.omnizarr), "count-nodes") is module.count_nodes
