"""Places on the S3 server, for tests of several modules."""

import pytest

from tests.faultproxy import FaultProxy


@pytest.fixture
def place(s3_server):
    return s3_server.fresh()


@pytest.fixture
def proxy(s3_server):
    with FaultProxy(s3_server.endpoint) as proxy:
        yield proxy
