"""The cases: each has its own name and a sentence; the encoder agrees with other programs; nothing needs omnizarr."""

import ast
import sys
import tomllib
from collections import Counter
from pathlib import Path

import numcodecs
import numpy as np
import pytest

from zarr_conformance import decoder, squeeze
from zarr_conformance.case import Values, Written
from zarr_conformance.cases import LEVELS, OPTIONAL, RECORDED, all_cases, recorded, usual
from zarr_conformance.randomly import drawn

pytestmark = pytest.mark.rules

SOURCE = Path(__file__).parents[1] / "src" / "zarr_conformance"
ROOT = Path(__file__).parents[3]


def test_each_case_has_a_name_of_its_own():
    assert [name for name, count in Counter(case.id for case in all_cases()).items() if count > 1] == []


def test_there_are_cases_in_each_level_and_more_than_a_thousand_without_the_optional_ones():
    assert {case.level for case in all_cases()} == {*LEVELS}
    assert {*LEVELS} > OPTIONAL
    assert len(usual()) > 1000


def test_each_case_has_a_title_a_sentence_and_something_to_expect():
    for case in all_cases():
        assert case.title, case.id
        assert case.sentence.document, case.id
        assert case.sentence.section, case.id
        assert case.sentence.says.endswith("."), case.id
        assert isinstance(case.expects, Written) or case.files, case.id
        if isinstance(case.expects, Values):
            assert (case.expects.raw is None) != (case.expects.items is None), case.id


def test_cited_sections_of_the_specification_exist():
    table = tomllib.loads((ROOT / "tests" / "conformance" / "v3.toml").read_text("utf-8"))
    sections = {each["section"] for each in table["sentence"]}
    cited = {case.sentence.section for case in all_cases() if case.sentence.document == "Zarr v3.0"}
    assert cited - sections == set()


def test_cases_are_the_same_each_time():
    digests = [case.digest for case in all_cases()]
    all_cases.cache_clear()
    assert [case.digest for case in all_cases()] == digests


def test_recorded_cases_name_their_writer_and_have_no_names_of_others():
    found = recorded.cases()
    assert {case.level for case in found} == {*RECORDED}
    assert len({case.id for case in found}) == len(found) > 1000
    assert all(case.writer and case.licence and case.archive.is_file() for case in found)


def test_random_cases_depend_on_the_seed_alone():
    first = [case.digest for case in drawn(7, 30)]
    drawn(8, 5)
    assert [case.digest for case in drawn(7, 30)] == first
    assert [case.digest for case in drawn(8, 30)] != first


def test_the_package_imports_numpy_and_the_standard_library_alone():
    for path in SOURCE.rglob("*.py"):
        if path.parent.name == "adapters" and path.name != "contract.py":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                root = name.partition(".")[0]
                assert root in {"numpy", "zarr_conformance"} or root in sys.stdlib_module_names, (path, name)


DATA = [
    b"",
    b"a",
    bytes(1000),
    np.arange(5000, dtype="<i4").tobytes(),
    np.random.default_rng(0).bytes(70000),
    b"abcd" * 9000,
]


@pytest.mark.parametrize("data", DATA, ids=lambda data: f"{len(data)}")
def test_other_programs_decode_what_the_encoder_wrote(data):
    if data:  # numcodecs refuses frames of nothing
        assert numcodecs.Zstd().decode(squeeze.zstd(data, {"checksum": True})) == data
        assert numcodecs.LZ4().decode(squeeze.lz4(data, {})) == data
    for cname in ("lz4", "zlib", "zstd", "blosclz"):
        for shuffle in (0, 1, 2):
            made = squeeze.blosc(data, {"cname": cname, "shuffle": shuffle, "typesize": 4})
            assert len(data) < 16 or numcodecs.Blosc().decode(made) == data
    if data and len(data) % 2 == 0:
        assert bytes(numcodecs.Fletcher32().decode(squeeze.CODECS["fletcher32"](data, {}))) == data


def test_checksums_are_those_of_their_texts():
    assert squeeze.crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4
    assert squeeze.crc32c(b"\xff" * 32) == 0x62A8AB43
    assert squeeze.xxh64(b"") == 0xEF46DB3751D8E999
    assert squeeze.xxh64(b"abc") == 0x44BC2CF5AD770999


def test_the_decoder_reads_what_the_encoder_writes(tmp_path):
    read = 0
    for number, case in enumerate(drawn(3, 120)):
        path = case.put(tmp_path / str(number))
        try:
            _, values = decoder.read(path)
        except decoder.DecodingError:  # zstd and others that it need not know
            continue
        if case.selection is None:
            assert case.expects.differences(values.astype(values.dtype.newbyteorder("<")).tobytes()) is None, case.title
            read += 1
    assert read > 20
