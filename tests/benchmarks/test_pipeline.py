"""The benchmark of codec pipelines runs, and compares with the fastest other; figures are not looked at."""

import pytest

from benchmarks import pipeline, running
from benchmarks.running import Report, Result
from benchmarks.workloads import BY_NAME, WORKLOADS

pytest.importorskip("zarr", reason="zarr-python is not installed")


def test_ratio_is_to_the_fastest_other():
    result = Result.of(BY_NAME["read-tiny-raw"], 1)
    result.values.update({"zarr-python": [4.0, 4.0], "zarrs-python": [2.0, 3.0], pipeline.OURS: [1.0, 1.5]})
    assert pipeline.ratio(result) == pytest.approx(0.5)
    del result.values[pipeline.OURS]
    assert pipeline.ratio(result) is None


def test_rows_are_those_that_move_chunks():
    report = Report({}, {}, {}, [Result.of(one, 16) for one in WORKLOADS])
    names = {one.workload.name for one in pipeline.rows(report)}
    assert {"read-small-raw", "write-shards-raw", "rows", "elements", "latency"} <= names
    assert not names & {"windows-cached", "open-nodes", "import"}


def test_table_has_a_row_for_each_workload(tmp_path):
    report = running.run(
        [BY_NAME["read-tiny-raw"]], tmp_path, scale=1024, rounds=1, budget=1, peers=("zarr-python", pipeline.OURS)
    )
    assert set(report.versions) == {"zarr-python", pipeline.OURS}
    text = pipeline.markdown(Report.from_json(report.to_json()))
    assert "of 1 rows" in text
    assert text.count("| read 4 chunks of 1 KiB, raw |") == 1


def test_table_says_in_which_row_it_is_furthest_behind():
    slow, fast = Result.of(BY_NAME["read-tiny-raw"], 1), Result.of(BY_NAME["rows"], 1)
    slow.values.update({"zarr-python": [2.0], pipeline.OURS: [3.0]})
    fast.values.update({"zarr-python": [2.0], pipeline.OURS: [1.0]})
    text = pipeline.markdown(Report({}, {"zarr-python": "3", pipeline.OURS: "3"}, {}, [slow, fast]))
    assert "ahead of all others in 1 of 2 rows; furthest behind, 1.50 ×: read 4,096 chunks of 1 KiB, raw." in text
