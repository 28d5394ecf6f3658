"""A hierarchy as an application: every format as v3 and v2, stored bytes, CORS, token and hosts."""

import json

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import NodeNotFoundError, NotRepresentableError
from omnizarr.netcdf import Dataset
from omnizarr.storage import MemoryStore
from omnizarr.web.application import application
from tests.web.client import ask

FORMATS = (1, 2, "3-draft2019", "3-draft2020", 3)
VALUES = np.arange(12.0).reshape(3, 4)


def hierarchy(zarr_format):
    """Return a group with ``ocean/temp`` in it; in v1, directories are the groups."""
    store = MemoryStore()
    if zarr_format != 1:
        omnizarr.create_group(store, zarr_format=zarr_format)
    keywords = {"data": VALUES, "chunks": (2, 2), "attributes": {"units": "K"}}
    omnizarr.create_array(store, name="ocean/temp", zarr_format=zarr_format, **keywords)
    return omnizarr.open_group(store, mode="r")


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_every_format_is_served_as_v3(zarr_format):
    app = application(hierarchy(zarr_format))
    document = json.loads(ask(app, "/ocean/temp/zarr.json").body)
    assert (document["zarr_format"], document["shape"], document["attributes"]) == (3, [3, 4], {"units": "K"})
    assert json.loads(ask(app, "/zarr.json").body)["node_type"] == "group"
    assert ask(app, "/ocean/temp/c/0/1").status == 200
    assert ask(app, "/ocean/temp/c/2/0").status == 404
    assert ask(app, "/ocean/temp/.zarray").status == 404


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_every_format_is_served_as_v2(zarr_format):
    app = application(hierarchy(zarr_format), zarr_format=2)
    assert json.loads(ask(app, "/ocean/temp/.zarray").body)["shape"] == [3, 4]
    assert json.loads(ask(app, "/ocean/temp/.zattrs").body) == {"units": "K"}
    assert ask(app, "/zarr.json").status == 404


def test_nczarr_is_served_with_its_dimensions(tmp_path):
    with Dataset(tmp_path / "tides.zarr", "w") as dataset:
        dataset.createDimension("time", 3)
        dataset.createVariable("level", "i2", ("time",))[:] = [1, 2, 3]
    app = application(tmp_path / "tides.zarr")
    assert json.loads(ask(app, "/level/zarr.json").body)["dimension_names"] == ["time"]


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_stored_bytes_are_served_unchanged(zarr_format):
    root = hierarchy(zarr_format)
    app = application(root, raw=True)
    keys = list(root.store.list())
    assert keys
    for key in keys:
        assert ask(app, f"/{key}").body == bytes(root.store.get(key))


def test_a_node_is_served_without_what_is_above_it():
    root = hierarchy(2)
    for keywords in ({"raw": True}, {"zarr_format": 2}):
        app = application(root["ocean"], **keywords)
        assert json.loads(ask(app, "/temp/.zarray").body)["shape"] == [3, 4]
        assert ask(app, "/../.zgroup").status == 404
        assert ask(app, "/ocean/temp/.zarray").status == 404
    assert ask(application(root, path="ocean/temp"), "/c/0/0").status == 200


def test_the_stored_bytes_of_a_node_of_a_draft_are_in_several_places():
    with pytest.raises(NotRepresentableError, match="several places"):
        application(hierarchy("3-draft2020")["ocean"], raw=True)


def test_there_must_be_a_hierarchy(tmp_path):
    (tmp_path / "notes.txt").write_text("secret")
    for raw in (True, False):
        with pytest.raises(NodeNotFoundError):
            application(tmp_path, raw=raw)


def test_the_front_page_says_what_is_served():
    answer = ask(application({"zarr.json": b'{"zarr_format": 3, "node_type": "group"}'}), "/")
    assert (answer.status, answer.body) == (200, b"omnizarr serves a hierarchy as Zarr v3 at this address.\n")


def test_a_broken_chunk_is_an_error_and_not_a_missing_one():
    store = MemoryStore()
    omnizarr.create_array(store, data=[1, 2], zarr_format=2, compressors={"id": "bz2", "level": 1})
    store.set("0", b"broken")
    answer = ask(application(store), "/c/0")
    assert (answer.status, answer.error.partition(": ")[0]) == (500, "c/0")


