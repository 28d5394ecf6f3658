"""Paths and URLs of datasets: NCZarr, "URL Format", "Client Parameters", "Addressing Style"; netCDF-C's ncuri.c."""

from pathlib import Path, PureWindowsPath

import pytest

import omnizarr
from omnizarr.errors import OmnizarrError, SettingError, StoreError
from omnizarr.netcdf import urls
from omnizarr.netcdf.urls import parse
from omnizarr.stores import LocalStore, PrefixStore, ZipStore

# -- files ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("file:///data/x.zarr#mode=nczarr,file", "/data/x.zarr"),  # the document's examples
        ("file:///xxx/yyy/testdata.file#mode=nczarr,file", "/xxx/yyy/testdata.file"),
        ("file:/data/x.zarr#mode=nczarr", "/data/x.zarr"),  # the rules in ncuri.c
        ("file://x.zarr#mode=nczarr", "x.zarr"),
        ("file://a/x.zarr#mode=nczarr", "a/x.zarr"),
        ("file://./x.zarr#mode=nczarr", "./x.zarr"),
        ("file:x.zarr#mode=nczarr", "x.zarr"),
        ("file://localhost/data/x.zarr", "/data/x.zarr"),  # RFC 8089
        ("FILE:///data/x.zarr", "/data/x.zarr"),
        ("file:///data/a%20b%23.zarr#mode=zarr", "/data/a b#.zarr"),
        ("file:///data/%C3%A9.zarr", "/data/é.zarr"),
        (r"file:///data/x.zarr\#mode=zarr,zip", "/data/x.zarr"),
        ("x.zarr", "x.zarr"),
        ("/data/a%20b#1.zarr", "/data/a%20b#1.zarr"),
        ("x.zarr#mode=zarr", "x.zarr"),
        (r"x.zarr\#mode=zarr", "x.zarr"),
        (r"C:\data\x.zarr", r"C:\data\x.zarr"),
        (r"C:\data\x.zarr#mode=zarr", r"C:\data\x.zarr"),
        ("file:C:/data/x.zarr", "C:/data/x.zarr"),
        ("file://C:/data/x.zarr", "C:/data/x.zarr"),
        (Path("data/x.zarr#mode=zarr"), str(Path("data/x.zarr#mode=zarr"))),
        ("", ""),
    ],
    ids=str,
)
def test_place_of_file_is_its_path(text, place):
    assert parse(text).place == place
    assert parse(text).is_local


def test_path_object_says_only_the_path():
    assert parse(Path("x.zarr#mode=zarr")).mode is None


@pytest.mark.parametrize("text", ["~/x.zarr", "file:~/x.zarr#mode=zarr", "file://~/x.zarr"])
def test_tilde_is_the_home_directory(text, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert Path(parse(text).place) == tmp_path / "x.zarr"


def test_drive_is_no_directory_of_the_root_on_windows(monkeypatch):
    monkeypatch.setattr(urls.os, "name", "nt")
    found = parse("file:///C:/data/x.v1.zarr#mode=zarr")
    assert (found.place, found.name) == ("C:/data/x.v1.zarr", "x.v1")
    assert parse("C:\\data\\y.zarr").name == PureWindowsPath("C:\\data\\y.zarr").stem


@pytest.mark.parametrize("text", ["file:", "file://", "file://#mode=zarr", "file:///a?b.zarr"])
def test_url_of_no_file_is_an_error(text):
    with pytest.raises(SettingError):
        parse(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("/data/ref.v1.zarr/", "ref.v1"),
        ("file:///data/x.zarr#mode=nczarr,file", "x"),
        ("s3://bucket/a/b%20c.zarr#mode=nczarr,s3", "b c"),
        ("data", "data"),
        ("data/.zarr", ".zarr"),
    ],
)
def test_name_is_the_last_part_without_extension(text, name):
    assert parse(text).name == name


# -- settings --------------------------------------------------------------


def said(text):
    found = parse(text)
    return found.mode, found.zarr_format, found.storage, found.xarray, found.consolidated


