"""The runner tells what implementations do apart, survives all of it, and reports it in each format."""

import json
import sys
import textwrap
import urllib.error
import urllib.request
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from zarr_conformance import reports
from zarr_conformance.case import Nodes, chosen
from zarr_conformance.cases import all_cases, v3
from zarr_conformance.cli import main
from zarr_conformance.process import Answer, Implementation, Limits
from zarr_conformance.running import Run, differing, judged, run
from zarr_conformance.serving import Server

BEHAVIOURS = """
    import json, os, sys, time
    from pathlib import Path
    sys.path.insert(0, {contract!r})
    import numpy as np
    from contract import UnsupportedError, serve

    def read(path, selection):
        document = json.loads(Path(path, "zarr.json" if Path(path, "zarr.json").exists() else ".zarray").read_bytes())
        name = document.get("codecs", [{{}}])[-1].get("name", "")
        fill = document.get("fill_value")
        kind = document.get("data_type")
        if kind == "int8":
            os._exit(7)
        if kind == "int16":
            os.kill(os.getpid(), 11)
        if kind == "uint8":
            time.sleep(60)
        if kind == "uint16":
            block = bytearray(700 << 20)
            block[::4096] = b"x" * len(block[::4096])
            time.sleep(60)
        if kind == "float32":
            raise UnsupportedError("no floats")
        if kind == "uint32":
            raise ValueError("no such thing")
        if kind == "int64":
            print("a library prints this")
        parts = [p for p in sorted(Path(path).rglob("*")) if p.is_file() and p.suffix != ".json" and p.name[0] != "."]
        flat = np.frombuffer(b"".join(part.read_bytes() for part in parts), "<i4")
        return flat

    serve("fake", "1", read=read)
"""


@pytest.fixture
def fake(tmp_path):
    from zarr_conformance.cli import ADAPTERS

    path = tmp_path / "fake.py"
    path.write_text(textwrap.dedent(BEHAVIOURS.format(contract=str(ADAPTERS))))
    return [sys.executable, str(path)]


TYPES = [case for case in v3.types() if case.name.endswith("-little")]
LIMITS = Limits(seconds=10, memory=500 << 20)


@pytest.mark.parametrize("batch", [True, False])
def test_what_implementations_do_is_told_apart(fake, batch):
    done = run(TYPES, Implementation(fake, LIMITS, batch=batch))
    found = {each.id.removeprefix("v3-types/").removesuffix("-little"): each.outcome for each in done.results}
    assert found["int8"] == "crashed" if batch else found["int8"] == "refused"
    assert {name: found[name] for name in ("int16", "uint8", "uint16", "float32", "uint32")} == {
        "int16": "crashed",
        "uint8": "timeout",
        "uint16": "memory",
        "float32": "unsupported",
        "uint32": "refused",
    }
    assert found["float64"] == "wrong"  # the next case after a crash is asked of a new process
    assert found["int64"] == "wrong"  # what a library prints is no answer


def test_a_wrong_command_is_an_error_before_any_case():
    with pytest.raises(SystemExit, match="Is the command right"):
        run(TYPES, Implementation([sys.executable, "-c", "raise SystemExit(1)"], LIMITS))


def test_names_of_levels_are_checked(capsys):
    with pytest.raises(SystemExit, match="no such level: v4"):
        main(["list", "--levels", "v4"])
    assert main(["list"]) == 0
    assert "v3-sharding" in capsys.readouterr().out
    assert {case.level for case in chosen(all_cases(), ["v3"])} >= {"v3-core", "v3-sharding"}
    assert {case.level for case in chosen(all_cases(), ["v3-core"])} == {"v3-core"}


@pytest.fixture
def runs(fake):
    cases = [case for case in TYPES if "int64" not in case.name]
    one = run(cases, Implementation(fake, Limits(seconds=4, memory=500 << 20)))
    return one, Run(one.implementation, "2", tuple(each for each in one.results if each.outcome != "crashed"))


