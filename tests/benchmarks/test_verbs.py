"""The benchmark of diff, digest and stat measures in processes of their own, and looks at the answers."""

import sys

import pytest

from benchmarks import verbs

OURS = [(job, name) for job, tools in verbs.JOBS.items() for name, tool in tools.items() if tool.is_ours]


@pytest.mark.parametrize(("job", "name"), OURS)
def test_tool_is_measured(tmp_path, job, name):
    if "blake3" in name:
        pytest.importorskip("blake3", reason="the package of that name is optional")
    found = verbs.measure(verbs.JOBS[job][name], sys.executable, verbs.make(tmp_path, 4))
    assert found["seconds"] > 0
    assert found["peak"] > 2**20


def test_tool_that_fails_or_finds_something_else_is_reported(tmp_path):
    places = verbs.make(tmp_path, 4)
    (places[1] / "0.0.0").write_bytes(b"other")
    assert (
        verbs.measure(verbs.JOBS["equal, a copy of the files"]["diff -r"], sys.executable, places) == "a wrong answer"
    )
    assert verbs.measure(verbs.Tool("raise ValueError('no such thing')"), sys.executable, places) == (
        "ValueError: no such thing"
    )
