"""No variable keeps an iterator with requests under way: after Ctrl-C its traceback would, and they would go on.

A loop holds its iterator on Python's stack, which an exception clears. Variables stay: the traceback has them.
"""

import ast
from pathlib import Path

import pytest

pytestmark = pytest.mark.rules

SOURCE = Path(__file__).parents[2] / "src/omnizarr"
REQUESTS = {"gather", "results", "get_many", "get_many_within", "load_children", "by_name", "walk", "_children"}
"""Functions of these names yield answers of a store while further requests are under way."""
OTHERS = {
    ("stores/remote/zarr_python.py", "asyncio.gather"),
    ("nodes/consolidated.py", "gather"),
    ("tools/repair/copies.py", "consolidated.gather"),  # a dictionary
    ("tools/streaming/executors.py", "self._client.gather"),  # of dask
    ("tools/digest/digester.py", "walk"),  # of blocks
    ("netcdf/layouts/loading.py", "scopes.by_name"),
}
"""Others of the same names."""
WALKS = {"walk", "walks.walk", "describe.walk", "consolidated.walk", "source.walk", "self._shown.walk"}


def test_no_variable_and_no_comprehension_keeps_requests():
    found = [place for path in SOURCE.rglob("*.py") for place in kept(path)]
    assert not found, "\n".join(found)


def kept(path):
    """Return where a call of `REQUESTS` is not used at once by a loop, another call, `return` or `yield from`."""
    tree = ast.parse(path.read_text("utf-8"))
    above = {below: node for node in ast.walk(tree) for below in ast.iter_child_nodes(node)}
    name = path.relative_to(SOURCE).as_posix() if path.is_relative_to(SOURCE) else path.name
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or (called := ast.unparse(call.func)).rpartition(".")[2] not in REQUESTS:
            continue
        if (name, called) in OTHERS or (called.endswith("walk") and called not in WALKS):
            continue
        user = above[call]
        while isinstance(user, ast.IfExp):
            user = above[user]
        is_kept = isinstance(user, ast.Assign) and all(isinstance(each, ast.Name) for each in user.targets)
        if is_kept or isinstance(user, (ast.comprehension, ast.NamedExpr, ast.AnnAssign)):
            yield f"{name}:{call.lineno}: {ast.unparse(call)[:60]}"


@pytest.mark.parametrize(
    "code",
    ["found = pool.gather(f, x, 3)", "[x for x in detection.load_children(w, n, p)]", "a = b if c else get_many(x)"],
)
def test_kept_requests_are_found(code, tmp_path):
    (tmp_path / "some.py").write_text(code)
    assert len(list(kept(tmp_path / "some.py"))) == 1


@pytest.mark.parametrize("code", ["for x in pool.gather(f, y, 3): pass", "d = dict(pool.gather(f, x, 3))"])
def test_requests_that_are_used_at_once_are_not_kept(code, tmp_path):
    (tmp_path / "some.py").write_text(code)
    assert list(kept(tmp_path / "some.py")) == []
