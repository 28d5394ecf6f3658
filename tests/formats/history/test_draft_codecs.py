"""URIs of the drafts' codecs: those that programs wrote, and unknown ones."""

from __future__ import annotations

import numpy as np
import pytest

from omnizarr.errors import NotRepresentableError
from omnizarr.formats.filters import Step
from omnizarr.formats.history.draft_codecs import (
    URI_2019,
    URI_2020,
    dump_codecs,
    load_codecs,
    read_codec,
    read_codec_uri,
    write_codec_uri,
)
from omnizarr.formats.reader import Reader
from omnizarr.model import Named, strict


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("https://purl.org/zarr/spec/codec/gzip/1.0", "gzip"),
        ("https://purl.org/zarr/spec/codecs/gzip/1.0", "gzip"),
        ("http://purl.org/zarr/spec/codec/gzip", "gzip"),
        ("https://purl.org/zarr/spec/codec/gzip/1.0/", "gzip"),
        ("https://purl.org/zarr/spec/codec/jenkins_lookup3/1.0", "jenkins_lookup3"),
        ("https://purl.org/zarr/spec/codec/vlen-utf8/1.0", "vlen-utf8"),
        ("https://zarr-specs.readthedocs.io/en/core-protocol-v3.0-dev/protocol/codecs/gzip/v1.0.html", "gzip"),
        ("https://example.org/codecs/blosc/1.0", "blosc"),
        ("https://purl.org/zarr/spec/codec/mine/2.1", "mine"),
        ("https://example.org/codecs/mine/1.0", None),
        ("https://gzip/1.0", None),
        ("https://purl.org/zarr/spec/codec/", None),
        ("https://purl.org/zarr/spec/codec/1.0", None),
        ("", None),
    ],
)
def test_the_last_part_of_a_uri_that_is_no_version_names_the_codec(uri: str, name: str | None) -> None:
    assert read_codec_uri(uri) == name


def test_each_draft_has_its_own_pattern_of_uris() -> None:
    assert write_codec_uri("zlib", URI_2019) == "http://purl.org/zarr/spec/codec/zlib"
    assert write_codec_uri("zlib", URI_2020) == "https://purl.org/zarr/spec/codec/zlib/1.0"
    assert write_codec_uri("https://example.org/x", URI_2020) == "https://example.org/x"


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"level": 1}, "zstd"),
        ({"level": 3, "checksum": True}, "zstd"),
        ({"mode": 4, "compression_kwargs": {"tolerance": 1e-3}}, "zfpy"),
        ({"level": 8, "mode_spec": "auto"}, "pcodec"),
        ({"elementsize": 4}, "shuffle"),
    ],
    ids=["zstd", "zstd-checksum", "zfpy", "pcodec", "shuffle"],
)
def test_uri_of_zarr_python_without_a_name_is_read_by_its_parameters(parameters: dict[str, object], name: str) -> None:
    reader = Reader(strict)
    step = read_codec(reader, "https://purl.org/zarr/spec/codec/", parameters, "/compressor/codec", spec="x")  # type: ignore[arg-type]
    assert (step.id, step.parameters) == (name, parameters)
    assert [note.pointer for note in reader.notes] == ["/compressor/codec"]


@pytest.mark.parametrize("uri", ["https://purl.org/zarr/spec/codec/", "https://example.org/mine", "", "mine"])
def test_a_codec_that_is_unknown_keeps_its_uri_there_and_back(uri: str) -> None:
    step = read_codec(Reader(strict), uri, {"a": 1}, "/compressor", spec="x")
    chain = load_codecs(Reader(strict), [step], "C", 1, np.dtype("<i4"))
    assert chain[0] == Named("bytes", {"endian": "little"})
    assert chain[1].configuration == {"a": 1}
    assert uri in chain[1].name
    compressor = dump_codecs(chain, 1, "the draft").filters[-1]
    assert write_codec_uri(str(compressor["id"]), URI_2020) in (
        uri or "https://purl.org/zarr/spec/codec/",
        URI_2020.format(uri),
    )


def test_a_foreign_uri_with_a_known_name_is_noted() -> None:
    reader = Reader(strict)
    assert read_codec(reader, "https://example.org/gzip", {"level": 2}, "/compressor/codec", spec="x").id == "gzip"
    assert reader.notes[0].message == "the URI 'https://example.org/gzip', read as 'gzip'"


def test_known_codecs_become_those_of_v3() -> None:
    steps = [Step("delta", {"dtype": "<i4"}, "/f/0"), Step("gzip", {"level": 1}, "/compressor")]
    assert load_codecs(Reader(strict), steps, "F", 2, np.dtype("<i4")) == (
        Named("transpose", {"order": [1, 0]}),
        Named("numcodecs.delta", {"dtype": "<i4"}),
        Named("bytes", {"endian": "little"}),
        Named("gzip", {"level": 1}),
    )


def test_what_has_no_place_is_refused_in_the_name_of_the_draft() -> None:
    with pytest.raises(NotRepresentableError, match=r"cannot be written as the v3 draft of 2020: codec 'scale_offset'"):
        dump_codecs([Named("scale_offset"), Named("bytes")], 1, "the v3 draft of 2020")