@pytest.mark.parametrize(
    ("fragment", "expected"),
    [
        ("", (None, None, None, True, False)),
        ("#", (None, None, None, True, False)),
        ("#mode=", (None, None, None, True, False)),
        ("#mode=nczarr,file", ("nczarr", None, "file", True, False)),
        ("#mode=zarr,zip", ("zarr", None, "zip", True, False)),
        ("#mode=nczarr,zarr", ("zarr", None, None, True, False)),
        ("#mode=zarr,nczarr", ("zarr", None, None, True, False)),
        ("#mode=xarray,zip", ("zarr", None, "zip", True, False)),
        ("#mode=nczarr,noxarray,file", ("nczarr", None, "file", False, False)),
        ("#mode=zarr,noxarray", ("zarr", None, None, False, False)),
        ("#mode=noxarray", (None, None, None, False, False)),
        ("#mode=xarray,noxarray", ("zarr", None, None, False, False)),
        ("#mode=nczarr,v2", ("nczarr", 2, None, True, False)),
        ("#mode=nczarr,v3,file", ("nczarr", 3, "file", True, False)),
        ("#mode=zarr,file,consolidated", ("zarr", None, "file", True, True)),
        ("#mode=nczarr&mode=zip", ("nczarr", None, "zip", True, False)),
        ("#mode=NCZarr,ZIP", ("nczarr", None, "zip", True, False)),
        ("#MODE=nczarr, zip", ("nczarr", None, "zip", True, False)),
        ("#mode=nczarr%2Czip", ("nczarr", None, "zip", True, False)),
        ("#mode=file,file,nczarr", ("nczarr", None, "file", True, False)),
        ("#zarr", ("zarr", None, None, True, False)),
        ("#nczarr,zip", ("nczarr", None, "zip", True, False)),
        ("#nczarr&zip&v2", ("nczarr", 2, "zip", True, False)),
        ("#noxarray&log&show=fetch", (None, None, None, False, False)),
    ],
)
def test_fragment_says_how_to_read_and_write(fragment, expected):
    assert said(f"file:///data/x.zarr{fragment}") == expected


