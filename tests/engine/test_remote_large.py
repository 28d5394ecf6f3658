"""Chunks so large that they are sent in parts: natively as by way of Python, whole or not at all, without residue."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter

import numpy as np
import pytest

import omnizarr
from omnizarr import aio, engine
from omnizarr.errors import StoreError
from omnizarr.stores import ObjectStore
from tests.engine.remote import ZSTD, failure, needs_remote
from tests.faultproxy import Answer, Hang
from tests.servers import s3_client
from tests.stores.recording import FAST

pytest.importorskip("obstore", reason="the extra cloud is not installed")

pytestmark = needs_remote

SIZE = 36 * 2**20  # five parts of 8 MiB
PAIR = ("native", "python")


@pytest.fixture(scope="module")
def values():
    return np.random.default_rng(1).integers(1, 256, SIZE, "u1")


@pytest.fixture
def without_python(monkeypatch):
    """Let no chunk be written by way of Python."""

    def refuse(where):
        function = where.set

        def ask(self, key, *args, **kwargs):
            assert not key.startswith("c/"), "Python was asked to write"
            return function(self, key, *args, **kwargs)

        monkeypatch.setattr(where, "set", ask)

    refuse(ObjectStore)


def create(place, **how):
    how = {"shape": (SIZE,), "chunks": (SIZE,), "dtype": "u1", "fill_value": 0, "compressors": None, **how}
    omnizarr.create_array(f"{place.url}/a", storage_options=place.options, **how)


def by(fetch, place, **options):
    with omnizarr.config.set({"fetch": fetch}):
        array = omnizarr.open_array(f"{place.url}/a", mode="r+", storage_options={**place.options, **options})
        assert engine.is_remote(array._bind().binding) == (fetch == "native")
        return array


def sent(proxy):
    """Return how often each kind of request came for the chunk."""
    names = {("POST", "uploads"): "begin", ("PUT", "partNumber"): "part", ("POST", "uploadId"): "complete",
             ("DELETE", "uploadId"): "abort", ("PUT", ""): "whole"}  # fmt: skip
    asked = [(each.method, each.query) for each in proxy.log if each.path.endswith("/c/0")]
    return Counter(names.get((method, query.partition("=")[0].partition("&")[0]), method) for method, query in asked)


def uploads(place):
    """Return the uploads that have begun and not ended."""
    with s3_client(place.endpoint) as client:
        return client.list_multipart_uploads(Bucket=place.name).get("Uploads", [])


def are_ended(place):
    """Return whether all uploads have ended, or end within ten seconds."""
    deadline = time.monotonic() + 10
    while uploads(place) and time.monotonic() < deadline:
        time.sleep(0.1)
    return not uploads(place)


@pytest.mark.parametrize("cloud", ["s3_server", "azurite_server"])
def test_large_chunks_are_stored_without_python(request, cloud, values, without_python):
    place = request.getfixturevalue(cloud).fresh()
    create(place)
    by("native", place)[...] = values
    np.testing.assert_array_equal(by("python", place)[...], values)


def test_a_server_that_takes_no_parts_is_the_same_error(gcs_server, values):
    """The real Google Cloud Storage takes them."""
    place = gcs_server.fresh()
    create(place)
    errors = [failure(lambda fetch=fetch: by(fetch, place).__setitem__(..., values)) for fetch in PAIR]
    assert errors[0] == errors[1]
    assert errors[0][0] is StoreError


def test_requests_are_those_of_python(place, proxy, values):
    create(place)
    asked = []
    for fetch in PAIR:
        array = by(fetch, place.at(proxy.endpoint))
        proxy.log.clear()
        array[...] = values
        asked.append(sent(proxy))
    assert asked[0] == asked[1] == {"begin": 1, "part": 5, "complete": 1}


@pytest.mark.parametrize("how", [{}, {"chunks": (2**20,), "shards": (SIZE,)}], ids=["chunk", "shard"])
def test_the_size_of_what_is_sent_matters(place, proxy, how, without_python):
    """And not the size of the elements."""
    create(place, compressors=ZSTD, **how)
    array = by("native", place.at(proxy.endpoint))
    array[...] = 7
    assert sent(proxy) == {"whole": 1}
    assert (by("python", place)[::1000] == 7).all()


@pytest.mark.parametrize("step", ["PUT", "POST"])
def test_a_failure_is_the_same_error_and_leaves_nothing_behind(place, proxy, values, step):
    """A part, or the end of the upload, is refused."""
    create(place)
    by("native", place)[...] = 3
    errors = []
    for fetch in PAIR:
        proxy.log.clear()
        array = by(fetch, place.at(proxy.endpoint), **FAST)
        proxy.fault(Answer(403), method=step, path="/c/0", first=2)
        errors.append(failure(lambda array=array: array.__setitem__(..., values)))
        assert sent(proxy)["abort"] >= 1  # again, if the connection breaks on which a part was refused
        assert are_ended(place)
    assert errors[0][0] is errors[1][0]
    assert issubclass(errors[0][0], StoreError)
    assert errors[0][2]["key"] == errors[1][2]["key"] == "c/0"
    assert (by("python", place)[...] == 3).all()


def test_an_upload_that_is_given_up_leaves_nothing_behind(place, proxy, values):
    create(place)
    by("native", place)[...] = 3
    array = aio.AsyncArray(by("native", place.at(proxy.endpoint)))
    proxy.fault(Hang(), method="PUT", path="/c/0", first=3, times=math.inf)

    async def main():
        begun = time.monotonic()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(array.setitem(..., values), 0.5)
        return time.monotonic() - begun

    assert asyncio.run(main()) < 10
    assert are_ended(place)
    assert (by("python", place)[...] == 3).all()


def test_a_chunk_is_stored_when_the_last_answer_is_lost(place, proxy, values):
    create(place)
    array = by("native", place.at(proxy.endpoint), **FAST)
    proxy.fault(Answer(503, done=True), method="POST", path="/c/0", first=2)
    array[...] = values
    np.testing.assert_array_equal(by("python", place)[...], values)
    assert not uploads(place)