@pytest.mark.parametrize(("zarr_format", "key"), [(3, "/zarr.json"), (2, "/.zmetadata")])
def test_consolidated_metadata_is_made_and_has_the_etag_of_what_it_says(zarr_format, key):
    store = MemoryStore()
    ocean = omnizarr.create_group(store, zarr_format=2).create_group("ocean")
    ocean.create_array("temp", data=VALUES)
    app = application(store, zarr_format=zarr_format)
    before = ask(app, key)
    assert b"ocean/temp" in before.body
    assert ask(app, key).fields["etag"] == before.fields["etag"]
    assert ask(app, key, If_None_Match=before.fields["etag"]).status == 304
    assert ask(app, key, "HEAD").fields["content-length"] == str(len(before.body))
    ocean.create_array("salt", data=VALUES)
    after = ask(app, key, If_None_Match=before.fields["etag"])
    assert (after.status, after.fields["etag"] == before.fields["etag"]) == (200, False)
    assert b"ocean/salt" in after.body


def test_consolidated_metadata_is_not_made_if_nodes_are_many():
    root = hierarchy(3)
    assert b"consolidated" in ask(application(root, consolidated=2), "/zarr.json").body
    for few in (0, 1, False):
        assert b"consolidated" not in ask(application(root, consolidated=few), "/zarr.json").body


# -- pages of others -----------------------------------------------------------------------


def preflight(app, origin, **fields):
    return ask(app, "/zarr.json", "OPTIONS", Origin=origin, Access_Control_Request_Method="GET", **fields)


@pytest.mark.parametrize("token", [None, "s3cret"])
def test_no_page_may_read_unless_it_is_named(token):
    app = application(hierarchy(3), token=token)
    for answer in (
        ask(app, "/zarr.json?token=s3cret", Origin="https://example.org"),
        preflight(app, "https://example.org"),
    ):
        assert not [name for name in answer.fields if name.startswith("access-control")]
        assert answer.fields["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize("origins", [["*"], ["http://localhost:3000"]])
def test_cookie_does_not_count_for_pages_of_others(origins):
    app = application(hierarchy(3), token="s3cret", origins=origins)
    cookie = ask(app, "/zarr.json?token=s3cret").fields["set-cookie"].partition(";")[0]
    assert ask(app, "/zarr.json", Cookie=cookie).status == 200
    for fields in ({"Origin": "http://localhost:3000"}, {"Sec_Fetch_Site": "same-site"}):
        answer = ask(app, "/zarr.json", Cookie=cookie, **fields)
        assert answer.status == 401
        assert "access-control-allow-credentials" not in answer.fields


def test_every_page_may_read_if_asked_for():
    app = application(hierarchy(3), origins=["*"])
    answer = ask(app, "/zarr.json", Origin="https://example.org")
    assert answer.fields["access-control-allow-origin"] == "*"
    exposed = answer.fields["access-control-expose-headers"].split(", ")
    assert {"ETag", "Content-Range", "Content-Length", "Accept-Ranges"} <= set(exposed)
    asked = preflight(app, "https://example.org", Access_Control_Request_Headers="range, if-none-match, authorization")
    assert asked.status == 200


def test_pages_of_other_origins_may_not():
    app = application(hierarchy(3), origins=["https://example.org"])
    assert ask(app, "/zarr.json", Origin="https://example.org").fields["access-control-allow-origin"] == (
        "https://example.org"
    )
    assert "access-control-allow-origin" not in ask(app, "/zarr.json", Origin="https://evil.example").fields
    assert preflight(app, "https://evil.example").status == 400


def test_a_page_learns_that_a_token_is_missing():
    app = application(hierarchy(3), token="s3cret", origins=["*"])
    assert preflight(app, "https://example.org").status == 200
    answer = ask(app, "/zarr.json", Origin="https://example.org")
    assert (answer.status, answer.fields["access-control-allow-origin"]) == (401, "*")
    assert ask(app, "/zarr.json?token=s3cret").status == 200


def test_hosts_are_checked_if_there_are_some():
    root = hierarchy(3)
    assert ask(application(root), "/zarr.json", Host="evil.example").status == 200
    assert ask(application(root, hosts=()), "/zarr.json", Host="evil.example").status == 421
    assert ask(application(root, hosts=["data.example.org"]), "/zarr.json", Host="data.example.org").status == 200