@pytest.mark.parametrize(
    ("fragment", "found"),
    [
        ("mode=nczarr,file,zip", "file,zip"),
        ("mode=nczarr,zip&mode=file", "zip,file"),
        ("mode=v2,v3", "v2,v3"),
        ("mode=nczarr,flie", "flie"),
    ],
)
def test_words_that_contradict_each_other_or_are_unknown_are_an_error(fragment, found):
    with pytest.raises(SettingError) as caught:
        parse(f"file:///data/x.zarr#{fragment}")
    assert caught.value.found == found
    assert "one of" in str(caught.value) or "nczarr" in str(caught.value.expected)
    assert isinstance(caught.value, OmnizarrError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("text", ["file:///data/x.zarr#mode=nczarr,s3", "x.zarr#mode=s3"])
def test_s3_in_a_file_is_an_error(text):
    with pytest.raises(SettingError, match="S3"):
        parse(text)


@pytest.mark.parametrize(
    "text",
    ["https://host/x.nc#mode=bytes", "https://host/x.nc#bytes", "s3://bucket/x.nc#mode=bytes,s3", "x#mode=netcdf-4"],
)
def test_data_that_is_no_zarr_is_an_error(text):
    with pytest.raises(StoreError, match="not Zarr"):
        parse(text)


def test_pairs_that_mean_nothing_here_are_kept():
    found = parse("file:///x.zarr#mode=zarr&log&show=fetch&show=all&a%26b=c%3Dd=e")
    assert found.options == {"log": "", "show": "fetch", "a&b": "c=d=e"}


# -- S3 and the web ------------------------------------------------------------

KNOWN = {"bucket": "bucket", "key": "a/key"}
WEST = {**KNOWN, "region": "us-west-1", "endpoint": "https://s3.us-west-1.amazonaws.com"}
GLOBAL = {**KNOWN, "endpoint": "https://s3.amazonaws.com"}


@pytest.mark.parametrize(
    ("url", "place", "options"),
    [  # the forms that netCDF-C's ds3util.c lists, and the document's own
        ("https://bucket.s3.us-west-1.amazonaws.com/a/key", "https://s3.us-west-1.amazonaws.com/bucket/a/key", WEST),
        ("https://bucket.s2.us-west-1.amazonaws.com/a/key", "https://s3.us-west-1.amazonaws.com/bucket/a/key", WEST),
        ("https://s3.us-west-1.amazonaws.com/bucket/a/key", "https://s3.us-west-1.amazonaws.com/bucket/a/key", WEST),
        ("https://s3-us-west-1.amazonaws.com/bucket/a/key", "https://s3.us-west-1.amazonaws.com/bucket/a/key", WEST),
        ("s3://s3.us-west-1.amazonaws.com/bucket/a/key", "https://s3.us-west-1.amazonaws.com/bucket/a/key", WEST),
        ("https://bucket.s3.amazonaws.com/a/key", "https://s3.amazonaws.com/bucket/a/key", GLOBAL),
        ("https://s3.amazonaws.com/bucket/a/key", "https://s3.amazonaws.com/bucket/a/key", GLOBAL),
        ("s3://bucket/a/key", "https://s3.amazonaws.com/bucket/a/key", GLOBAL),
        ("S3://bucket/a/key#mode=nczarr,s3", "https://s3.amazonaws.com/bucket/a/key", GLOBAL),
        ("s3://bucket/a/key#aws.region=us-west-1", "https://s3.us-west-1.amazonaws.com/bucket/a/key", WEST),
        (
            "s3://bucket/a/key#mode=nczarr&awsprofile=unidata",
            "https://s3.amazonaws.com/bucket/a/key",
            {**GLOBAL, "profile": "unidata"},
        ),
        (  # the document's examples
            "s3://s3.us-west-1.amazonaws.com/datasetbucket",
            "https://s3.us-west-1.amazonaws.com/datasetbucket",
            {**WEST, "bucket": "datasetbucket", "key": ""},
        ),
        (
            r"s3://datasetbucket/rootkey\#mode=nczarr&awsprofile=unidata",
            "https://s3.amazonaws.com/datasetbucket/rootkey",
            {**GLOBAL, "bucket": "datasetbucket", "key": "rootkey", "profile": "unidata"},
        ),
        (
            "https://s3.amazonaws.com/bucket/a/key#mode=zarr,s3&aws.profile=no",
            "https://s3.amazonaws.com/bucket/a/key",
            {**GLOBAL, "profile": "no"},
        ),
        (
            "https://my.bucket.s3.us-west-1.amazonaws.com/a/key",
            "https://s3.us-west-1.amazonaws.com/my.bucket/a/key",
            {**WEST, "bucket": "my.bucket"},
        ),
        (
            "gs3://bucket/a/key",
            "https://storage.googleapis.com/bucket/a/key",
            {**KNOWN, "endpoint": "https://storage.googleapis.com"},
        ),
        (
            "https://storage.googleapis.com/bucket/a/key",
            "https://storage.googleapis.com/bucket/a/key",
            {**KNOWN, "endpoint": "https://storage.googleapis.com"},
        ),
        (
            "http://localhost:9000/bucket/a/key#mode=nczarr,s3",
            "http://localhost:9000/bucket/a/key",
            {**KNOWN, "endpoint": "http://localhost:9000"},
        ),
        (
            "s3://localhost:9000/bucket/a/key",
            "https://localhost:9000/bucket/a/key",
            {**KNOWN, "endpoint": "https://localhost:9000"},
        ),
        (
            "s3://bucket/a%20b",
            "https://s3.amazonaws.com/bucket/a%20b",
            {"bucket": "bucket", "key": "a b", "endpoint": "https://s3.amazonaws.com"},
        ),
        (
            "s3://bucket",
            "https://s3.amazonaws.com/bucket",
            {"bucket": "bucket", "key": "", "endpoint": "https://s3.amazonaws.com"},
        ),
    ],
)
def test_s3_is_addressed_in_the_path_style(url, place, options):
    found = parse(url)
    assert found.place == place
    assert found.options == options
    assert (found.storage, found.is_local) == ("s3", False)


def test_web_address_stays_as_it_is_without_what_is_for_us():
    found = parse("https://example.org:8080/data/a%20b.zarr?version=2#mode=nczarr,v3&x=1")
    assert found.place == "https://example.org:8080/data/a%20b.zarr?version=2"
    assert (found.mode, found.zarr_format, found.storage, found.options) == ("nczarr", 3, None, {"x": "1"})


def test_credentials_stand_neither_in_the_place_nor_in_the_representation():
    found = parse("https://me:s%2Fecret@example.org/x.zarr#aws.secret_access_key=hidden")
    assert found.place == "https://example.org/x.zarr"
    assert found.options == {"user": "me", "password": "s/ecret", "aws.secret_access_key": "hidden"}
    assert "ecret" not in repr(found)
    assert "hidden" not in repr(found)


@pytest.mark.parametrize("url", ["https:///x.zarr", "s3:///x", "https://s3.amazonaws.com/", "https://host/#mode=s3"])
def test_url_without_host_or_bucket_is_an_error(url):
    with pytest.raises(SettingError, match=r"host|bucket"):
        parse(url)


def test_s3_as_file_or_archive_contradicts_itself():
    with pytest.raises(SettingError, match="contradicts"):
        parse("s3://bucket/x.zip#mode=nczarr,zip")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("s3://bucket/x.zarr#mode=nczarr,s3", "s3://bucket/x.zarr"),
        ("https://bucket.s3.us-west-1.amazonaws.com/a/x.zarr#mode=nczarr", "s3://bucket/a/x.zarr"),
        ("http://user:secret@localhost:9000/bucket/x%20y#mode=s3", "s3://bucket/x y"),
        ("https://host/x.zarr#mode=zarr", "https://host/x.zarr"),
    ],
)
def test_store_is_named_without_secrets(url, name):
    store, _ = parse(url).open_store()
    assert name in repr(store)
    assert "secret" not in repr(store)


