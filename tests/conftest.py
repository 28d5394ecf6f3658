"""Settings that hold for every test."""

import os
import shutil
import signal
import tempfile
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

from tests.servers import (  # noqa: F401 - fixtures of every test, and what the end of a run says of them
    azurite_server,
    gcs_server,
    http_server,
    moto_server,
    pytest_terminal_summary,
    s3_server,
)

SERVERS = {"azurite_server", "gcs_server", "http_server", "moto_server", "s3_server"}

# No deadline: machines that run tests are slow now and then, and chunks hit the disk.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}

# `CI`: the same examples in every run, so that a red run can be repeated.
settings.register_profile("ci", derandomize=True, print_blob=True, **_COMMON)
settings.register_profile("dev", **_COMMON)
# `make test`: few examples.
settings.register_profile("quick", max_examples=10, **_COMMON)
# `make test-all`: many, the same ones each time.
settings.register_profile("all", max_examples=300, derandomize=True, print_blob=True, **_COMMON)
# `HYPOTHESIS_PROFILE=thorough`: many more examples, for a night.
settings.register_profile("thorough", max_examples=2000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "dev"))

# Tests that a shell starts in the background ignore Ctrl-C, and so would the programs that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    """Let workers run tests again without a message to the main process about each test, which takes 10 to 300 ms."""
    if hasattr(config, "workerinput") and config.pluginmanager.hasplugin("rerunfailures"):
        import pytest_rerunfailures

        config.failures_db.sock.close()
        config.failures_db = pytest_rerunfailures.StatusDB()


def pytest_report_header(config):
    """Say how much room there is: tests on a full disk fail by the thousand, and pytest cannot write why."""
    where = Path(config.option.basetemp or tempfile.gettempdir())
    return f"free space: {shutil.disk_usage(where.absolute().parent).free / 1e9:.1f} GB for {where}"


def pytest_collection_modifyitems(items):
    """Mark what a sample of a long table leaves out as slow (the same cases in every run), and what uses servers."""
    for item in items:
        sampled = item.get_closest_marker("sampled")
        if sampled and crc32(item.nodeid.encode()) % sampled.args[0]:
            item.add_marker(pytest.mark.slow)
        values = item.callspec.params.values() if hasattr(item, "callspec") else ()
        if SERVERS & {*getattr(item, "fixturenames", ()), *(value for value in values if isinstance(value, str))}:
            item.add_marker(pytest.mark.server)
