"""An array that grows in an object store, read in an event loop, and by way of a cache.

The bucket is one of obstore, in memory, so that this runs anywhere; a URL (``s3://bucket/path``) does the same with
credentials from the environment.

Run it by ``python examples/cloud.py [URL]``, of a place where nothing is yet; it needs ``omnizarr[cloud]``.
"""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from obstore.store import MemoryStore

import omnizarr
from omnizarr import aio
from omnizarr.storage import CacheStore, MetricsStore, resolve

BUOYS, HOURS = 5, 24


def main():
    place = sys.argv[1] if len(sys.argv) > 1 else MemoryStore()
    bucket = MetricsStore(resolve(place, "a")[0])  # counts requests

    root = omnizarr.create_group(bucket, attributes={"title": "buoys"})
    for name in ("height", "period"):
        # Five blocks share a chunk: their writers are kept apart.
        root.create_array(name, shape=(0, BUOYS), chunks=(5 * HOURS, BUOYS), dtype="float32")
    print(f"created: {bucket.report().total.requests} requests")

    # Each day is written by a thread of its own, with an array of its own, in any order.
    def write(day):
        block = np.full((HOURS, BUOYS), day, "float32")
        return day, omnizarr.open(bucket)["height"].append(block).region[0]

    with ThreadPoolExecutor(8) as pool:
        landed = dict(pool.map(write, range(20)))
    heights = omnizarr.open(bucket, mode="r")["height"]
    assert all((heights[rows] == day).all() for day, rows in landed.items())
    print(f"appended: {len(landed)} blocks by 8 threads, each there once: {heights.shape}")

    print(f"in an event loop: a mean of {asyncio.run(mean(place)):g}")

    cache = CacheStore(bucket)
    height = omnizarr.open(cache, mode="r")["height"]
    for time in ("first", "again"):
        bucket.reset()
        height[:]
        total = bucket.report().total
        print(f"read {time}: {total.requests} requests, {total.nbytes:,} bytes moved")
    print(cache.info())


async def mean(place):
    root = await aio.open_group(place, mode="r")
    height, period = await asyncio.gather(root.getitem("height"), root.getitem("period"))
    heights, _ = await aio.read_many([(height, ...), (period, ...)])
    return float(heights.mean())


if __name__ == "__main__":
    main()
