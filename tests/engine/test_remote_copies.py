"""Large shards on S3 that change in part: the server copies what stays, and nothing is lost, whatever it does."""

from __future__ import annotations

import asyncio
import json
import math
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import omnizarr
from omnizarr import aio, engine
from tests.engine.remote import ZSTD, needs_remote
from tests.faultproxy import Answer, Call, Fault, Hang, Reset
from tests.repeats import runs
from tests.servers import s3_client
from tests.stores.recording import FAST

pytest.importorskip("obstore", reason="the extra cloud is not installed")

pytestmark = needs_remote

MIB = 2**20
SIZE, CHUNK = 8 * MIB, 2**16
COPY, SIZES, END = ({"method": method, "query": "X-Amz-Signature"} for method in ("PUT", "GET", "POST"))
"""The requests that make a part of the old value, that ask for the sizes of parts, and that end an upload."""
BEGIN, PART = {"method": "POST", "query": "^uploads"}, {"method": "PUT", "query": "^partNumber=[0-9]*&uploadId=[^&]*$"}
"""Those that begin an upload, and that send a part."""
AGAIN = Fault()


def noise(size=SIZE):
    return np.random.default_rng(1).integers(1, 256, size, "u1")


def create(place, values=None, **how):
    """Store one shard; return it as an array that is read by way of Python, and its values."""
    values = noise() if values is None else values
    how = {"chunks": (CHUNK,), "shards": values.shape, "dtype": "u1", "fill_value": 0, "compressors": None, **how}
    array = omnizarr.create_array(f"{place.url}/a", shape=values.shape, storage_options=place.options, **how)
    array[...] = values
    return by("python", place), values


def by(fetch, place, **options):
    with omnizarr.config.set({"fetch": fetch}):
        array = omnizarr.open_array(f"{place.url}/a", mode="r+", storage_options={**place.options, **options})
        assert engine.is_remote(array._bind().binding) == (fetch == "native")
        return array


def sent(proxy):
    """Return what was asked for the shard since the last time, and how many bytes of values were sent."""
    names = {("POST", False): "begin", ("PUT", True): "copy", ("PUT", False): "put", ("POST", True): "end",
             ("DELETE", False): "abort", ("GET", True): "sizes"}  # fmt: skip
    asked = [each for each in proxy.log if each.path.endswith("/c/0")]
    proxy.log.clear()
    kinds = [names.get((each.method, "X-Amz-Signature" in each.query), each.method) for each in asked]
    return kinds, sum(int(each.fields.get("content-length", 0)) for each in asked if each.method == "PUT")


def size_of(place):
    with s3_client(place.endpoint) as client:
        return client.head_object(Bucket=place.name, Key="a/c/0")["ContentLength"]


def uploads(place):
    """Return the uploads that have begun and not ended."""
    with s3_client(place.endpoint) as client:
        return client.list_multipart_uploads(Bucket=place.name).get("Uploads", [])


# -- what is sent ----------------------------------------------------------------------------


@pytest.mark.parametrize("codecs", [{"compressors": None}, {"compressors": ZSTD}], ids=["raw", "zstd"])
def test_only_changed_chunks_and_the_index_are_sent(place, proxy, codecs):
    theirs, expected = create(place, **codecs)
    ours = by("native", place.at(proxy.endpoint))
    ours[5] = expected[5] = 77
    kinds, _ = sent(proxy)
    # Once the server is asked whether it keeps conditions, and whether its copies have the right sizes.
    assert kinds == ["GET", "GET", "begin", "copy", "end", "copy", "put", "sizes", "end"]
    for selection in (5, slice(3 * CHUNK, 4 * CHUNK), slice(SIZE - 9, SIZE), slice(40 * CHUNK + 7, 42 * CHUNK, 5)):
        ours[selection] = expected[selection] = 78
        kinds, nbytes = sent(proxy)
        assert kinds[-4:] == ["begin", "copy", "put", "end"]
        assert nbytes < 3 * CHUNK
    np.testing.assert_array_equal(theirs[...], expected)
    np.testing.assert_array_equal(ours[...], expected)
    assert not uploads(place)


