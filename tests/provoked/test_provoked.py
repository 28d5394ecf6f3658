"""Each error that a user meets says where, what was found, what was expected and what to do."""

import pytest

from omnizarr.cli import main
from tests.provoked import chunks, documents, places, servers, values
from tests.provoked.cases import CASES

TABLES = (places, values, documents, chunks, servers)


@pytest.fixture(autouse=True)
def _servers():
    yield
    servers.close()


def test_table_is_large():
    assert {case.prepare.__module__ for case in CASES} == {table.__name__ for table in TABLES}
    assert len({case.name for case in CASES}) == len(CASES)
    assert len(CASES) >= 94


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_error_says_where_what_and_what_to_do(case, tmp_path, capsys):
    made = case.prepare(tmp_path)
    provoke, command = made if isinstance(made, tuple) else (made, None)
    with pytest.raises(case.kind) as caught:
        provoke()
    case.check(caught.value, tmp_path)
    if command is not None:
        assert main([str(word) for word in command]) in (1, 2)
        case.check_typed(capsys.readouterr().err, tmp_path)
