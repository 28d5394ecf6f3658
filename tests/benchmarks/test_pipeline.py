"""The benchmark of codec pipelines runs, and compares with the fastest other; figures are not looked at."""

import pytest

from benchmarks import pipeline, running
from benchmarks.running import Report, Result
from benchmarks.workloads import BY_NAME

pytest.importorskip("zarr", reason="zarr-python is not installed")


def test_ratio_is_to_the_fastest_other():
    result = Result(BY_NAME["read-tiny-raw"], BY_NAME["read-tiny-raw"].dataset)
    result.values.update({"zarr-python": [4.0, 4.0], "zarrs-python": [2.0, 3.0], pipeline.OURS: [1.0, 1.5]})
    assert pipeline.ratio(result) == pytest.approx(0.5)
    del result.values[pipeline.OURS]
    assert pipeline.ratio(result) is None


def test_workloads_are_those_that_move_chunks():
    names = {one.name for one in pipeline.workloads(None)}
    assert {"read-small-raw", "write-shards-raw", "rows", "elements", "latency"} <= names
    assert not names & {"windows-cached", "open-nodes", "import"}


def test_table_has_a_row_for_each_workload(tmp_path):
    report = running.run(
        [BY_NAME["read-tiny-raw"]], tmp_path, scale=1024, rounds=1, budget=1, peers=("zarr-python", pipeline.OURS)
    )
    assert set(report.versions) == {"zarr-python", pipeline.OURS}
    text = pipeline.markdown(Report.from_json(report.to_json()))
    assert "of 1 rows" in text
    assert text.count("4,096 chunks of 1 KiB") == 1