def test_reports_hold_every_result(runs, tmp_path, capsys):
    one, other = runs
    suites = ET.fromstring(reports.junit([one]))
    assert sum(int(each.get("tests")) for each in suites) == len(one.results) == len(suites.findall(".//testcase"))
    assert len(suites.findall(".//error")) == sum(
        each.outcome in {"crashed", "timeout", "memory"} for each in one.results
    )
    lines = reports.tap([one]).splitlines()
    assert lines[1] == f"1..{len(one.results)}"
    assert sum(line.startswith(("ok ", "not ok ")) for line in lines) == len(one.results)
    assert "| `v3-types` |" in reports.markdown([one, other])
    assert "<table>" in reports.page([one, other])
    paths = [tmp_path / "one.json", tmp_path / "other.json"]
    for path, each in zip(paths, runs, strict=True):
        path.write_text(json.dumps(each.as_json()))
        assert Run.read(path) == each
    assert len(differing(one, other)) == one.count("crashed") > 0
    assert main(["compare", *map(str, paths)]) == 1
    assert "not run" in capsys.readouterr().out


def test_allowed_failures_must_fail(fake, tmp_path, capsys):
    allow = tmp_path / "allow.txt"
    command = ["run", "--levels", "v3-types", "-k", "float64-little", "--impl", " ".join(fake), "--allow", str(allow)]
    allow.write_text("v3-types/float64-little # a remark\n")
    assert main(command) == 0
    allow.write_text("")
    assert main(command) == 1
    allow.write_text("v3-types/float64-big\n")
    assert main(command) == 1
    assert "not listed" in capsys.readouterr().out


def test_refusals_by_those_who_do_not_know_the_feature_count_as_unsupported():
    by_id = {case.id: case for case in all_cases()}
    shape, codec = by_id["refuse-v3-documents/shape-negative"], by_id["refuse-v3-documents/codec-unknown"]
    where = Path()
    assert judged(shape, Answer("unsupported"), where)[0] == "unsupported"
    assert judged(shape, Answer("refused"), where)[0] == "pass"
    assert judged(shape, Answer("ok"), where)[0] == "wrong"
    assert judged(codec, Answer("unsupported"), where)[0] == "pass"
    assert judged(codec, Answer("crashed"), where)[0] == "crashed"
    bomb = by_id["survive/bomb-gzip"]
    assert [judged(bomb, Answer(state), where)[0] for state in ("ok", "refused", "memory")] == [
        "pass",
        "pass",
        "memory",
    ]


def asked(url, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            return answer.status, answer.read(), answer.headers["Content-Range"]
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(), error.headers["Content-Range"]


def test_the_server_gives_values_and_ranges_and_what_the_case_says_in_place_of_them():
    case = next(case for case in all_cases() if case.id == "http/chunk-403")
    chunk = case.files["c/0/1"]
    with Server() as server:
        url = server.publish(case, Path())
        assert asked(f"{url}/c/0/1") == (200, chunk, None)
        assert asked(f"{url}/c/0/1", Range="bytes=4-7") == (206, chunk[4:8], f"bytes 4-7/{len(chunk)}")
        assert asked(f"{url}/c/0/1", Range="bytes=-4") == (
            206,
            chunk[-4:],
            f"bytes {len(chunk) - 4}-{len(chunk) - 1}/{len(chunk)}",
        )
        assert asked(f"{url}/c/0/1", Range="bytes=9999-")[0] == 416
        assert asked(f"{url}/c/0/0")[:2] == (403, b"")
        assert asked(f"{url}/c/9/9")[0] == 404
        assert asked(f"{url}/c/")[0] == 404


def test_a_list_of_nodes_is_compared_in_what_it_says():
    expects = Nodes(({"path": "a", "node_type": "array", "shape": [2]}, {"path": "b", "node_type": "group"}))
    assert expects.differences(b'[{"path": "/a"}, {"path": "b/", "node_type": "group"}]') is None
    assert "not listed" in expects.differences(b'[{"path": "a"}]')
    assert "shape" in expects.differences(b'[{"path": "a", "shape": [3]}, {"path": "b"}]')
    assert "listed, though" in expects.differences(b'[{"path": "a"}, {"path": "b"}, {"path": "c"}]')
    assert "not a list" in expects.differences(b"nonsense")


def test_write_puts_stores_and_expected_bytes_into_a_directory(tmp_path):
    assert main(["write", str(tmp_path), "--levels", "v3-keys"]) == 0
    place = tmp_path / "v3-keys" / "v2-slash-5"
    description = json.loads((place / "description.json").read_text("utf-8"))
    assert description["expect"] == "values"
    assert (place / "expected.bin").stat().st_size == 20
    assert (place / "store" / "zarr.json").is_file()
