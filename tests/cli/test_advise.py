"""``omnizarr advise``, run as a user runs it."""

import json

import numpy as np
import pytest

import omnizarr


@pytest.fixture
def path(tmp_path):
    """An array in chunks of maps."""
    path = tmp_path / "x.zarr"
    array = omnizarr.create_group(path).create_array(
        "temp", shape=(50, 200, 300), chunks=(1, 200, 300), dtype="float32", dimension_names=["time", "y", "x"]
    )
    array[:] = np.random.default_rng(0).integers(0, 1000, array.shape)
    return path


def test_advice_on_a_shape(run):
    code, out, err = run("advise", "--shape", "8760,721,1440", "--dtype", "float32", "--read", "maps", "--no-shards")
    assert (code, err) == (0, "")
    assert "advised  1×721×1440  none" in out
    assert out.splitlines()[-1] == "create_array(..., chunks=(1, 721, 1440))"


def test_advice_on_an_array_says_what_to_type(run, path):
    code, out, _ = run("advise", path / "temp", "--read", "time=*")
    assert code == 0
    assert "now      1×200×300" in out
    typed = next(line for line in out.splitlines() if line.startswith("omnizarr convert")).split()[1:]
    target = path.parent / "y.zarr"
    assert run(*[str(target) if word == "DST" else word for word in typed])[0] == 0
    advice = omnizarr.advise(path, path="temp", reads="time=*")
    made = omnizarr.open_array(target, mode="r")
    assert (made.chunks, made.shards) == (advice.chunks, advice.shards)


def test_advice_on_a_scalar_can_be_typed(run, tmp_path):
    omnizarr.create_array(tmp_path / "s.zarr", data=3.5)
    assert f"omnizarr convert {tmp_path / 's.zarr'} DST\n" in run("advise", tmp_path / "s.zarr")[1]


def test_a_window_that_is_not_valid_is_explained_with_one_that_can_be_typed(run, path):
    assert "or 'time=*'," in run("advise", "--shape", "3,4", "--dtype", "u1", "--read", "foo")[2]


def test_json_is_what_the_function_returns(run, path):
    _, out, _ = run("advise", path / "temp", "--json", "--place", "object")
    assert json.loads(out) == omnizarr.advise(path, path="temp", place="object").to_dict()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give PATH, or --shape and --dtype"),
        (["--shape", "3,4"], "go together"),
        (["--shape", "3,x", "--dtype", "u1"], "typed as in"),
        (["--shape", "3,4", "--dtype", "u1", "--read", "1"], "1 lengths"),
        (["--shape", "3,4", "--dtype", "string"], "no fixed size"),
    ],
)
def test_usage_errors(run, arguments, message):
    code, out, err = run("advise", *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_unknown_type_and_group_are_reported(run, path):
    code, _, err = run("advise", "--shape", "3", "--dtype", "flaot")
    assert code in (1, 2)
    assert "flaot" in err
    code, _, err = run("advise", path)
    assert code == 1
    assert "omnizarr ls -r" in err
