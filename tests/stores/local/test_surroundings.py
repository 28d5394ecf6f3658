"""What lies in directories around a store is remembered, as long as these stay the same."""

import os
import time
from pathlib import Path

import pytest

from omnizarr.stores.local import files, folders, surroundings
from omnizarr.stores.local.surroundings import files_in

NAMES = ("zarr.json", ".zgroup")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A directory that has not changed for long, as far as the clock says."""
    now = time.time_ns() + 10**10
    monkeypatch.setattr(time, "time_ns", lambda: now)
    return tmp_path


def asked(monkeypatch):
    """Count how often the files of a directory are looked for, without the native core."""
    found = []
    monkeypatch.setattr(folders, "native", lambda: None)
    monkeypatch.setattr(surroundings.os.path, "isfile", lambda path: found.append(path) or Path(path).exists())
    return found


def test_a_directory_that_stays_the_same_is_asked_once(folder, monkeypatch):
    (folder / "zarr.json").write_bytes(b"")
    looks = asked(monkeypatch)
    assert [files_in(str(folder), NAMES) for _ in range(3)] == [{"zarr.json"}] * 3
    assert len(looks) == len(NAMES)


def test_a_new_and_a_removed_file_are_seen_at_once(folder):
    assert files_in(str(folder), NAMES) == set()
    (folder / ".zgroup").write_bytes(b"")
    assert files_in(str(folder), NAMES) == {".zgroup"}
    (folder / ".zgroup").unlink()
    assert files_in(str(folder), NAMES) == set()


def test_a_directory_that_has_just_changed_is_asked_again(tmp_path, monkeypatch):
    looks = asked(monkeypatch)
    now = time.time_ns()
    os.utime(tmp_path, ns=(now, now))
    monkeypatch.setattr(time, "time_ns", lambda: now)
    files_in(str(tmp_path), NAMES)
    files_in(str(tmp_path), NAMES)
    assert len(looks) == 2 * len(NAMES)


def test_nothing_is_remembered_for_long(folder, monkeypatch):
    looks = asked(monkeypatch)
    start = time.monotonic()
    for later in (0, 2):
        monkeypatch.setattr(time, "monotonic", lambda later=later: start + later)
        files_in(str(folder), NAMES)
    assert len(looks) == 2 * len(NAMES)


def test_what_is_no_directory_has_no_files(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    assert files_in(str(tmp_path / "file"), NAMES) is None
    assert files_in(str(tmp_path / "none"), NAMES) is None
    (tmp_path / "zarr.json").mkdir()
    assert files_in(str(tmp_path), NAMES) == set()


@pytest.mark.skipif(files.WINDOWS, reason="links need rights there")
def test_links_to_files_count_as_files(folder):
    (folder / "there").write_bytes(b"")
    (folder / "zarr.json").symlink_to("there")
    (folder / ".zgroup").symlink_to("none")
    assert files_in(str(folder), NAMES) == {"zarr.json"}
