"""Blosc buffers as zarr-python 1.1.0 writes them, for tests/codecs/test_blosc_frames.py.

Made in the environment of zarr 1.1.0 that tests/corpus/make/zarr1.py describes; its C-Blosc is a 1.10.0.dev with
snappy 1.1.1 and Zstandard 0.7.4:

env/bin/python tests/codecs/make/blosc_frames.py
"""

import os
from pathlib import Path

import numpy as np
from zarr import blosc

TARGET = Path(__file__).parent.parent / "data" / "blosc_frames.npz"
MIXED, SMOOTH, NOISE, HALF = "mixed", "smooth", "noise", "half"


def content(kind, item_size, count):
    """Return items of which the first bytes are noise and all others can be compressed; or all; or none; or half."""
    random = np.random.RandomState(0)
    items = np.zeros((count, item_size), dtype="u1")
    if kind == MIXED:
        items[:, 0] = random.randint(0, 256, count) if item_size > 2 else np.arange(count) % 7
        items[:, item_size // 2] += (np.arange(count) // 50 % 256).astype("u1")
    elif kind == SMOOTH:
        items[:, 0] = np.arange(count) // 50 % 256
    elif kind == NOISE:
        items[:] = random.randint(0, 256, items.shape)
    else:
        items[: count // 2] = random.randint(0, 256, (count // 2, item_size))
    return items.tobytes()


def starts(buffer):
    """Return where the blocks start."""
    size, block = np.frombuffer(buffer[4:12], "<i4")
    return np.frombuffer(buffer[16 : 16 + 4 * -(-size // block)], "<i4").tolist()


def cases():
    """Yield name, what is compressed, item size, level, shuffle, size of blocks (0: one block), threads."""
    for shuffle in (0, 1, 2):
        for item_size in (1, 2, 3, 4, 8, 16, 17, 255, 300):
            data = content(MIXED, item_size, 256 if item_size < 255 else 16)
            yield f"items_of_{item_size}-shuffle{shuffle}", data, item_size, 5, shuffle, 0, 1
        page = content(MIXED, 4, 1003)
        yield f"blocks-shuffle{shuffle}", page, 4, 5, shuffle, 1024, 1  # the last holds 235 items
        yield f"small_blocks-shuffle{shuffle}", content(MIXED, 2, 300), 2, 5, shuffle, 128, 1
        yield f"short_last_block-shuffle{shuffle}", content(MIXED, 8, 513), 8, 5, shuffle, 2048, 1
        yield f"some_blocks_stored-shuffle{shuffle}", content(HALF, 4, 1000), 4, 5, shuffle, 512, 1
        yield f"out_of_order-shuffle{shuffle}", content(SMOOTH, 4, 60000), 4, 5, shuffle, 2048, 8
        yield f"level1-shuffle{shuffle}", page, 4, 1, shuffle, 0, 1
        yield f"level9-shuffle{shuffle}", page, 4, 9, shuffle, 0, 1
        yield f"copy_of_noise-shuffle{shuffle}", content(NOISE, 4, 100), 4, 9, shuffle, 0, 1
        yield f"copy_of_level0-shuffle{shuffle}", content(MIXED, 4, 100), 4, 0, shuffle, 0, 1
        yield f"copy_of_little-shuffle{shuffle}", content(MIXED, 4, 31), 4, 5, shuffle, 0, 1


def compressed(cname, data, item_size, level, shuffle, block_size, threads):
    """Return the buffer, whose blocks are out of order if it is made by threads."""
    os.environ["BLOSC_BLOCKSIZE"] = str(block_size or len(data))  # what the library once heard, it keeps
    blosc.set_nthreads(threads)
    for _ in range(20000):
        buffer = bytes(blosc.compress(np.frombuffer(data, f"S{item_size}"), cname.encode(), level, shuffle))
        if threads == 1 or starts(buffer) != sorted(starts(buffer)):
            break
    if cname != "snappy":  # snappy 1.1.1, as a compiler of today builds it, misreads a few of its own streams
        found = np.empty(len(data), dtype="u1")
        blosc.decompress(buffer, found)
        assert found.tobytes() == data
    return buffer


recorded = {}
for cname in ("snappy", "zstd"):
    for name, data, *options in cases():
        buffer = compressed(cname, data, *options)
        if buffer[2] & 2 and not name.startswith("copy"):
            assert cname == "snappy", name  # it wants more room than a buffer of one stream has, and so never gets it
            continue
        assert not name.startswith("out_of_order") or starts(buffer) != sorted(starts(buffer))
        recorded[f"{cname}-{name}/buffer"] = np.frombuffer(buffer, "u1")
        recorded[f"{name.split('-')[0]}/data"] = np.frombuffer(data, "u1")
np.savez_compressed(str(TARGET), **recorded)
