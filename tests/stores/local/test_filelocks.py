"""Lock files of several users: who may write to a directory is not kept out by what another one left there."""

import ctypes
import json
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import omnizarr
from tests.engine.both import ENGINES

needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be two users in one test"
)
NOBODY = 65534

SCRIPT = """
import os, sys
import omnizarr
omnizarr.config.set({{"engine": sys.argv[2]}})

def work(array):
    {do}

work(omnizarr.open_array(sys.argv[3], mode="r+"))  # as root: so all is imported that the other user may not read
os.setgroups([])
os.setgid({user})
os.setuid({user})
os.umask(0o077)
try:
    work(omnizarr.open_array(sys.argv[1], mode="r+"))
except Exception as error:
    print(type(error).__name__, error)
"""


def as_nobody(path, do, engine):
    other = path.parent / "other.zarr"
    omnizarr.create_array(other, data=[1, 2, 3, 4], chunks=(2,), overwrite=True)
    command = [sys.executable, "-c", SCRIPT.format(user=NOBODY, do=do), str(path), engine, str(other)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


@pytest.fixture
def path():
    """Yield an array that two users may write, in a place that both reach."""
    with tempfile.TemporaryDirectory() as folder:  # that of pytest is closed to others
        Path(folder).chmod(0o755)
        yield _array_for_all(Path(folder) / "a.zarr")


def _array_for_all(path):
    omnizarr.create_array(path, data=[1, 2, 3, 4], chunks=(2,))
    for found in [path, *path.rglob("*")]:
        found.chmod(0o777 if found.is_dir() else 0o666)
    return path


@needs_root
@pytest.mark.parametrize(("key", "name"), [("c/0", "c/.omnizarr-0.lock"), ("zarr.json", ".omnizarr-zarr.json.lock")])
def test_lock_file_can_be_opened_by_all_who_may_write_beside_it(path, key, name):
    do = (
        f"with array.store.lock({key!r}): print(oct(os.stat(os.path.join(array.store.root, {name!r})).st_mode & 0o777))"
    )
    assert as_nobody(path, do, "reference") == "0o644\n0o666"  # of root, with another umask; of the other user


@needs_root
def test_lock_file_of_the_native_engine_can_be_opened_by_all_who_may_write_beside_it(path):
    # While it holds one, a thread of the same process looks at it.
    do = """
    import glob, threading
    seen, done = set(), threading.Event()
    def watch():
        while not done.is_set():
            for file in glob.glob(array.store.root + "/c/.*.lock"):
                try:
                    seen.add(os.stat(file).st_mode & 0o777)
                except FileNotFoundError:
                    pass
    watcher = threading.Thread(target=watch)
    watcher.start()
    while not seen & {0o666, 0o644}:
        array[1] = 7
    done.set()
    watcher.join()
    print(*map(oct, seen & {0o666, 0o644}))
    """
    assert as_nobody(path, do.strip(), "native") == "0o644\n0o666"


@needs_root
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("name", "do"),
    [(".omnizarr-zarr.json.lock", "array.attrs.update({'a': 1})"), ("c/.omnizarr-0.lock", "array[1] = 7")],
)
def test_error_names_the_lock_file_that_is_in_the_way(path, name, do, engine):
    file = path / name
    file.touch()
    file.chmod(0o600)
    said = as_nobody(path, do, engine)
    assert said.startswith("StoreAccessError")
    assert str(file) in said
    assert "remove it, if no program of user root is writing" in said
    file.unlink()
    assert not as_nobody(path, do, engine)


def test_directory_that_is_private_keeps_its_lock_files_private(tmp_path):
    store = omnizarr.storage.LocalStore(tmp_path)
    tmp_path.chmod(0o700)
    before = os.umask(0o077)
    try:
        with store.lock("k"):
            assert stat.S_IMODE((tmp_path / ".omnizarr-k.lock").stat().st_mode) == 0o600
    finally:
        os.umask(before)


# -- a kernel that denies what `os.access` allows --------------------------------------

VERBS = {
    "part of a chunk": "array[1] = 7",
    "several chunks": "array[1:4] = 7",
    "whole chunks": "array[:] = 7",
    "attributes": "array.attrs['a'] = 1",
    "resize": "array.resize((3,))",
    "append": "array.append([5, 6])",
    "lock": "array.store.lock('c/0').__enter__()",
    "new lock": "array.store.lock('new/0').__enter__()",
    "set": "array.store.set('c/0', b'1')",
    "part of a value": "verbs.set_partial(array.store, 'c/0', 0, b'1')",
    "new value": "verbs.set_if_absent(array.store, 'c/7', b'1')",
    "create": "omnizarr.create_group(path + '.new')",
}

DENIED = """
import ctypes, json, os, sys
import omnizarr
from omnizarr.stores import verbs
tasks = json.loads(sys.argv[5])

def sandbox():  # Landlock: this program may create no files
    libc = ctypes.CDLL(None)
    ruleset = libc.syscall(444, ctypes.byref(ctypes.c_uint64(1 << 8 | 1 << 7)), 8, 0)
    assert ruleset >= 0 and not libc.prctl(38, 1, 0, 0, 0) and not libc.syscall(446, ruleset, 0)

def user():  # with the rights of another user; `os.access` asks for the real one
    os.seteuid(65534)

def outcome(verb, path):
    try:
        exec(verb, {"array": omnizarr.open_array(path, mode="r+"), "omnizarr": omnizarr, "path": path, "verbs": verbs})
    except Exception as error:
        return isinstance(error, PermissionError), str(error)
    return "done"

for engine in ("reference", sys.argv[2]):
    omnizarr.config.set({"engine": engine, "concurrency": 2})
    for verb in tasks.values():  # what is imported now need not be found later
        omnizarr.create_array(sys.argv[4], data=[1, 2, 3, 4], chunks=(2,), overwrite=True)
        outcome(verb, sys.argv[4])
{"user": user, "sandbox": sandbox}[sys.argv[3]]()
assert os.access(sys.argv[1], os.W_OK)
print(json.dumps({name: outcome(verb, sys.argv[1]) for name, verb in tasks.items()}))
"""


def has_landlock():
    return sys.platform == "linux" and ctypes.CDLL(None).syscall(444, None, 0, 1) > 0


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "way",
    [
        pytest.param("user", marks=needs_root),
        pytest.param("sandbox", marks=pytest.mark.skipif(not has_landlock(), reason="the kernel has no Landlock")),
    ],
)
def test_kernel_that_denies_creating_files_is_a_permission_error_of_each_verb(way, engine):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = f"{folder}/a.zarr"
        omnizarr.create_array(path, data=[1, 2, 3, 4], chunks=(2,))
        command = [sys.executable, "-c", DENIED, path, engine, way, f"{folder}/other.zarr", json.dumps(VERBS)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        found = json.loads(done.stdout)
        assert {name for name, outcome in found.items() if outcome[0] is not True} == set()
        assert {name for name, (_, said) in found.items() if path not in said or "sandbox" not in said} == set()
        assert omnizarr.open_array(path)[:].tolist() == [1, 2, 3, 4]
        assert dict(omnizarr.open_array(path).attrs) == {}