# -- stores --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "fragment", "kind"),
    [
        ("x.zarr", "", LocalStore),
        ("x.zip", "", ZipStore),
        ("x.anyext", "#mode=nczarr,zip", PrefixStore),
        ("x.zip", "#mode=nczarr,file", LocalStore),
        ("x", "#mode=nczarr,file", LocalStore),
    ],
)
def test_storage_that_is_named_is_created_and_found_again(tmp_path, name, fragment, kind):
    url = f"file://{tmp_path.as_posix()}/{name}{fragment}"
    store, path = parse(url).open_store("w")
    assert (type(store), path) == (kind, "")
    with store:
        store.set(".zgroup", b'{"zarr_format": 2}')
    assert (tmp_path / name).is_dir() == (kind is LocalStore)
    for again in (url, tmp_path / name):
        store, path = parse(again).open_store("r")
        assert type(store) is kind
        with store:
            assert (store.read_only, path, bytes(store.get(".zgroup"))) == (True, "", b'{"zarr_format": 2}')


def test_memory_is_a_place(tmp_path):
    omnizarr.create_group("memory://urls/a", zarr_format=2)
    store, path = parse("memory://urls/a#mode=zarr").open_store()
    assert store.get(f"{path}/.zgroup") is not None


@pytest.mark.parametrize(
    "name", ["zarr.json.zip", "__MACOSX.zip", ".zgroup.zip", "meta.zip", "back\\slash.zip", "\udcff.zip"]
)
def test_folder_in_an_archive_is_never_called_as_a_document(tmp_path, name):
    store, _ = parse(f"file://{tmp_path.as_posix()}/{name}#mode=nczarr,zip").open_store("w")
    assert store.prefix == "dataset/"
    store.close()
