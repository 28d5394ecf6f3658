"""`tests.conformance.sentences`: taking documents apart."""

import textwrap

import pytest

from tests.conformance.sentences import digest, find, split

pytestmark = pytest.mark.rules


def found(text):
    return [
        (s.section, "example" if s.is_example else "rule", " ".join(s.text.split()))
        for s in find(textwrap.dedent(text))
    ]


def test_rules_have_the_word_as_a_word_of_its_own():
    text = """
    One
    ===

    A key must be text. Keys MUST NOT be
    empty. The member `must_understand` requires nothing. A mustard is not a rule. It is
    required. It SHALL pass.
    """
    assert [rule[2] for rule in found(text)] == [
        "A key must be text.",
        "Keys MUST NOT be empty.",
        "It is required.",
        "It SHALL pass.",
    ]


@pytest.mark.parametrize(
    ("prose", "expected"),
    [
        ('It is "." or "/". If not, no.', ['It is "." or "/".', "If not, no."]),
        ("Some, e.g. Blosc, i.e. one. Two.", ["Some, e.g. Blosc, i.e. one.", "Two."]),
        ('Only ".". E.g., "a".', ['Only ".".', 'E.g., "a".']),
        ("Version 3.0 is out, etc. and so on.", ["Version 3.0 is out, etc. and so on."]),
        ("Is it? (It is.) *Yes.* No!", ["Is it?", "(It is.)", "*Yes.*", "No!"]),
        ("The order is (0, 0), ..., (1, 1).", ["The order is (0, 0), ..., (1, 1)."]),
    ],
)
def test_sentences_end_where_they_end(prose, expected):
    assert split(prose) == expected


def test_digest_does_not_depend_on_wrapping_and_markup():
    assert digest('The ``name`` must be "a".') == digest("The *name*\n  must be “a”.") == digest("the name MUST be a.")
    assert digest("The name must be a.") != digest("The name must be b.")


def test_items_of_lists_are_sentences_of_their_own():
    text = """
    Names
    -----

    Constraints:

    * must not be the empty string ("")

    * must consist only of characters
      of a set

    - must be short
    1. must be first
    """
    assert [rule[2] for rule in found(text)] == [
        'must not be the empty string ("")',
        "must consist only of characters of a set",
        "must be short",
        "must be first",
    ]


def test_definitions_stand_below_their_terms():
    text = """
    Metadata
    ========

    shape
        It must be a list.

    ``chunk_grid``

        It must be an object.

        It must be small.

    It must have all of them.
    """
    assert found(text) == [
        ("Metadata, shape", "rule", "It must be a list."),
        ("Metadata, chunk_grid", "rule", "It must be an object."),
        ("Metadata, chunk_grid", "rule", "It must be small."),
        ("Metadata", "rule", "It must have all of them."),
    ]


def test_headings_of_pages_saved_as_text_end_with_a_sign():
    text = """
    Array metadata#

    It must be there.

    zarr_format#

    It must be 3.

    Group metadata#

    It must be 4.
    """
    assert [rule[0] for rule in found(text)] == ["Array metadata", "Array metadata, zarr_format", "Group metadata"]


def test_markdown_has_headings_fences_and_lines_of_prose():
    text = """
    # One {#one}
    It must be
    one. <!-- It must not be two. -->
    ## Two
    ```
    this must not be a rule
    ```
    Then it must be done.
    """
    assert found(text) == [
        ("One", "rule", "It must be one."),
        ("Two", "example", "``` this must not be a rule ```"),
        ("Two", "rule", "Then it must be done."),
    ]


def test_literal_blocks_and_objects_are_examples_and_what_announces_them_is_not():
    text = """
    One
    ---

    For example, this has 2 members::

        {
            "must": "shall",

            "b": 1
        }

    For example, 3 more:

    {
        "c": 2
    }
    """
    assert found(text) == [
        ("One", "example", '{ "must": "shall", "b": 1 }'),
        ("One", "example", '{ "c": 2 }'),
    ]


def test_tables_are_examples_if_they_are_called_so():
    text = """
    Keys
    ----

    .. list-table:: All keys
       :header-rows: 1

       * - must
         - be

    .. list-table:: Key example
       :header-rows: 1

       * - a
         - b

    Prose.

    Other example#

    Type

    Key

    Array

    a/b

    Note

    It must end.
    """
    assert [(kind, text.split()[-1]) for _, kind, text in found(text)] == [
        ("example", "b"),
        ("example", "a/b"),
        ("rule", "end."),
    ]


def test_examples_in_prose_are_concrete():
    text = """
    One
    ---

    For example, stores are slow. For example, "a" is a name. Names, e.g. ``b``, are short. Examples are introduced
    with the words "for example". An example might be [1, 2].
    """
    assert [(kind, text) for _, kind, text in found(text)] == [
        ("example", 'For example, "a" is a name.'),
        ("example", "Names, e.g. ``b``, are short."),
        ("example", "An example might be [1, 2]."),
    ]


def test_a_sentence_that_a_section_repeats_has_a_number():
    text = """
    One
    ---

    It must be. It is. It must be.

    Two
    ---

    It must be.
    """
    first, second, third = (sentence.id for sentence in find(textwrap.dedent(text)))
    assert second == f"{first}-2"
    assert third == first.replace("one", "two")
