"""Hierarchies that somebody made odd: links in circles, great depth, copies and entries whose names lead elsewhere."""

import json
import os
import signal
import sys
import zipfile
from contextlib import contextmanager

import numpy as np
import pytest

import omnizarr
from omnizarr import netcdf
from omnizarr.cli import main
from omnizarr.stores import MemoryStore, ReferenceStore, ZipStore
from omnizarr.stores.local import directory as local_stores

posix = pytest.mark.skipif(sys.platform == "win32", reason="symbolic links and alarms as POSIX has them")
ODD = ("..", ".", "", "/abs", "a/../b", "a//b", "../../x", "a\\b", "a\0b", "\ud800")
GROUP = {"zarr_format": 3, "node_type": "group", "attributes": {}}


@contextmanager
def limit_of_time(seconds=20):
    """Raise TimeoutError in what never ends."""

    def stop(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def paths(root):
    return [path for path, _ in root.members(max_depth=None)]


# Links


@pytest.fixture(params=[2, 3])
def circles(request, tmp_path):
    """`/g/x` is an array, `/h` a group; links in `g` lead to `g`, to the root and to `h`, one in `h` to `g`."""
    root = omnizarr.create_group(tmp_path / "r", zarr_format=request.param)
    root.create_array("g/x", data=np.arange(3))
    root.create_group("h")
    for name in ("a", "b", "d"):
        (tmp_path / "r" / "g" / name).symlink_to(".")
    (tmp_path / "r" / "g" / "up").symlink_to("..")
    (tmp_path / "r" / "g" / "over").symlink_to("../h")
    (tmp_path / "r" / "h" / "back").symlink_to("../g")
    return tmp_path / "r"


EXPECTED = ["g", "g/over", "g/x", "h", "h/back", "h/back/x"]


@posix
class TestCircles:
    def test_links_to_a_directory_above_are_no_members(self, circles):
        with limit_of_time():
            assert paths(omnizarr.open_group(circles, mode="r")) == EXPECTED

    def test_nor_are_they_keys(self, circles):
        with limit_of_time():
            keys = list(omnizarr.open_group(circles, mode="r").store.list())
        assert len(keys) == len(set(keys))
        assert not any(part in {"a", "b", "d", "up"} for key in keys for part in key.split("/"))
        assert any(key.startswith("h/back/x/") for key in keys)

    def test_link_to_another_directory_is_followed(self, circles):
        assert omnizarr.open_array(circles, path="h/back/x", mode="r")[...].tolist() == [0, 1, 2]

    @pytest.mark.parametrize(("command", "times"), [("tree", 1), ("ls -r", 2), ("info", 1), ("check", 0)])
    def test_commands_come_to_an_end(self, circles, command, times, capsys):
        with limit_of_time():
            code = main([*command.split(), str(circles)])
        captured = capsys.readouterr()
        assert (code, captured.err) == (0, "")
        assert captured.out.count("back") == times

    def test_conversion_and_consolidation_come_to_an_end(self, circles, tmp_path):
        with limit_of_time():
            omnizarr.convert(circles, tmp_path / "converted", zarr_format=3)
            omnizarr.consolidate_metadata(circles)
            omnizarr.copy_all(
                omnizarr.open_group(circles, mode="r"), omnizarr.create_group(tmp_path / "copied", zarr_format=3)
            )
        for path in (tmp_path / "converted", circles, tmp_path / "copied"):
            assert paths(omnizarr.open_group(path, mode="r")) == EXPECTED

    def test_netcdf_dataset_opens(self, circles):
        with limit_of_time(), netcdf.Dataset(circles) as dataset:
            assert list(dataset.groups) == ["g", "h"]


# Depth


@pytest.mark.parametrize("depth", [60, 240])
def test_each_directory_of_a_deep_hierarchy_is_looked_at_a_few_times(tmp_path, monkeypatch, depth):
    place = tmp_path
    for _ in range(depth):
        (place / "zarr.json").write_text(json.dumps(GROUP))
        place /= "a"
        place.mkdir()
    looks = []
    look = os.lstat
    monkeypatch.setattr(local_stores.os, "lstat", lambda *given, **more: looks.append(given) or look(*given, **more))
    root = omnizarr.open_group(tmp_path, mode="r")
    assert len(paths(root)) == depth - 1
    assert len(looks) <= 3 * depth


# Names that lead elsewhere


def copies_in(zarr_format, names):
    """Return the documents of a hierarchy with consolidated metadata, in which nodes are called so, and one `good`."""
    if zarr_format == 3:
        nodes = dict.fromkeys([*names, "good"], GROUP)
        inline = {"kind": "inline", "must_understand": False, "metadata": nodes}
        own = {"zarr.json": json.dumps({**GROUP, "consolidated_metadata": inline})}
        return {**own, "good/zarr.json": json.dumps(GROUP)}
    if zarr_format == 2:
        group = {"zarr_format": 2}
        nodes = {f"{name}/.zgroup": group for name in [*names, "good"]}
        copies = {"zarr_consolidated_format": 1, "metadata": {".zgroup": group, **nodes}}
        own = {".zgroup": json.dumps(group), "good/.zgroup": json.dumps(group)}
        return {**own, ".zmetadata": json.dumps(copies)}
    store = MemoryStore()
    omnizarr.create_group(store, zarr_format="3-draft2020").create_group("good")
    documents = {key: bytes(store.get(key)).decode() for key in store.list()}
    document = json.loads(documents["meta/root/good.group.json"])
    nodes = {f"meta/root/{name}.group.json": document for name in [*names, "good"]}
    nodes["meta/root.group.json"] = document
    copies = {"zarr_consolidated_format": 1, "metadata": nodes}
    return {**documents, "meta/root/consolidated/.zmetadata": json.dumps(copies)}


@pytest.mark.parametrize("zarr_format", [2, 3, "3-draft2020"])
@pytest.mark.parametrize("odd", ODD, ids=ascii)
class TestCopies:
    def store(self, zarr_format, odd):
        if (zarr_format, odd) == ("3-draft2020", ""):
            pytest.skip("without a name, the key is none of a document")
        return MemoryStore({key: value.encode() for key, value in copies_in(zarr_format, [odd]).items()})

    def test_copy_with_a_name_that_leads_elsewhere_is_left_out(self, zarr_format, odd):
        root = omnizarr.open_consolidated(self.store(zarr_format, odd))
        assert list(root) == ["good"]
        assert paths(root) == ["good"]
        assert repr(root.tree()) == "/\n└── good"

    def test_check_tells_of_it(self, zarr_format, odd):
        findings = list(omnizarr.check(self.store(zarr_format, odd)))
        assert [finding.message for finding in findings if finding.code == "broken-consolidated-metadata"] == [
            "a copy with a name that no node can have, which is left out"
        ]

    def test_consolidating_again_mends_it(self, zarr_format, odd):
        store = self.store(zarr_format, odd)
        omnizarr.consolidate_metadata(store)
        assert all(finding.severity == "note" for finding in omnizarr.check(store))
        assert list(omnizarr.open_consolidated(store)) == ["good"]


def test_copy_within_a_copy_is_left_out_too():
    inner = {"kind": "inline", "must_understand": False, "metadata": {"..": GROUP, "x": GROUP}}
    outer = {"kind": "inline", "must_understand": False, "metadata": {"g": {**GROUP, "consolidated_metadata": inner}}}
    document = {**GROUP, "consolidated_metadata": outer}
    root = omnizarr.open_consolidated({"zarr.json": json.dumps(document).encode()})
    assert paths(root) == ["g", "g/x"]


def test_listing_of_nczarr_makes_no_members():
    content = {"dimensions": {"..": 3}, "arrays": ["..", "/etc/passwd", "v"], "groups": ["..", ".", "", "a/../.."]}
    attributes = {"_nczarr_superblock": {"version": "2.0.0"}, "_nczarr_group": content}
    store = {
        ".zgroup": b'{"zarr_format": 2}',
        ".zattrs": json.dumps(attributes).encode(),
    }
    with netcdf.Dataset(store) as dataset:
        assert list(dataset.groups) == []
        assert list(dataset.variables) == []
    assert list(omnizarr.open_group(store, mode="r")) == []


ELSEWHERE = ("../up", "/abs", "a/../../b", "./here", "a//b", "a\\b")


def test_reference_set_cannot_name_what_is_elsewhere():
    document = json.dumps(GROUP)
    references = {"zarr.json": document, "good/zarr.json": document}
    references.update({f"{name}/zarr.json": document for name in ELSEWHERE})
    root = omnizarr.open_group(ReferenceStore({"version": 1, "refs": references}), mode="r")
    assert list(root.group_keys()) == ["good"]


def test_archive_cannot_name_what_is_elsewhere(tmp_path):
    document = json.dumps(GROUP)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name in ("", "good/", *(f"{each}/" for each in ELSEWHERE)):
            archive.writestr(f"{name}zarr.json", document)
    root = omnizarr.open_group(ZipStore(tmp_path / "a.zip", mode="r"), mode="r")
    assert list(root.group_keys()) == ["good"]
