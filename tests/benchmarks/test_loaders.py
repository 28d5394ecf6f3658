"""The benchmark of loaders: what it stores, loads and prints; figures are not looked at."""

import importlib.util
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import delayed, loaders
from benchmarks.loaders import DATA, PEERS, TRIAL, Row

if importlib.util.find_spec("obstore") is None:
    pytest.skip("obstore is not installed", allow_module_level=True)

TINY = replace(TRIAL, rows=128, windows=3, slow=70)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    with delayed.started(tmp_path_factory.mktemp("loaders"), 0.001, notes=True) as servers:
        loaders.make(servers.files, TINY)
        yield servers


def request(place, peer, name, where):
    places = [
        str(place.files / each) if where == "disk" else f"{place.url}/{each}/" for each in (name, f"trial-{name}")
    ]
    kind = DATA[name].kind
    return {
        "peer": peer, "kind": kind, "size": vars(TINY), "place": places[0], "trial": places[1],
        "values": str(place.files / f"{kind}.npy"),
    }  # fmt: skip


@pytest.mark.parametrize("where", loaders.PLACES)
@pytest.mark.parametrize("name", DATA)
def test_libraries_load_each_sample(place, name, where):
    for peer in ("omnizarr", "in-order", "tensorstore", "h5py"):
        if where not in PEERS[peer].places or importlib.util.find_spec(PEERS[peer].package) is None:
            continue
        if peer == "h5py" and DATA[name].shards is not None:
            continue
        found = loaders.work(request(place, peer, name, where))
        assert "reason" not in found, (peer, found)
        assert found["count"] == (128 if DATA[name].kind == "rows" else 3)


def test_wrong_values_are_noticed(place, tmp_path):
    np.save(tmp_path / "rows.npy", loaders.values_of("rows", TINY) + 1)
    wanted = {**request(place, "omnizarr", "rows", "disk"), "values": str(tmp_path / "rows.npy")}
    assert loaders.work(wanted) == {"reason": "wrong values"}


def test_requests_are_counted(place):
    before = place.requests()
    assert "reason" not in loaders.work(request(place, "omnizarr", "rows", "HTTP"))
    assert before is None or place.requests() > before


def test_rows_say_by_how_much_a_target_was_missed():
    def of(seconds):
        return [{"seconds": seconds, "processor": seconds, "version": "1", "nbytes": 2**20, "reads": 7, "requests": 3}]

    row = Row("rows", "HTTP", {"omnizarr": of(1.0), "tensorstore": of(1.5), "in-order": of(0.9)})
    assert row.verdict() == "2 × TensorStore (missed: 1.50 ×); 0.8 × in order"
    about = dict.fromkeys(("date", "processor", "file system", "python", "load"), "-")
    text = loaders.markdown([row], about, TINY)
    assert "| 1 s (1 s) | 900 ms (900 ms), 0.9 × | 1.5 s (1.5 s), 1.5 × |" in text
    assert "| HTTP: rows of 2 KiB, chunks of 64 rows | 7 |" in text
