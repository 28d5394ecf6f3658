"""Clusters of dask.distributed on this machine, for tests that run tools on them."""

import contextlib

import pytest

distributed = pytest.importorskip("distributed", reason="distributed is what this is about")


@contextlib.contextmanager
def cluster(workers):
    """Start processes that work, and one thread here that schedules."""
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1", silence_logs=50
        ) as started,
        distributed.Client(started, set_as_default=False) as client,
    ):
        yield client
