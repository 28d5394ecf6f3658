"""Single-file OME-Zarr: what zipfile reads of archives that omnizarr writes, and archives that others wrote."""

import json
import zipfile

import numpy as np
import pytest

import omnizarr
from omnizarr.stores import MemoryStore, ZipStore
from omnizarr.stores.local import ozx

OME = {"ome": {"version": "0.5"}}


def fill(store):
    root = omnizarr.create_group(store, attributes=OME)
    root.create_array("0", data=np.arange(100).reshape(10, 10), chunks=(5, 5))
    root.create_group("labels").create_array("cells", data=np.ones(3))
    return root


@pytest.fixture
def archive(tmp_path):
    with ZipStore(tmp_path / "x.ozx", mode="w") as store:
        fill(store)
    return tmp_path / "x.ozx"


def is_as_recommended(path):
    with zipfile.ZipFile(path) as found:
        infos = found.infolist()
        names = [info.filename for info in infos]
        assert names[:4] == ["zarr.json", "0/zarr.json", "labels/zarr.json", "labels/cells/zarr.json"]
        assert [info.header_offset for info in infos] == sorted(info.header_offset for info in infos)
        assert {info.compress_type for info in infos} == {zipfile.ZIP_STORED}
        assert {info.extract_version for info in infos} == {45}  # ZIP64
        assert json.loads(found.comment) == OME
        assert found.testzip() is None


def test_documents_come_first_and_the_comment_has_the_version(archive):
    is_as_recommended(archive)
    np.testing.assert_array_equal(omnizarr.open(archive)["0"][3:7], np.arange(100).reshape(10, 10)[3:7])
    assert not list(omnizarr.check(archive))


def test_changes_keep_the_order(archive):
    with ZipStore(archive, mode="a") as store:
        root = omnizarr.open_group(store, mode="r+")
        root.attrs["title"] = "x"
        root["0"][0, 0] = 5
    is_as_recommended(archive)
    assert omnizarr.open(archive)["0"][0, 0] == 5


def test_convert_and_copy_write_it(archive, tmp_path):
    omnizarr.convert(archive, tmp_path / "y.zarr")
    omnizarr.convert(tmp_path / "y.zarr", tmp_path / "z.OZX")
    is_as_recommended(tmp_path / "z.OZX")


def test_an_archive_in_a_store():
    values = MemoryStore()
    with ZipStore("images/x.ozx", store=values, mode="w") as store:
        fill(store)
    with ZipStore("images/x.ozx", store=values) as store:
        assert omnizarr.open(store)["0"][9, 9] == 99
    assert bytes(values.get("images/x.ozx")).endswith(b'{"ome": {"version": "0.5"}}')


def test_other_archives_are_written_as_before(tmp_path):
    with ZipStore(tmp_path / "x.zip", mode="w") as store:
        fill(store)
    with zipfile.ZipFile(tmp_path / "x.zip") as found:
        assert found.comment == b""


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"compression": zipfile.ZIP_DEFLATED}, "compressed entries"),
        ({"names": ["0/zarr.json", "zarr.json"]}, "another order"),
        ({"comment": b"made by hand"}, "the comment"),
        ({"names": ["0/zarr.json"]}, "no zarr.json"),
    ],
)
def test_a_check_says_what_an_archive_of_others_lacks(how, said, tmp_path):
    values = {}
    fill(values)
    path = tmp_path / "x.ozx"
    with zipfile.ZipFile(path, "w", how.get("compression", zipfile.ZIP_STORED)) as made:
        for name in how.get("names", ["zarr.json", "0/zarr.json"]):
            made.writestr(name, values[name])
        made.comment = how.get("comment", json.dumps({"ome": {"version": "0.5", "more": 1}}).encode())
    found = [finding for finding in omnizarr.check(path) if finding.code == "ome-zip"]
    assert len(found) == 1
    assert said in str(found[0].found)


@pytest.mark.parametrize(
    "document", [b"", b"[" * 100_000, b'{"attributes": 3}', b'{"attributes": {"ome": {"version": 5}}}',
                 json.dumps({"attributes": {"ome": {"version": "x" * 10**6}}}).encode()],
)  # fmt: skip
def test_documents_without_a_version_give_no_comment(document):
    assert ozx.comment_of(document) == b""
