"""``omnizarr show``, run as a user runs it."""

import io
import re
import sys

import numpy as np
import pytest
from PIL import Image

import omnizarr

COMMAND = "show"
COLUMNS = 80


@pytest.fixture
def place(tmp_path):
    root = omnizarr.create_group(tmp_path / "a.zarr")
    root.create_array("t", data=np.arange(24.0).reshape(2, 3, 4), dimension_names=["time", "y", "x"])
    root.create_array("x", data=np.array([10, 20, 30, 40]), attributes={"units": "m"})
    root.create_array("s", data=np.array(["one", "two"]))
    return tmp_path / "a.zarr"


def test_pipe_gets_text(run, place):
    code, out, err = run(place / "t")
    assert (code, err) == (0, "")
    assert out.startswith("/t[0, :, :] float64\n")
    assert "x [m]" in out
    assert "the first element along dimension 0" in out
    assert "\x1b" not in out


def test_selection_says_which_slice(run, place):
    assert run(place / "t", "1, ::2")[1].startswith("/t[1, ::2, :] float64\n")
    assert run(place / "t", "-1,", "0")[1].startswith("/t[1, 0, :] float64\n")


def test_table(run, place):
    assert run(place / "s")[1] == "/s[:] <U3\nindex  s\n0      one\n1      two\n"


@pytest.mark.parametrize(
    ("protocol", "sign"), [("kitty", "\x1b_G"), ("iterm", "\x1b]1337;"), ("sixel", "\x1bP"), ("blocks", "▀")]
)
def test_protocol_can_be_chosen(run, place, protocol, sign):
    assert sign in run(place / "t", "--protocol", protocol)[1]


def test_without_colours_a_terminal_gets_text(run, place, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-kitty")
    assert "\x1b" not in run(place / "t", "--no-color")[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run(place / "t")[1]


@pytest.mark.parametrize("suffix", [".png", ".svg", ".html"])
def test_output_is_a_file(run, place, tmp_path, suffix):
    file = tmp_path / f"t{suffix}"
    assert run(place / "t", "-o", file) == (0, "", "")
    data = file.read_bytes()
    if suffix == ".png":
        assert Image.open(io.BytesIO(data)).size[0] > 500
    else:
        assert b"<svg" in data


def test_limits_are_those_of_the_legend(run, place):
    assert re.search(r"^5 .* 7 ", run(place / "t", "--limits", "5,7")[1], re.MULTILINE)
    assert re.search(r"^0 .* 11 ", run(place / "t", "--percentiles", "0,100")[1], re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--colormap", "jet"), "viridis"),
        (("--limits", "5"), "two numbers"),
        (("--limits", "5,5"), "limits"),
        (("--percentiles", "98,2"), "percentiles"),
        (("-o", "x.bmp"), ".png"),
        (("-o", "missing/x.png"), "no directory 'missing'"),
        (("--protocol", "x"), "kitty"),
        (("--jsno",), "--jsno"),
        (("-x",), "no option '-x'"),
        (("--rgb",), "red"),
        (("[0, 1], [0]",), "picture"),
    ],
)
def test_what_is_not_valid_is_explained(run, place, arguments, words):
    code, out, err = run(place / "t", *arguments)
    assert code != 0
    assert out == ""
    assert words in err


def test_group_is_shown_by_one_of_its_arrays(run, place):
    code, out, _ = run(place)
    assert code == 0
    assert out.startswith("/t[")


def test_group_without_arrays_names_the_command_that_lists_those_below(run, tmp_path):
    omnizarr.create_group(tmp_path / "g.zarr").create_group("deep")
    code, _, err = run(tmp_path / "g.zarr")
    assert code == 1
    assert err.endswith(f"omnizarr ls -r {tmp_path / 'g.zarr'}\n")


def test_limits_are_named_as_they_are_typed(run, place):
    assert "--limits 5.0,1.0: expected" in run(place / "t", "--limits", "5,1")[2]


def test_a_wide_column_is_cut_in_a_narrow_terminal(run, tmp_path):
    omnizarr.create_array(tmp_path / "s.zarr", data=np.array(["Zürich" * 5, "Bern"]))
    lines = run(tmp_path / "s.zarr", columns=20)[1].splitlines()
    assert lines[2:] == ["0      ZürichZürich…", "1      Bern"]
    assert max(map(len, lines[1:])) <= 20


def test_group_that_is_an_image_is_shown(run, tmp_path):
    root = omnizarr.create_group(tmp_path / "i.zarr")
    root.create_array("0", data=np.arange(64.0 * 64).reshape(64, 64), dimension_names=("y", "x"))
    omnizarr.pyramid(root, path="0", levels=3)
    _, out, _ = run(tmp_path / "i.zarr")
    assert out.startswith("/0[:, :] float64\n")


def test_array_at_a_url_has_the_coordinates_beside_it(run, place):
    assert "x [m]" in run((place / "t").as_uri())[1]


def test_broken_chunk_is_named(run, place):
    (place / "t" / "c" / "0" / "0" / "0").write_bytes(b"broken")
    code, _, err = run(place / "t")
    assert code == 1
    assert "c/0/0/0" in err
