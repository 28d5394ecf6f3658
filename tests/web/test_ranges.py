"""Headers of requests for parts: RFC 9110, section 14."""

import pytest

from omnizarr.web.ranges import Asked, parse

ETAG = '"a"'


@pytest.mark.parametrize(
    ("text", "ranges"),
    [
        ("bytes=0-0", ((0, 0),)),
        ("bytes=5-", ((5, None),)),
        ("bytes=-3", ((None, 3),)),
        ("BYTES=0-1 , 3-4,", ((0, 1), (3, 4))),
        ("", None),
        ("bytes", None),
        ("bytes=", None),
        ("bytes=-", None),
        ("bytes=3-2", None),
        ("bytes=0-1,x", None),
        ("bytes=+1-2", None),
        ("bytes=٣-٤", None),
        ("rows=0-1", None),
        ("bytes=" + "0-0," * 65, None),
        ("bytes=" + "9" * 30 + "-", None),
    ],
)
def test_ranges_are_parsed(text, ranges):
    assert parse(text) == ranges


@pytest.mark.parametrize(
    ("text", "size", "parts"),
    [
        ("bytes=0-3", 10, [(0, 4)]),
        ("bytes=8-99", 10, [(8, 10)]),
        ("bytes=-3", 10, [(7, 10)]),
        ("bytes=-99", 10, [(0, 10)]),
        ("bytes=10-", 10, []),
        ("bytes=-0", 10, []),
        ("bytes=0-", 0, []),
        ("bytes=-1", 0, []),
        ("bytes=10-12,2-3", 10, [(2, 4)]),
        ("bytes=6-7,0-1", 10, [(6, 8), (0, 2)]),
        ("bytes=0-9,0-9", 10, None),
        ("rows=0-1", 10, None),
    ],
)
def test_parts_are_within_the_value(text, size, parts):
    assert Asked(parse(text), None, None, None).parts(ETAG, size) == parts


def test_a_client_with_another_version_gets_all_of_this_one():
    ranges = parse("bytes=0-1")
    assert Asked(ranges, None, None, ETAG).parts(ETAG, 10) == [(0, 2)]
    for other in ('"b"', 'W/"a"', "Tue, 24 Nov 2026 02:00:00 GMT"):
        assert Asked(ranges, None, None, other).parts(ETAG, 10) is None


@pytest.mark.parametrize("text", ['"a"', "*", '"b", "a"', 'W/"a"', '"b",W/"a"'])
def test_a_version_that_the_client_has_is_known(text):
    assert Asked(None, None, text, None).is_known(ETAG)


@pytest.mark.parametrize(
    ("text", "fails"), [('"a"', False), ("*", False), ('"b", "a"', False), ('W/"a"', True), ('"b",W/"a"', True)]
)
def test_a_weak_tag_matches_no_condition_for_a_version(text, fails):
    assert Asked(None, text, None, None).fails(ETAG) == fails


@pytest.mark.parametrize("text", ['"b"', "a", "", '"ab"'])
def test_other_versions_are_not(text):
    assert not Asked(None, None, text, None).is_known(ETAG)
    assert Asked(None, text, None, None).fails(ETAG)
