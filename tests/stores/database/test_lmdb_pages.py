"""Damaged LMDB files are refused before LMDB, which would end the process, uses them."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from omnizarr.errors import StoreError
from omnizarr.stores import LMDBStore, verbs
from tests.repeats import runs

pytest.importorskip("lmdb", reason="lmdb is not installed")

DATA = Path(__file__).parents[1] / "data" / "zarr2.lmdb"
RUNS = runs(3)
VISIT = """
import sys, resource
from pathlib import Path
from omnizarr.errors import OmnizarrError
from omnizarr.stores import LMDBStore, verbs

resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
refused = 0
for path in sorted(Path(sys.argv[1]).iterdir()):
    try:
        with LMDBStore(path, read_only=True) as store:
            keys = list(store.list())
            [store.get(key) for key in keys], store.list_dir("")
        with LMDBStore(path) as store:
            verbs.set_many(store, {f"new/{number}": bytes(5000) for number in range(20)}.items())
            verbs.delete_prefix(store, "new")
    except OmnizarrError:
        refused += 1
print(refused)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="pages are not checked on Windows, where LMDB has another layout")
def test_process_survives_random_changes(tmp_path):
    rng = random.Random(4)
    for number in range(20 * RUNS):
        data = bytearray((DATA / "data.mdb").read_bytes())
        for _ in range(rng.choice([1, 2, 4, 16, 64])):
            data[rng.randrange(len(data))] = rng.choice([0, 255, rng.randrange(256)])
        if not rng.randrange(5):
            del data[rng.randrange(len(data)) :]
        (tmp_path / f"{number}.lmdb").mkdir()
        (tmp_path / f"{number}.lmdb" / "data.mdb").write_bytes(data)
    done = subprocess.run([sys.executable, "-c", VISIT, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0


@pytest.mark.parametrize("size", [100, 4096 + 100, 2 * 4096 + 100])
def test_file_with_pages_missing_is_refused(tmp_path, size):
    shutil.copytree(DATA, tmp_path / "x.lmdb")
    os.truncate(tmp_path / "x.lmdb" / "data.mdb", size)
    with LMDBStore(tmp_path / "x.lmdb", read_only=True) as store, pytest.raises(StoreError):
        list(store.list())


@pytest.mark.parametrize("writes", [False, True])
def test_large_database_is_accepted(tmp_path, writes):
    """It has several levels of branches, values with pages of their own, and free pages."""
    values = {f"a/{number}": bytes(number % 9000) for number in range(5000)}
    with LMDBStore(tmp_path / "x.lmdb") as store:
        verbs.set_many(store, values.items())
        verbs.delete_prefix(store, "a")
        verbs.set_many(store, values.items())
    with LMDBStore(tmp_path / "x.lmdb", read_only=not writes) as store:
        if writes:
            store.set("b", b"")
        assert {key: bytes(store.get(key)) for key in store.list_prefix("a")} == values
