"""What writers that share chunks lose on S3, by omnizarr and by zarr-python, and whether appended blocks are all there.

``python -m benchmarks.object_writers [--runs 50] [--processes 4] [--threads 8] [--blocks 50]`` starts the server that
the tests start (see tests/servers.py) and lets the processes and their threads write disjoint regions of one
array all at once, again and again; then it counts the elements that are wrong.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from itertools import chain
from pathlib import Path

import numpy as np

import omnizarr
from tests import servers
from tests.concurrency import crews, scenarios

LAYOUTS = {
    "uncompressed chunks": {"compressors": None},
    "compressed chunks": {},
    "shards": {"shards": scenarios.SHARDS},
}
COLUMNS = "{:14} {:20} {:>6} {:>12} {:>16} {:>10} {:>8}"


def open_ours(place, name):
    return omnizarr.open_array(f"{place.url}/{name}", mode="r+", storage_options=dict(place.options))


def open_theirs(place, name):
    import zarr
    from obstore.store import S3Store
    from zarr.storage import ObjectStore

    options = {key: value for key, value in place.options.items() if key != "allow_http"}
    bucket = S3Store(place.name, prefix=name, config=options, client_options={"allow_http": True})
    return zarr.open_array(ObjectStore(bucket), mode="r+")


PEERS = {
    "omnizarr": open_ours,
    "zarr-python": open_theirs,
}


def write(place, name, opener, seed, process, processes, threads):
    crews.write_disjoint_regions(opener, (place, name), seed, process, processes, threads)


def lose(server, crew, options):
    """Print what each library loses in each layout."""
    wanted = scenarios.values()
    print(COLUMNS.format("library", "layout", "runs", "runs with", "wrong elements", "of", "s / run"))
    print(COLUMNS.format("", "", "", "losses", "", "", ""))
    for layout, how in LAYOUTS.items():
        for library, opener in PEERS.items():
            if library not in options.libraries:
                continue
            place = server.fresh()
            runs = options.runs if library == "omnizarr" else options.peer_runs
            wrong, started = [], time.monotonic()
            for run in range(runs):
                name = f"{run}.zarr"
                array = omnizarr.create_array(
                    f"{place.url}/{name}", storage_options=dict(place.options), shape=scenarios.SHAPE,
                    chunks=scenarios.CHUNKS, dtype="int32", fill_value=0, **how,
                )  # fmt: skip
                crew(
                    write,
                    [(place, name, opener, run, number, crew.size, options.threads) for number in range(crew.size)],
                )
                wrong.append(int((array[...] != wanted).sum()))
            seconds = (time.monotonic() - started) / runs
            lossy = sum(count > 0 for count in wrong)
            print(
                COLUMNS.format(library, layout, runs, lossy, sum(wrong), runs * wanted.size, f"{seconds:.2f}"),
                flush=True,
            )


def append(place, process, blocks):
    array = open_ours(place, "log.zarr")
    return [
        (array.append(np.full(3, 1 + process * blocks + step, "int32")).region, 1 + process * blocks + step)
        for step in range(blocks)
    ]


def append_all(server, crew, options):
    """Print whether all blocks that processes appended at the same time are there, once."""
    place = server.fresh()
    array = omnizarr.create_array(
        f"{place.url}/log.zarr",
        storage_options=dict(place.options),
        shape=(0,),
        chunks=(100,),
        dtype="int32",
        fill_value=0,
    )
    started = time.monotonic()
    landed = list(chain(*crew(append, [(place, number, options.blocks) for number in range(crew.size)])))
    seconds = time.monotonic() - started
    array.refresh()
    values = array[...]
    right = sum(bool((values[region] == value).all()) and int((values == value).sum()) == 3 for region, value in landed)
    expected = crew.size * options.blocks
    print(
        f"omnizarr: {crew.size} processes appended {len(landed)} blocks in {seconds:.1f} s; {right} of {expected} are "
        f"where they were reported, and nowhere else; {values.size} elements of {3 * expected}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--peer-runs", type=int, default=5, help="runs of other libraries")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--blocks", type=int, default=50, help="blocks that each process appends")
    parser.add_argument("--libraries", nargs="+", choices=PEERS, default=list(PEERS))
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as home,
        servers.running_s3(Path(home)) as server,
        crews.Crew(options.processes) as crew,
    ):
        print(f"{server.name}, {options.processes} processes of {options.threads} threads, all sharing every chunk")
        lose(server, crew, options)
        append_all(server, crew, options)


if __name__ == "__main__":
    main()
