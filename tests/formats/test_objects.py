"""What Python objects are, by the codec that stores them."""

from __future__ import annotations

import pytest

from omnizarr.errors import MetadataError
from omnizarr.formats.filters import Step
from omnizarr.formats.objects import object_codec, read_objects
from omnizarr.formats.reader import Reader
from omnizarr.model import Named, strict

RAGGED = Named("omnizarr.vlen_array", {"data_type": "int32"})


@pytest.mark.parametrize(
    ("codec", "parameters", "meaning"),
    [
        ("vlen-utf8", {}, (Named("string"), "<")),
        ("vlen-bytes", {}, (Named("bytes"), "<")),
        ("categorize", {"labels": ["a"]}, (Named("string"), "<")),
        ("vlen-array", {"dtype": ">i4"}, (RAGGED, ">")),
        ("json2", {}, (Named("omnizarr.object", {"object_codec": "json2"}), "<")),
        ("pickle", {}, (Named("omnizarr.object", {"object_codec": "pickle"}), "<")),
    ],
)
def test_the_codec_tells_what_objects_are(codec, parameters, meaning):
    steps = [Step(codec, parameters, "/filters/0"), Step("zlib", {}, "/compressor")]
    assert read_objects(Reader(strict), steps, "/filters", "x") == meaning


def test_objects_without_a_codec_leave_a_note():
    reader = Reader(strict)
    steps = [Step("zlib", {}, "/compressor")]
    assert object_codec(steps) is None
    assert read_objects(reader, steps, "/filters", "x") == (Named("omnizarr.object", {"object_codec": None}), "<")
    assert [note.pointer for note in reader.notes] == ["/filters"]


@pytest.mark.parametrize("dtype", [None, "i4", 3])
def test_ragged_arrays_of_no_type_are_an_error(dtype):
    steps = [Step("vlen-array", {"dtype": dtype}, "/filters/0")]
    with pytest.raises(MetadataError) as caught:
        read_objects(Reader(strict), steps, "/filters", "x")
    assert caught.value.pointer == "/filters/0/dtype"
    problems = []
    assert read_objects(Reader(problems.append), steps, "/filters", "x")[0].name == "omnizarr.vlen_array"
    assert len(problems) == 1
