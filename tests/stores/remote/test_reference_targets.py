"""Which store the targets of references are in, and its options."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from omnizarr.errors import StoreAccessError, StoreError
from omnizarr.stores import LocalStore, MemoryStore, ObjectStore
from omnizarr.stores.remote.reference_targets import Options, Targets

ANONYMOUS = {"skip_signature": True}


@pytest.fixture
def asked(monkeypatch):
    """The URLs and options that stores are made of."""
    found = []

    class Objects(MemoryStore):
        def on_public_servers(self):
            return self

    def from_url(url, options, *, read_only):
        found.append((url, dict(options)))
        return Objects(read_only=read_only)

    monkeypatch.setattr(ObjectStore, "from_url", from_url)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("8.8.8.8", 0))])
    return found


@pytest.mark.parametrize(
    ("url", "root", "key"),
    [
        ("s3://bucket/a/b c.nc", "s3://bucket", "a/b c.nc"),
        ("s3://bucket/a#b?c.nc", "s3://bucket", "a#b?c.nc"),
        ("gs://bucket/a.nc", "gs://bucket", "a.nc"),
        ("abfs://box@account.dfs.core.windows.net/a.nc", "abfs://box@account.dfs.core.windows.net", "a.nc"),
        ("https://a.org:1/a%20b/c.nc", "https://a.org:1/", "a b/c.nc"),
        ("https://a.org/a.nc?sig=x%2Fy", "https://a.org/?sig=x%2Fy", "a.nc"),
    ],
)
def test_one_store_serves_a_bucket_or_a_host(asked, url, root, key):
    found = Targets(Options(), "")
    store, name = found.locate(url)
    assert (asked, name) == ([(root, {} if root.startswith("https") else ANONYMOUS)], key)
    assert found.locate(url)[0] is store
    assert len(asked) == 1


def test_paths_are_those_of_this_machine(tmp_path):
    store, key = Targets(Options(), str(tmp_path)).locate(str(tmp_path / "x" / ".." / "a.nc"))
    assert isinstance(store, LocalStore)
    assert Path(store.root) / key == tmp_path / "a.nc"


@pytest.mark.parametrize(
    ("given", "base", "url", "expected"),
    [
        # references on this machine
        ({"remote_options": {"anon": True}}, "/data", "s3://b/k", {"anon": True}),
        ({"remote_options": {"anon": True, "asynchronous": True, "loop": None}}, "/data", "s3://b/k", {"anon": True}),
        ({"anon": True}, "/data", "s3://b/k", {"anon": True}),
        ({"remote_options": {"anon": True}, "remote_protocol": "s3"}, "/data", "https://h.org/k", {}),
        ({"remote_options": {"anon": True}, "remote_protocol": "s3"}, "/data", "s3a://b/k", {"anon": True}),
        ({"fs": {"https": {"headers": {"a": "b"}}}}, "/data", "https://h.org/k", {"headers": {"a": "b"}}),
        ({"fs": {"https": {"headers": {"a": "b"}}}}, "/data", "s3://b/k", ANONYMOUS),
        # references from elsewhere
        ({"key": "k"}, "s3://b/refs", "s3://b/k", {"key": "k"}),
        ({"key": "k", "endpoint": "http://e"}, "s3://b/refs", "s3://other/k", {"endpoint": "http://e", **ANONYMOUS}),
        ({"key": "k", "references": "trusted"}, "s3://b/refs", "s3://other/k", {"key": "k"}),
        ({"key": "k", "references": ["s3://other"]}, "s3://b/refs", "s3://other/k", {"key": "k"}),
        ({"references": ["s3://b"]}, "/data", "s3://b/k", {}),
        ({"key": "k"}, "s3://b/refs", "https://h.org/k", {}),
        (
            {"headers": {"Authorization": "x"}},
            "https://h.org/refs",
            "https://h.org/k",
            {"headers": {"Authorization": "x"}},
        ),
        ({"headers": {"Authorization": "x"}}, "https://h.org/refs", "https://evil.org/k", {}),
        ({"headers": {"Authorization": "x"}}, "https://h.org/refs", "http://h.org/k", {}),
        ({"headers": {"Authorization": "x"}}, "https://h.org/refs", "https://h.org:81/k", {}),
        ({"target_options": {"key": "k"}, "remote_options": {"anon": True}}, "s3://b/r", "s3://o/k", {"anon": True}),
        ({"target_options": {"key": "k"}, "ref_storage_args": {"key": "old"}}, "s3://b/r", "s3://b/k", {"key": "k"}),
    ],
)
def test_options_go_to_whom_they_are_meant_for(asked, given, base, url, expected):
    Targets(Options.of(given), base, url).locate(url)
    assert asked[0][1] == expected


def test_remote_options_without_a_protocol_are_for_the_scheme_of_the_first_reference(asked):
    found = Targets(Options(remote_options={"anon": True}), "/data", "s3://b/first")
    found.locate("https://host.org/a")
    found.locate("s3://other/b")
    assert [options for _, options in asked] == [{}, {"anon": True}]


@pytest.mark.parametrize("url", ["/etc/passwd", "file:///etc/passwd", "local:///etc/passwd"])
def test_references_from_elsewhere_may_not_read_files_of_this_machine(url):
    for options in (Options(), Options(remote_protocol="file"), Options(references=["/data"])):
        with pytest.raises(StoreAccessError, match="trust"):
            Targets(options, "https://host/data").locate(url)
    for options in (Options(allow_local=True), Options(references="trusted"), Options(references=["/etc"])):
        assert isinstance(Targets(options, "https://host/data").locate(url)[0], LocalStore)


@pytest.mark.parametrize(
    "url", ["sftp://host/a", "simplecache::s3://b/k", "zip://a::/etc/x.zip", "memory://a/b", "smb://h/a"]
)
def test_references_from_elsewhere_may_not_use_any_protocol(url):
    with pytest.raises(StoreAccessError, match="only if you trust them"):
        Targets(Options(), "https://host/data").locate(url)


@pytest.mark.parametrize("url", ["http://a.org/a", "s3://bucket/a"])
def test_references_from_elsewhere_may_name_object_stores_and_servers(asked, url):
    Targets(Options(), "https://host/data").locate(url)
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("base", "path", "root", "key"),
    [
        ("https://host/data", "a b.nc", "https://host/", "data/a b.nc"),
        ("https://host/data?token=x", "x/../a.nc", "https://host/?token=x", "data/a.nc"),
        ("s3://bucket", "a.nc", "s3://bucket", "a.nc"),
        ("s3://bucket/x/y", "./a.nc", "s3://bucket", "x/y/a.nc"),
    ],
)
def test_relative_paths_are_beside_the_references(asked, base, path, root, key):
    assert Targets(Options(), base).locate(path)[1] == key
    assert asked[0][0] == root


@pytest.mark.parametrize("path", ["../a.nc", "x/../../a.nc"])
def test_relative_paths_do_not_leave_the_directory_of_references_elsewhere(path):
    with pytest.raises(StoreError, match="leads out"):
        Targets(Options(), "https://host/data").locate(path)


def test_a_protocol_makes_urls_of_paths(asked):
    assert Targets(Options(remote_protocol="s3"), "/data").locate("bucket/a.nc")[1] == "a.nc"
    assert asked[0][0] == "s3://bucket"
