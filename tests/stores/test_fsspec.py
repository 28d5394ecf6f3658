"""fsspec's filesystems as stores: in memory, local, S3 (s3fs), and the index pages of a web server."""

import itertools
import pickle

import pytest

from tests.stores.contract import StoreContract

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")

from omnizarr.stores.fsspec import FsspecStore  # noqa: E402

_numbers = itertools.count()


class TestMemory(StoreContract):
    @pytest.fixture
    def store(self):
        store = FsspecStore(fsspec.filesystem("memory"), f"test-{next(_numbers)}")
        yield store
        store.delete_prefix("")


class TestLocal(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        return FsspecStore(fsspec.filesystem("file"), str(tmp_path / "data.zarr"))


class TestS3(StoreContract):
    @pytest.fixture
    def store(self, s3_server):
        pytest.importorskip("s3fs", reason="s3fs is not installed")
        return s3_store(s3_server)


def s3_store(server):
    place = server.fresh()
    options = {
        "key": place.options["access_key_id"],
        "secret": place.options["secret_access_key"],
        "client_kwargs": {"endpoint_url": place.endpoint, "region_name": "us-east-1"},
    }
    return FsspecStore.from_url(f"{place.url}/a b/data.zarr", options)
