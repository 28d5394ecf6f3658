"""The one walk through a hierarchy, and what every verb that uses it makes of stores that cannot list or fail."""

import threading
from itertools import islice

import pytest

from omnizarr.nodes.walk import walk

TREE = {"": ["a", "d"], "a": ["a/b", "a/c"], "a/b": [], "a/c": ["a/c/e"], "d": ["d/f"]}
"""Nodes below each group; the others are arrays."""


def below(node):
    return None if node not in TREE else iter(TREE[node])


def recursively(node, depth=0):
    for inner in TREE.get(node, ()):
        yield depth, inner
        yield from recursively(inner, depth + 1)


class TestWalk:
    @pytest.mark.parametrize("concurrency", [1, 4])
    @pytest.mark.parametrize("max_depth", [None, 0, 1, 2, 9])
    def test_a_group_comes_before_its_members(self, max_depth, concurrency):
        expected = [(depth, node) for depth, node in recursively("") if max_depth is None or depth <= max_depth]
        assert list(walk("", below, max_depth=max_depth, concurrency=concurrency)) == expected

    @pytest.mark.parametrize(("max_depth", "expected"), [(0, {""}), (1, {"", "a", "d"}), (None, set(TREE))])
    @pytest.mark.parametrize("concurrency", [1, 4])
    def test_each_group_is_looked_into_once_and_none_too_deep(self, max_depth, expected, concurrency):
        looked_into = []

        def listed(node):
            looked_into.append(node)
            yield from TREE[node]

        walked = walk(
            "", lambda node: listed(node) if node in TREE else None, max_depth=max_depth, concurrency=concurrency
        )
        list(walked)
        assert sorted(looked_into) == sorted(expected)

    def test_a_near_group_is_looked_into_when_the_walk_gets_there(self):
        looked_into = []

        def listed(node):
            looked_into.append(node)
            return below(node)

        assert [node for _, node in islice(walk("", listed), 2)] == ["a", "a/b"]
        assert "d" not in looked_into

    def test_far_groups_of_a_level_are_looked_into_at_the_same_time(self):
        both = threading.Barrier(2, timeout=20)

        def listed(node):
            if node in {"a", "d"}:
                both.wait()
            yield from TREE[node]

        found = walk("", lambda node: listed(node) if node in TREE else None, concurrency=4)
        assert len(list(found)) == 6

    @pytest.mark.parametrize("concurrency", [1, 2])
    def test_a_hierarchy_may_be_deeper_than_the_stack_of_python(self, concurrency):
        walked = walk(0, lambda node: [node + 1] if node < 5000 else None, concurrency=concurrency)
        assert list(walked) == [(depth, depth + 1) for depth in range(5000)]

    @pytest.mark.parametrize("concurrency", [1, 4])
    def test_what_the_store_raises_is_raised(self, concurrency):
        def listed(node):
            if node == "d":
                raise OSError("the store is gone")
            yield from TREE[node]

        with pytest.raises(OSError, match="gone"):
            list(walk("", lambda node: listed(node) if node in TREE else None, concurrency=concurrency))
