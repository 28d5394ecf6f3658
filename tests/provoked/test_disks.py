"""Errors of disks: full, read-only, without permission, with a limit; each in a process of its own."""

import contextlib
import os
import shutil
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mounts and limits of Linux")

MAKE = "omnizarr.create_array({place!r}, data=np.arange(4000.0), chunks=(1000,), compressors=None)"
ROOT = os.name == "posix" and os.geteuid() == 0


def said(code, *, unprivileged=False):
    """Return the class and the message of what some code raises, and what it writes to stderr."""
    code = textwrap.indent(textwrap.dedent(code).strip(), "    ")
    program = f"""
import numpy as np, omnizarr, omnizarr.stores
try:
{code}
except Exception as error:
    print(*[kind.__name__ for kind in type(error).__mro__], sep=" ")
    print(error)
"""
    # Root reads and writes everything, unless it lacks these capabilities.
    drop = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] if unprivileged and ROOT else []
    if drop and shutil.which("setpriv") is None:
        pytest.skip("root may do everything, and there is no setpriv")
    done = subprocess.run([*drop, sys.executable, "-c", program], capture_output=True, text=True, check=False)
    kinds, _, message = done.stdout.partition("\n")
    return kinds.split(), message.strip(), done.stderr


@contextlib.contextmanager
def small_disk(folder):
    """Mount a disk of 64 KiB, if this process may."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if (
        not ROOT
        or shutil.which("mount") is None
        or subprocess.run(command, capture_output=True, check=False).returncode
    ):
        pytest.skip("only root mounts disks")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


LARGE = "omnizarr.create_array({place}, data=np.random.default_rng(1).random(90000), chunks=(9000,), compressors=None)"
FULL = ("No space left on device", "make room on the disk, or choose another one")


@pytest.mark.parametrize(
    "place",
    ["'{at}/x.zarr'", "omnizarr.stores.SQLiteStore('{at}/x.sqlite')", "omnizarr.stores.LMDBStore('{at}/x.lmdb')"],
)
def test_full_disk(tmp_path, place):
    if "LMDB" in place:
        pytest.importorskip("lmdb", reason="lmdb is not installed")
    with small_disk(tmp_path / "disk") as disk:
        kinds, message, stderr = said(LARGE.format(place=place.format(at=disk)))
    assert "OSError" in kinds
    assert kinds[0] == "StoreError"
    for words in (*FULL, str(disk), "key '"):
        assert words in message
    assert stderr == ""


def test_archive_on_a_full_disk_ends_with_one_warning(tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        store = f"store = omnizarr.stores.ZipStore('{disk}/x.zip', mode='w')"
        kinds, message, stderr = said(f"{store}\n{LARGE.format(place='store')}")
    assert "OSError" in kinds
    for words in (*FULL, f"{disk}/x.zip"):
        assert words in message
    assert stderr.count("RuntimeWarning") == 1
    assert "Exception ignored" not in stderr
    assert "Traceback" not in stderr


@pytest.mark.parametrize(
    "change",
    [
        "omnizarr.open_array('{at}/x.zarr')[0] = 1",
        "omnizarr.open_array('{at}/x.zarr').attrs['a'] = 1",
        "omnizarr.create_group('{at}/y.zarr')",
        "omnizarr.delete_node('{at}/x.zarr')",
    ],
)
def test_read_only_disk(tmp_path, change):
    with small_disk(tmp_path / "disk") as disk:
        assert said(MAKE.format(place=f"{disk}/x.zarr")) == ([], "", "")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        kinds, message, stderr = said(change.format(at=disk))
    assert "OSError" in kinds
    for words in ("Read-only file system", "mount the file system for writing, or choose another place", str(disk)):
        assert words in message
    assert "locked" not in message
    assert stderr == ""


DENIED = ("Permission denied", "change the permissions of the directory")


@pytest.mark.parametrize(
    ("forbidden", "change"),
    [
        ("x.zarr/c/0", "omnizarr.open_array('{at}/x.zarr')[:]"),
        ("x.zarr/zarr.json", "omnizarr.open_array('{at}/x.zarr')"),
        ("x.zarr", "omnizarr.open_array('{at}/x.zarr')"),
    ],
)
def test_what_may_not_be_read(tmp_path, forbidden, change):
    assert said(MAKE.format(place=f"{tmp_path}/x.zarr")) == ([], "", "")
    (tmp_path / forbidden).chmod(0)
    try:
        kinds, message, stderr = said(change.format(at=tmp_path), unprivileged=True)
    finally:
        (tmp_path / forbidden).chmod(0o700)
    assert "PermissionError" in kinds
    for words in (*DENIED, str(tmp_path), "key '"):
        assert words in message
    assert stderr == ""


@pytest.mark.parametrize(
    ("forbidden", "change"),
    [
        ("x.zarr/c", "omnizarr.open_array('{at}/x.zarr')[0] = 1"),
        ("x.zarr", "omnizarr.open_array('{at}/x.zarr').attrs['a'] = 1"),
        ("d", "omnizarr.create_group('{at}/d/y.zarr')"),
        ("d", "omnizarr.create_group(omnizarr.stores.SQLiteStore('{at}/d/y.sqlite'))"),
        ("d", "omnizarr.stores.ZipStore('{at}/d/y.zip', mode='w').set('a', b'')"),
    ],
)
def test_where_nothing_may_be_written(tmp_path, forbidden, change):
    assert said(MAKE.format(place=f"{tmp_path}/x.zarr")) == ([], "", "")
    (tmp_path / "d").mkdir()
    (tmp_path / forbidden).chmod(0o500)
    try:
        kinds, message, _ = said(change.format(at=tmp_path), unprivileged=True)
    finally:
        (tmp_path / forbidden).chmod(0o700)
    assert "PermissionError" in kinds
    for words in (*DENIED, str(tmp_path)):
        assert words in message
    assert "locked" not in message


def test_limit_of_the_size_of_files(tmp_path):
    code = f"""
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
        {MAKE.format(place=f"{tmp_path}/x.zarr")}
    """
    kinds, message, _ = said(code)
    assert "OSError" in kinds
    for words in ("File too large", "choose smaller chunks", "ulimit -f", str(tmp_path), "key 'c/0'"):
        assert words in message


OPEN_FILES = ("Too many open files", "raise the limit of open files (ulimit -n)")


@pytest.mark.parametrize(
    "change",
    [
        "omnizarr.open_array('{at}/x.zarr')",
        "array[:]",
        "array[:] = 1",
        "array.attrs['a'] = 1",
        "omnizarr.create_group('{at}/y.zarr')",
        "list(omnizarr.open_group('{at}').keys())",
        "omnizarr.delete_node('{at}/x.zarr')",
        "omnizarr.stores.ZipStore('{at}/y.zip', mode='w').set('a', b'1')",
        "omnizarr.stores.SQLiteStore('{at}/y.sqlite').set('a', b'1')",
        "omnizarr.stores.LMDBStore('{at}/y.lmdb').set('a', b'1')",
    ],
)
def test_too_many_open_files(tmp_path, change):
    if "LMDB" in change:
        pytest.importorskip("lmdb", reason="lmdb is not installed")
    code = f"""
        {MAKE.format(place=f"{tmp_path}/x.zarr")}
        array = omnizarr.open_array('{tmp_path}/x.zarr', 'r+')
        import os, resource, warnings
        with omnizarr.stores.ZipStore('{tmp_path}/a.zip', mode='w') as store:
            store.set('a', b'1')
        for store in (omnizarr.stores.SQLiteStore('{tmp_path}/a.sqlite'), omnizarr.stores.MemoryStore()):
            omnizarr.delete_node(omnizarr.create_group(store))
        try:  # modules that are imported at first use need files, too
            omnizarr.open('{tmp_path}/nothing')
        except OSError as error:
            str(error)
        {"omnizarr.stores.LMDBStore(" + repr(f"{tmp_path}/a.lmdb") + ").set('a', b'1')" if "LMDB" in change else ""}
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        held = []
        try:
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            pass
        {change.format(at=tmp_path)}
    """
    kinds, message, _ = said(code)
    assert "OSError" in kinds
    assert kinds[0] == "StoreError"
    for words in (*OPEN_FILES, str(tmp_path)):
        assert words in message


def test_quota_that_is_exhausted(tmp_path):
    """No file system with quotas can be mounted everywhere: what the system answers is made up, in Python's calls."""
    code = f"""
        import errno, os
        from omnizarr.stores.local import folders
        folders.native = lambda: None
        {MAKE.format(place=f"{tmp_path}/x.zarr")}
        def refuse(*_):
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
        os.write = refuse
        omnizarr.stores.LocalStore('{tmp_path}/x.zarr').set('c/0', b'1')
    """
    kinds, message, _ = said(code)
    assert kinds[0] == "StoreError"
    for words in ("quota exceeded", "delete files of yours, or have your quota raised", str(tmp_path), "key 'c/0'"):
        assert words.lower() in message.lower()