def test_other_programs_read_the_result(place, tmp_path):
    zarr = pytest.importorskip("zarr", reason="zarr-python is not installed")
    _, expected = create(place)
    ours = by("native", place)
    for selection in (7, slice(5 * CHUNK, 6 * CHUNK), slice(100, SIZE, SIZE // 3)):
        ours[selection] = expected[selection] = 1
    with s3_client(place.endpoint) as client:
        for key in ("zarr.json", "c/0"):
            path = tmp_path / "a" / key
            path.parent.mkdir(parents=True, exist_ok=True)
            client.download_file(place.name, f"a/{key}", str(path))
    assert size_of(place) > SIZE + 4 * CHUNK  # chunks that are not used any more
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "a", mode="r")[...], expected)
    tensorstore = pytest.importorskip("tensorstore", reason="TensorStore is not installed")
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{tmp_path / 'a'}/"}}
    np.testing.assert_array_equal(tensorstore.open(spec, read=True).result().read().result(), expected)


def test_a_shard_is_made_again_before_a_fifth_of_it_is_unused(place):
    theirs, expected = create(place, chunks=(MIB,))
    ours = by("native", place)
    sizes = []
    for number in range(4):
        ours[number * MIB] = expected[number * MIB] = number + 1
        sizes.append(size_of(place) // MIB)
    assert sizes == [9, 10, 8, 9]
    np.testing.assert_array_equal(theirs[...], expected)


def test_the_last_chunk_of_a_shard_leaves_nothing_unused(place):
    theirs, expected = create(place)
    before = size_of(place)
    for number in range(3):
        by("native", place)[SIZE - 1] = expected[-1] = number
        assert size_of(place) == before
    np.testing.assert_array_equal(theirs[...], expected)


@pytest.mark.parametrize(
    ("selection", "how"),
    [
        (slice(0, SIZE // 2), {}),  # many of its chunks
        (5, {"chunks": (SIZE // 2,)}),  # too little of it stays
        (
            5,
            {
                "shards": None,
                "chunks": (SIZE,),
                "serializer": {
                    "name": "sharding_indexed",
                    "configuration": {
                        "chunk_shape": [CHUNK],
                        "codecs": [{"name": "bytes"}],
                        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
                        "index_location": "start",
                    },
                },
            },
        ),
    ],
    ids=["many chunks", "large chunks", "index at the start"],
)
def test_what_does_not_pay_is_stored_as_a_whole(place, proxy, selection, how):
    theirs, expected = create(place, **how)
    by("native", place.at(proxy.endpoint))[selection] = expected[selection] = 7
    kinds, _ = sent(proxy)
    assert "copy" not in kinds
    np.testing.assert_array_equal(theirs[...], expected)


def test_chunks_come_and_go(place):
    """A missing shard, missing chunks, and chunks that hold nothing but the fill value."""
    theirs, expected = create(place, np.zeros(SIZE, "u1"))
    ours = by("native", place)
    for selection, value in (
        (slice(0, 6 * MIB), noise(6 * MIB)),
        (7 * MIB, 5),
        (slice(CHUNK, 2 * CHUNK), 0),
        (7 * MIB, 0),
        (CHUNK + 1, 9),
    ):
        ours[selection] = expected[selection] = value
        np.testing.assert_array_equal(theirs[...], expected)


# -- other writers ---------------------------------------------------------------------------


@pytest.mark.parametrize("step", [COPY, END], ids=["copy", "end"])
def test_what_another_writer_stores_in_between_is_kept(place, proxy, step):
    theirs, expected = create(place)
    ours = by("native", place.at(proxy.endpoint))
    ours[0] = expected[0] = 7  # the server is known by now
    for number, other in enumerate((by("native", place), theirs)):
        at = MIB * (number + 1)
        proxy.fault(Call(lambda other=other, at=at: other.__setitem__(at, 3)), **step)
        ours[at + 1] = 4
        expected[[at, at + 1]] = 3, 4
        np.testing.assert_array_equal(theirs[...], expected)
    assert not uploads(place)


@pytest.mark.slow
def test_writers_at_the_same_time_lose_nothing(place):
    theirs, expected = create(place)
    count = 4

    def write(writer):
        array = by("native", place, max_retries=5 + writer)  # a client of its own
        for at in range(writer, 24, count):
            array[at * CHUNK : at * CHUNK + 9] = writer + 1

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for at in range(24):
        expected[at * CHUNK : at * CHUNK + 9] = at % count + 1
    np.testing.assert_array_equal(theirs[...], expected)
    assert not uploads(place)


# -- servers ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("step", [COPY, SIZES, END, BEGIN, PART], ids=["copy", "sizes", "end", "begin", "part"])
@pytest.mark.parametrize("status", [403, 501])
def test_servers_that_cannot_are_noticed(place, proxy, step, status):
    theirs, expected = create(place)
    ours = by("native", place.at(proxy.endpoint), **FAST)
    proxy.fault(Answer(status), **step, times=math.inf)
    ours[0] = expected[0] = 7
    assert proxy.struck
    assert sent(proxy)[1] > SIZE
    proxy.heal()
    np.testing.assert_array_equal(theirs[...], expected)
    ours[MIB] = expected[MIB] = 8
    assert "begin" not in sent(proxy)[0]
    np.testing.assert_array_equal(theirs[...], expected)
    assert not uploads(place)


LIST = "<ListPartsResult><Part><PartNumber>1</PartNumber><Size>{}</Size></Part></ListPartsResult>"
COPIED = b"<CopyPartResult><ETag>&quot;1&quot;</ETag></CopyPartResult>"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "body"),
    [
        (COPY, b""),  # it takes a copy for an empty part
        (COPY, COPIED),  # it takes no notice of the condition of a copy
        (SIZES, LIST.format(SIZE + 1).encode()),  # nor of its range
        (END, b"<CompleteMultipartUploadResult/>"),  # nor of the condition of the end
        (END, b"<Error><Code>InternalError</Code></Error>"),
    ],
)
def test_servers_that_say_yes_and_do_something_else_are_noticed(place, proxy, step, body):
    theirs, expected = create(place)
    ours = by("native", place.at(proxy.endpoint), **FAST)
    proxy.fault(Answer(200, body=body), **step, times=math.inf)
    ours[0] = expected[0] = 7
    assert proxy.struck
    np.testing.assert_array_equal(theirs[...], expected)
    assert not uploads(place)


def test_a_real_server_that_takes_no_notice_of_conditions(moto_server):
    place = moto_server.fresh()
    omnizarr.create_array(
        f"{place.url}/a", shape=(SIZE,), shards=(SIZE,), chunks=(CHUNK,), dtype="u1", storage_options=place.options
    )[...] = expected = noise()
    ours = by("native", place)
    ours[0] = expected[0] = 7
    np.testing.assert_array_equal(ours[...], expected)
    assert not uploads(place)


# -- failures --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("fault", [Answer(503, done=True), Reset()], ids=["503", "reset"])
@pytest.mark.parametrize("then", [AGAIN, Answer(412), Answer(404), Answer(503)], ids=["again", "412", "404", "503"])
def test_a_change_is_made_once_when_the_last_answer_is_lost(place, proxy, fault, then):
    theirs, expected = create(place)
    ours = by("native", place.at(proxy.endpoint), **FAST)
    ours[0] = expected[0] = 7
    proxy.heal()
    proxy.fault(fault, **END)
    proxy.fault(then, **END, first=2)
    ours[1] = expected[1] = 8
    kinds, nbytes = sent(proxy)
    assert kinds.count("end") == 2
    assert ("HEAD" in kinds) == (then is not AGAIN), " ".join(kinds)  # the value has a mark of its writer
    assert nbytes < 2 * CHUNK
    np.testing.assert_array_equal(theirs[...], expected)
    assert not uploads(place)


EXPIRED = Answer(400, body=b"<Error><Code>ExpiredToken</Code></Error>")


@pytest.mark.parametrize(
    ("step", "fault"),
    [(COPY, Answer(503)), (COPY, EXPIRED), (BEGIN, EXPIRED), (PART, EXPIRED), (END, EXPIRED)],
    ids=["503", "copy", "begin", "part", "end"],
)
def test_a_server_that_fails_once_gets_the_whole_and_copies_later(place, proxy, step, fault):
    theirs, expected = create(place)
    ours = by("native", place.at(proxy.endpoint), **FAST)
    ours[0] = expected[0] = 7
    sent(proxy)
    proxy.fault(fault, **step, times=math.inf)
    ours[1] = expected[1] = 8
    kinds, nbytes = sent(proxy)
    assert ("abort" in kinds) == (step is not BEGIN)
    assert nbytes > SIZE
    proxy.heal()
    ours[2] = expected[2] = 9
    assert sent(proxy)[0][-4:] == ["begin", "copy", "put", "end"]
    np.testing.assert_array_equal(theirs[...], expected)
    assert not uploads(place)


def test_a_server_that_fails_at_first_is_not_asked_again_at_once(place, proxy):
    theirs, expected = create(place)
    ours = by("native", place.at(proxy.endpoint), **FAST)
    proxy.fault(EXPIRED, **BEGIN, times=math.inf)
    for number in range(3):
        ours[number] = expected[number] = number + 1
        assert ("begin" in sent(proxy)[0]) == (number == 0)
    np.testing.assert_array_equal(theirs[...], expected)


def test_a_change_that_is_given_up_leaves_nothing_behind(place, proxy):
    theirs, expected = create(place)
    array = aio.AsyncArray(by("native", place.at(proxy.endpoint)))
    proxy.fault(Hang(), **COPY, times=math.inf)

    async def main():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(array.setitem(5, 7), 0.5)

    asyncio.run(main())
    deadline = time.monotonic() + 10
    while uploads(place) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not uploads(place)
    np.testing.assert_array_equal(theirs[...], expected)


@pytest.mark.parametrize("how", [{}, {"shards": None, "chunks": (SIZE,)}], ids=["shard", "chunk"])
def test_nothing_is_stored_for_a_missing_shard_that_stays_empty(place, how):
    theirs, expected = create(place, np.zeros(SIZE, "u1"), **how)
    ours = by("native", place)
    ours[5:9] = 0
    with s3_client(place.endpoint) as client:
        assert [each["Key"] for each in client.list_objects_v2(Bucket=place.name)["Contents"]] == ["a/zarr.json"]
    np.testing.assert_array_equal(theirs[...], expected)


# -- any sequence ----------------------------------------------------------------------------

_WRITER = """
import json, sys
import omnizarr
array = omnizarr.open_array(sys.argv[1], mode="r+", storage_options=json.loads(sys.argv[2]))
print("ready", flush=True)
for line in sys.stdin:
    start, stop, step, value = map(int, line.split())
    array[start:stop:step] = value
    print("done", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("codecs", [{}, {"compressors": ZSTD}], ids=["raw", "zstd"])
def test_any_sequence_of_changes_is_that_of_numpy_also_if_writers_are_killed(place, codecs):
    """Three writers by turns, of which one is another process that is killed while it may be storing."""
    rng = np.random.default_rng(7)
    theirs, expected = create(place, np.repeat(noise(SIZE // 8), 8), **codecs)
    ours = by("native", place)
    command = [sys.executable, "-c", _WRITER, f"{place.url}/a", json.dumps(place.options)]

    def started():
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"OMNIZARR_ENGINE": "native"},
        )  # fmt: skip
        assert process.stdout.readline() == "ready\n"
        return process

    other = started()
    for number in range(runs(8)):
        start = int(rng.integers(SIZE))
        stop = min(SIZE, start + int(rng.choice([1, 100, CHUNK, 3 * CHUNK, SIZE // 2])))
        part, value = slice(start, stop, int(rng.choice([1, 1, 7]))), int(rng.integers(256))
        match rng.integers(5):
            case 0 | 1:
                ours[part] = expected[part] = value
            case 2:
                theirs[part] = expected[part] = value
            case 3:
                with ours.writer(memory=2 * ours.shards[0]) as writer:
                    writer[part] = expected[part] = value
            case _:
                other.stdin.write(f"{part.start} {part.stop} {part.step} {value}\n")
                other.stdin.flush()
                if rng.random() < 0.5:
                    time.sleep(rng.uniform(0, 0.2))
                    other.kill()
                    other.communicate()
                    other = started()
                    found, new = theirs[...], expected.copy()
                    new[part] = value
                    expected = new if (found == new).all() else expected  # all of it, or nothing
                else:
                    assert other.stdout.readline() == "done\n"
                    expected[part] = value
        found = (theirs, ours)[number % 2][...]
        assert np.array_equal(found, expected), (number, part, value)
    other.communicate()
