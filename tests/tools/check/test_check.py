"""A check finds what is wrong (`tests.damaged`), and nothing where nothing is."""

import json
import random
import re
import threading
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest

import omnizarr
from omnizarr.codecs import registry
from omnizarr.errors import MissingDependencyError, NodeNotFoundError, StoreError
from omnizarr.stores import LocalStore, MemoryStore
from omnizarr.tools.check import inventory
from omnizarr.tools.check.codes import CODES, RAISED_IF_STRICT, REPAIRABLE
from omnizarr.tools.check.registered import ALIASES, is_registered
from omnizarr.tools.check.report import MOST, Finding
from tests import damaged
from tests.fakes import FaultyStore, UnlistableStore, WatchedStore, failing
from tests.interop import written
from tests.traced import peak_of

REGISTERED = {"convention", "multiscales", "spatial", "proj", "license", "uom", "cf", "dggs", "nz"}
"""How codes begin of the conventions that `zarr_conventions` names: `test_registered`, `test_dggs`."""
ROOT = Path(__file__).parents[3]
CORPUS = ROOT / "tests" / "corpus"


def found(report):
    return [(finding.code, finding.path, finding.key) for finding in report]


def alarms(report):
    return [str(finding) for finding in report if finding.severity != "note"]


def memory(files):
    return {key: data for key, data in files.items() if data is not None}


# What is damaged


def test_there_are_at_least_sixty_kinds_of_damage_over_all_formats():
    assert len(damaged.STORES) >= 60
    assert len({case.name for case in damaged.STORES}) == len(damaged.STORES)
    for name in ("v3", "v2", "v1", "v0", "2019", "2020"):
        assert sum(case.name.startswith(name) for case in damaged.STORES) >= 5


def test_each_code_has_a_damaged_hierarchy_or_a_test_of_its_own():
    of_stores = {code for case in damaged.STORES for code, _, _ in case.expected}
    of_digests = {"digest-mismatch", "digest-missing", "digest-unlisted"}
    others = {"missing-package", "ome-zip", "unlisted-store", "unreadable-key", "other-convention"}
    systems = {"ome-systems", "ome-missing-parameters", "ome-scale"}  # test_ome06
    registered = {code for code in CODES if code.partition("-")[0] in REGISTERED}  # test_registered
    assert CODES.keys() - of_stores == {*others, *systems, *of_digests, *registered}


@pytest.mark.parametrize("case", damaged.STORES, ids=str)
def test_damage_is_found_with_its_code_and_key_and_nothing_else(case, tmp_path):
    folder = damaged.build(case, tmp_path)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    report = omnizarr.check(folder, data=case.data)
    assert [expected for expected in case.expected if expected not in found(report)] == []
    others = [f for f in report if f.severity != "note" and (f.code, f.path, f.key) not in case.expected]
    assert [str(finding) for finding in others] == []
    assert report.ok == all(finding.severity != "error" for finding in report)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", [case for case in damaged.STORES if not case.data], ids=str)
def test_damage_seen_by_sizes_is_seen_by_decoding_too(case, tmp_path):
    report = omnizarr.check(damaged.build(case, tmp_path), data=True)
    assert [expected for expected in case.expected if expected not in found(report)] == []


@pytest.mark.parametrize("case", [case for case in damaged.STORES if case.data], ids=str)
def test_damage_within_chunks_takes_decoding(case, tmp_path):
    assert alarms(omnizarr.check(damaged.build(case, tmp_path))) == []


@pytest.mark.parametrize("name", damaged.SOUND)
def test_sound_hierarchy_gives_no_finding(name):
    report = omnizarr.check(memory(damaged.SOUND[name]), data=True, strict=True)
    assert found(report) == []
    assert report.ok
    assert report.chunks == 4
    assert report.missing == 0


JUNK = [None, True, -1, 1.5, 2**70, float("nan"), "", "x", "\udcff", [], [None], [[]], {}, {"name": 3}, {"id": []}]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("junk", JUNK, ids=repr)
@pytest.mark.parametrize("name", damaged.SOUND)
def test_no_member_of_a_document_makes_a_check_fail(name, junk):
    files = memory(damaged.SOUND[name])
    for key, data in files.items():
        document = json.loads(data) if data[:1] == b"{" else {}
        for member in document:
            changed = json.dumps({**document, member: junk}).encode()
            report = omnizarr.check({**files, key: changed}, data=True)
            assert isinstance(str(report), str)
            assert json.loads(report.to_json())["counts"] == report.counts


PIECES = [b"-1", b"null", b"[]", b"{}", b'"x"', b"1e999", b"NaN", b"9" * 30]
KEYS = [
    "zarr.json",
    ".zarray",
    ".zgroup",
    ".zmetadata",
    "meta",
    "a/b/c/zarr.json",
    "a/0",
    "a/c",
    "meta/root.array.json",
]


@pytest.mark.parametrize("seed", range(30))
def test_no_random_damage_makes_a_check_fail(seed):
    rng = random.Random(seed)
    for _ in range(20):
        files = memory(rng.choice(damaged.STORES).files)
        for _ in range(rng.randint(1, 4)):
            key = rng.choice(list(files))
            data = bytearray(files[key])
            place = rng.randrange(len(data) + 1)
            match rng.randrange(5):
                case 0:
                    data[place : place + 1] = rng.randbytes(1)
                case 1:
                    del data[place:]
                case 2:
                    data[place : place + 1] = rng.choice(PIECES)
                case 3:
                    data = bytearray(files[rng.choice(list(files))])
                case 4:
                    key = rng.choice(KEYS)
            files[key] = bytes(data)
        files = {key: data for key, data in files.items() if ".omnizarr-" not in key}
        try:
            report = omnizarr.check(files, data=True)
        except NodeNotFoundError:
            continue
        assert json.loads(report.to_json())["ok"] == report.ok


# What is not


ALLOWED = [
    ("*", "names-differ-by-case", "arrays of datetime64[M] and datetime64[m] in one group"),
    ("*", "bare-nan", "fill values that are not finite, as these writers wrote them"),
    ("*", "undefined-chunks", "arrays without fill value, of which a part was written"),
    ("*", "only-consolidated", "documents were taken away so that only the copies are left"),
    ("draft_zarr/consolidated_only*", "stale-consolidated-metadata", "the group of the copies was taken away too"),
    ("draft_zarr/*", "hidden-filters", "zarr-python keeps filters among the attributes"),
    ("draft_gdal/*", "shuffle-word", "GDAL writes the option as it was typed"),
    ("gdal*", "shuffle-word", "GDAL writes the option as it was typed"),
    ("gdal*", "fill-value-as-string", "GDAL has no larger integers"),
    ("zarr1/*", "legacy-zstd", "zarr 1.1 came with Zstandard 0.7"),
    ("zarrita2023/*", "missing-serializer", "the text of June 2023"),
    ("zarrita2023/*", "missing-endian", "zarrita of 2023"),
    ("zarr300/*", "codec-id", "numcodecs 0.14"),
    ("draft_zarr/*", "codec-uri", "zarr-python before 2.17"),
    ("xtensor*", "missing-byte-order", "xtensor-zarr writes i1 and u1"),
    ("zarr[01]/resized", "chunk-beyond-grid", "zarr before 2 left chunks behind when an array shrank"),
    ("zarr1/interrupted", "temporary-file", "a writer that was killed"),
    ("zarr1/*", "order-not-stored", "zarr 1 stored order F as C"),
    ("zarr1/*", "titled-field", "zarr 1 wrote what it could not read"),
    ("draft_gdal/float_for_integer", "integer-with-fraction", "GDAL writes large integers as floats"),
    ("zarrita2023/*", "missing-parameter", "zarrita of 2023 left out the typesize of blosc"),
    ("zarrita2023/*", "endian-codec", "the name of 2023"),
    ("zarrita2023/*", "empty-codecs", "zarrita of 2023"),
    ("zarrita2023/*", "null-member", "zarrita of 2023"),
    ("zarrita2023/*", "null-fill-value", "zarrita of 2023"),
    ("zarrita2023/*", "transpose-letter", "zarrita of 2023"),
    ("zarrita2023/*", "missing-index-codecs", "the text of June 2023"),
    ("zarrita2023/*", "missing-group", "groups were implied then"),
]
"""Cases of the corpus, what is rightly found there, and why."""


def corpus_cases():
    return sorted(path.parent for path in CORPUS.glob("*/*/expected.json") if (path.parent / "store.zip").exists())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", corpus_cases(), ids=lambda case: case.relative_to(CORPUS).as_posix())
def test_no_false_alarm_on_what_other_programs_wrote(case, tmp_path):
    store = case / "store.zip"
    if json.loads((case / "expected.json").read_text(encoding="utf-8"))["store"] != "zip":
        with zipfile.ZipFile(store) as archive:
            archive.extractall(tmp_path)
        store = tmp_path
    name = case.relative_to(CORPUS).as_posix()
    allowed = {code for pattern, code, _ in ALLOWED if fnmatch(name, pattern)}
    report = omnizarr.check(store, data=True)
    assert [str(f) for f in report if f.severity != "note" and f.code not in allowed] == []
    assert report.nodes > 0


@pytest.mark.parametrize("name", written.CORE_V3)
def test_no_false_alarm_on_what_omnizarr_writes_as_v3(name, tmp_path):
    written.write(tmp_path / "x", written.CORE_V3[name], 3)
    assert alarms(omnizarr.check(tmp_path / "x", data=True)) == []


@pytest.mark.parametrize("name", written.CORE_V2)
def test_no_false_alarm_on_what_omnizarr_writes_as_v2(name, tmp_path):
    written.write(tmp_path / "x", written.CORE_V2[name], 2)
    assert alarms(omnizarr.check(tmp_path / "x", data=True, strict=True)) == []


FORMATS = [0, 1, 2, 3, "3-draft2019", "3-draft2020"]


@pytest.mark.parametrize(
    ("zarr_format", "shape"),
    # the formats before v2 have no arrays without dimensions
    [(f, shape) for f in FORMATS for shape in [(), (0,), (5,), (5, 0), (7, 9)] if shape or f not in {0, 1}],
)
def test_no_false_alarm_on_new_arrays(zarr_format, shape, tmp_path):
    chunks = tuple(max(1, length // 2) for length in shape)
    array = omnizarr.create_array(
        tmp_path, name="g/a", shape=shape, chunks=chunks, dtype=">i2", zarr_format=zarr_format, attributes={"x": 1}
    )
    array[...] = 3
    report = omnizarr.check(tmp_path, data=True, strict=True)
    assert alarms(report) == []
    assert report.nodes >= 1


@pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part")
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_no_false_alarm_on_what_zarr_python_writes(zarr_format, tmp_path):
    zarr = pytest.importorskip("zarr")
    root = zarr.create_group(tmp_path, zarr_format=zarr_format, attributes={"title": "x"})
    inner = root.create_group("inner")
    inner.create_array("a", data=np.arange(60).reshape(6, 10), chunks=(4, 4))
    root.create_array("scalar", shape=(), dtype="f4", fill_value=np.nan)[...] = 1
    root.create_array("text", shape=(3,), dtype=str)[:] = np.array(["a", "b", "c"])
    if zarr_format == 3:
        inner.create_array("shards", data=np.arange(64.0), chunks=(4,), shards=(16,))
    zarr.consolidate_metadata(tmp_path)
    assert alarms(omnizarr.check(tmp_path, data=True)) == []


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
def test_no_false_alarm_on_what_tensorstore_writes(driver, tmp_path):
    tensorstore = pytest.importorskip("tensorstore")
    spec = {"driver": driver, "kvstore": {"driver": "file", "path": str(tmp_path)}}
    array = tensorstore.open(spec, create=True, dtype=tensorstore.int32, shape=[5, 6]).result()
    array[...] = np.arange(30, dtype="i4").reshape(5, 6)
    assert alarms(omnizarr.check(tmp_path, data=True)) == []


def test_no_false_alarm_on_what_zarrista_writes(tmp_path):
    zarrista = pytest.importorskip("zarrista")
    stores = pytest.importorskip("zarrista.store")
    document = {**damaged.V3_ARRAY, "codecs": [damaged.BYTES, damaged.GZIP, damaged.CRC]}
    array = zarrista.Array.from_metadata(document, stores.FilesystemStore(tmp_path), "/a")
    array.store_metadata()
    array[...] = np.arange(16, dtype="i4").reshape(4, 4)
    report = omnizarr.check(tmp_path, data=True)
    assert alarms(report) == []
    assert report.chunks == 4


# What is looked at


def test_chunks_and_nodes_are_counted():
    root = omnizarr.create_group({})
    root.create_array("a", shape=(4,), chunks=(1,), dtype="u1", fill_value=0)[:3] = 1
    report = omnizarr.check(root)
    assert (report.nodes, report.chunks, report.missing) == (2, 3, 1)
    assert found(report) == [("missing-chunks", "a", "a/zarr.json")]


def test_only_what_is_below_the_path_is_checked(tmp_path):
    damaged.build(damaged.Damaged("", {**damaged.v3(), "b/zarr.json": b"{"}, []), tmp_path)
    assert found(omnizarr.check(tmp_path, path="a")) == []
    assert found(omnizarr.check(tmp_path, path="b")) == [("not-json", "b", "b/zarr.json")]


@pytest.mark.parametrize("make", [damaged.d2019, damaged.d2020])
def test_path_within_a_draft_is_found_by_the_entry_point_above(make):
    files = make()
    chunk = next(key for key in files if key.startswith("data"))
    report = omnizarr.check({**files, chunk: b"x"}, path="a")
    assert found(report) == [("wrong-chunk-size", "a", chunk)]


def test_format_can_be_chosen():
    files = {**damaged.v3(), "a/.zarray": b"{"}
    assert ("not-json", "a", "a/.zarray") not in found(omnizarr.check(files, zarr_format=3))
    report = omnizarr.check(files, zarr_format=2)
    assert [str(f) for f in report if f.severity == "error" and f.key != "a/.zarray"] == []
    assert ("not-json", "a", "a/.zarray") in found(report)


def test_zip_archive_is_checked(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for key, data in {**damaged.v3(), "a/c/0/0": b"x"}.items():
            archive.writestr(key, data)
    assert found(omnizarr.check(tmp_path / "x.zip")) == [("wrong-chunk-size", "a", "a/c/0/0")]


def test_open_nodes_are_checked():
    group = omnizarr.open(damaged.v3(damaged.CHUNK), mode="r")
    assert omnizarr.check(group).ok
    assert omnizarr.check(group["a"]).ok


def test_nothing_of_zarr_is_an_error(tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(NodeNotFoundError, match="there is no node here"):
        omnizarr.check(tmp_path)


def test_store_that_cannot_be_listed_is_an_error():
    with pytest.raises(StoreError, match="this store cannot list"):
        omnizarr.check(UnlistableStore(MemoryStore(damaged.v3()), admits=False))


def test_value_that_the_store_cannot_read_is_a_finding():
    store = failing(MemoryStore(damaged.v3()), StoreError("input/output error"), key="^a/c/1/0$")
    assert found(omnizarr.check(store, data=True)) == [("unreadable-key", "a", "a/c/1/0")]


def test_document_that_the_store_cannot_read_is_a_finding_and_hides_no_other():
    files = {**damaged.v3(), "b/zarr.json": b"{}", "a/c/0/0": b""}
    store = failing(MemoryStore(files), StoreError("permission denied"), key="^b/zarr.json$")
    report = omnizarr.check(store)
    assert found(report) == [("empty-chunk", "a", "a/c/0/0"), ("unreadable-key", "b", "b/zarr.json")]


def test_missing_package_is_a_note(monkeypatch):
    def bind(configuration, decoded):
        raise MissingDependencyError("needs a package", remedy="pip install it")

    monkeypatch.setitem(registry._found, "zfp", registry.Entry("zfp", "array to bytes", bind))
    report = omnizarr.check(damaged.v3(codecs=[{"name": "zfp", "configuration": {"mode": "reversible"}}]))
    assert found(report) == [("missing-package", "a", "a/zarr.json")]
    assert report.ok


def test_strict_check_takes_warnings_and_unregistered_names_for_faults():
    named = {"name": "numcodecs.lzma", "configuration": {}}
    files = {**damaged.v3(codecs=[damaged.BYTES, named])}
    assert omnizarr.check(files).ok
    report = omnizarr.check(files, strict=True)
    assert not report.ok
    assert report.counts["warning"] == 1


def test_broken_array_does_not_hide_its_siblings():
    files = {**damaged.v3(), "b/zarr.json": b"{", "c/zarr.json": damaged.text({**damaged.V3_ARRAY, "data_type": "zz"})}
    codes = {finding.path: finding.code for finding in omnizarr.check({**files, "a/c/0/0": b""})}
    assert codes == {"a": "empty-chunk", "b": "not-json", "c": "unknown-extension"}


def test_finding_bears_pointer_found_expected_and_section():
    (finding,) = omnizarr.check(damaged.v3(shape=[-4, 4]))
    assert finding.pointer == "/shape/0"
    assert finding.found == -4
    assert "from 0" in finding.expected
    assert finding.spec == 'Zarr v3, "shape"'
    assert finding.remedy


def test_pointer_into_copies_leads_to_the_member():
    array = {**damaged.V2_ARRAY, "filters": []}
    files = {".zmetadata": damaged.zmetadata({"a/.zarray": array}), **damaged.chunks("a/{}.{}")}
    pointers = {finding.pointer for finding in omnizarr.check(files) if finding.code == "empty-filters"}
    assert pointers == {"/metadata/a~1.zarray/filters"}


def test_findings_of_one_kind_at_one_node_are_limited_and_the_rest_counted():
    files = {**damaged.v3(), **{f"a/c/{number}/0": b"" for number in range(2, MOST + 5)}}
    report = omnizarr.check(files)
    assert len(report) == MOST + 1
    assert any(finding.message == "3 more of these" for finding in report)


def test_leftovers_are_found_only_below_the_path(tmp_path):
    damaged.build(damaged.Damaged("", {**damaged.v3(), ".omnizarr-1.tmp": b"", "a/.omnizarr-2.tmp": b""}, []), tmp_path)
    assert found(omnizarr.check(LocalStore(tmp_path), path="a")) == [("temporary-file", "a", "a/.omnizarr-2.tmp")]


def test_leftovers_in_drafts_are_those_of_the_array(tmp_path):
    files = {**damaged.d2020(), "data/root/a/c0/.omnizarr-1.tmp": b"", "data/root/b/.omnizarr-2.tmp": b""}
    damaged.build(damaged.Damaged("", files, []), tmp_path)
    assert found(omnizarr.check(tmp_path, path="a")) == [("temporary-file", "a", "data/root/a/c0/.omnizarr-1.tmp")]


def test_misspelt_path_is_reported_with_what_comes_near():
    with pytest.raises(NodeNotFoundError, match="did you mean 'ocean'"):
        omnizarr.check({**damaged.v3(), "ocean/zarr.json": damaged.text(damaged.V3_GROUP)}, path="ocaen")


@pytest.mark.parametrize("tail", [0, 1, 40, 2**20 - 3, 3 * 2**20])
def test_place_up_to_which_a_shard_is_whole_is_found(tail):
    whole = damaged.FOUR + damaged.crc(damaged.index(*damaged.PLACES))
    torn = np.random.default_rng(tail).bytes(tail)
    files = damaged.sharded(whole + torn, index_codecs=[damaged.BYTES, damaged.CRC])
    findings = omnizarr.check(files, data=True).findings
    assert [f.code for f in findings] == ["shard-tail-torn"] * (tail > 0)
    assert all(f"up to byte {len(whole)}" in f.found and f.repairable for f in findings)


@pytest.mark.parametrize("version", ["4.9.3", "4.9.20", "4.10.1", "4.7.4"])
def test_byte_order_of_other_versions_of_netcdf_is_not_doubted(version):
    properties = {"_NCProperties": f"version=2,netcdf={version},nczarr=2.0.0"}
    files = {**damaged.v2(dtype=">i4"), ".zattrs": damaged.text(properties)}
    assert found(omnizarr.check(files)) == []


def test_nodes_with_names_as_in_drafts_are_no_lost_documents():
    files = {"zarr.json": damaged.text(damaged.V3_GROUP), "meta/zarr.json": damaged.text(damaged.V3_GROUP)}
    files |= {key.replace("a/", "meta/x.array/"): data for key, data in damaged.v3().items() if key.startswith("a/")}
    assert found(omnizarr.check(files, data=True)) == []


def test_temporary_files_are_found_in_arrays_that_cannot_be_read_here():
    files = damaged.v3(codecs=[damaged.BYTES, {"name": "zzip"}])
    report = omnizarr.check({**files, "a/c/0/0.__lock": b""})
    assert {finding.code for finding in report} == {"unknown-extension", "temporary-file"}


def test_files_that_no_zarr_program_left_are_nothing_to_check():
    with pytest.raises(NodeNotFoundError):
        omnizarr.check({".DS_Store": b"x", "photos/a.jpg": b"x"})


def test_directory_of_hierarchies_is_no_group_that_lacks_its_document(tmp_path):
    damaged.build(damaged.Damaged("", damaged.v2(), []), tmp_path / "data" / "one.zarr")
    damaged.build(damaged.Damaged("", damaged.v3(), []), tmp_path / "data" / "two.zarr")
    report = omnizarr.check(tmp_path, strict=True)
    assert report.ok
    assert report.nodes == 4


# How it is done


def test_documents_are_read_once_and_chunks_not_at_all_without_data():
    store = FaultyStore(MemoryStore(damaged.v3()))
    omnizarr.check(store)
    keys = [key for verb, key in store.log if verb == "get"]
    assert sorted(keys) == ["a/zarr.json", "zarr.json"]


def test_chunks_are_decoded_in_several_threads():
    names = set()
    barrier = threading.Barrier(2, timeout=20)

    def meet(_, key):
        if "/c/" in key and len(names) < 2:
            names.add(threading.current_thread().name)
            barrier.wait()

    assert omnizarr.check(WatchedStore(MemoryStore(damaged.v3()), meet), data=True, concurrency=2).ok
    assert len(names) == 2


def test_no_more_chunks_are_in_memory_than_there_are_threads(tmp_path):
    size = 2**22
    array = omnizarr.create_array(
        tmp_path, shape=(24 * size,), chunks=(size,), dtype="u1", compressors=None, write_data=False
    )
    for number in range(24):
        (tmp_path / "c").mkdir(exist_ok=True)
        (tmp_path / "c" / str(number)).write_bytes(bytes(size))
    assert omnizarr.check(array, data=True, concurrency=2).chunks == 24
    assert peak_of(lambda: omnizarr.check(array, data=True, concurrency=2), 6 * size) < 6 * size


def test_progress_is_reported_every_chunk():
    counts = []
    omnizarr.check(damaged.v3(), progress=counts.append)
    assert sum(counts) == 4


# What is given back


def test_report_says_what_it_holds():
    report = omnizarr.check({**damaged.v3(), "a/c/0/0": b"x"})
    assert not report
    assert len(report) == 1
    assert str(report).splitlines()[-1] == "1 error · 2 nodes, 4 chunks looked at"
    assert repr(report) == "<CheckReport not ok: 1 error · 2 nodes, 4 chunks looked at>"
    assert "wrong-chunk-size" in report._repr_html_()
    assert json.loads(report.to_json()) == report.to_dict()
    assert report.to_dict()["findings"][0]["key"] == "a/c/0/0"


def test_html_of_a_report_is_safe():
    files = {**damaged.v3(), "<b>/zarr.json": b"<i>"}
    assert "<b>" not in omnizarr.check(files)._repr_html_()


def test_finding_of_bytes_is_plain_json():
    finding = Finding(code="not-utf8", severity="error", path="", found=b"\xff", expected=object())
    assert json.loads(json.dumps(finding.to_dict()))["found"] == "ff"


def test_broken_copies_of_one_format_do_not_hide_stale_copies_of_another():
    copies = {"kind": "inline", "must_understand": False, "metadata": {}}
    files = {
        **damaged.v3(),
        **damaged.v2(),
        "zarr.json": damaged.text({**damaged.V3_GROUP, "consolidated_metadata": copies}),
        ".zmetadata": damaged.text({"zarr_consolidated_format": 1}),
    }
    report = omnizarr.check(memory(files))
    assert {one for one in found(report) if "consolidated" in one[0]} == {
        ("broken-consolidated-metadata", "", ".zmetadata"),
        ("stale-consolidated-metadata", "", "zarr.json"),
    }


# Tables


def test_codes_are_lower_case_words_and_hyphens():
    assert all(re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", code) for code in CODES)
    assert CODES.keys() >= REPAIRABLE | RAISED_IF_STRICT


def test_manual_lists_every_code_with_severity_meaning_and_remedy():
    page = (ROOT / "docs" / "checking.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| (\w+) \| (.+?) \| (.+?) \| (.*?) \|$", page, re.MULTILINE)
    listed = {row[0]: row[1:] for row in rows}
    assert listed == {
        name: (code.severity, code.meaning, code.remedy, "yes" if name in REPAIRABLE else "")
        for name, code in CODES.items()
    }


def test_registered_codecs_are_those_of_the_registry():
    found = {name for record in registry.records() for name, each in record.names.items() if each.status}
    assert found == {
        *("blosc", "bytes", "crc32c", "gzip", "sharding_indexed", "transpose"),
        *("bitround", "cast_value", "conditional", "n5_default", "packbits", "reshape", "scale_offset"),
        *("vlen-bytes", "vlen-utf8", "zfp", "zstd"),
    }


def test_aliases_mean_registered_names():
    assert all(is_registered(point, name) for point, aliases in ALIASES.items() for name in aliases.values())


def test_chunks_are_looked_at_beside_a_member_too_many(tmp_path):
    array = omnizarr.create_array(tmp_path, data=np.arange(4, dtype="i4"), chunks=(2,), compressors=None)
    document = json.loads((tmp_path / "zarr.json").read_text())
    (tmp_path / "zarr.json").write_text(json.dumps({**document, "x": 1}))
    (tmp_path / "c" / "1").write_bytes(b"torn")
    assert [finding.code for finding in omnizarr.check(tmp_path).findings] == ["wrong-chunk-size", "unknown-member"]
    assert array.nchunks == 2


def test_four_bytes_of_data_are_no_frame_of_old_zstandard(tmp_path):
    magic = b"\x27\xb5\x2f\xfd"
    values = np.frombuffer(bytes(3000) + np.random.default_rng(0).bytes(546) + magic * 3 + bytes(538), "u1")
    blosc = {"id": "blosc", "cname": "zstd", "clevel": 5, "shuffle": 0}
    omnizarr.create_array(tmp_path, data=values, chunks=(4096,), zarr_format=2, compressors=blosc)
    chunk = (tmp_path / "0").read_bytes()
    assert magic in chunk
    assert not chunk[2] & 2  # compressed, not copied
    assert "legacy-zstd" not in {finding.code for finding in omnizarr.check(tmp_path, data=True).findings}


def test_broken_copies_of_one_format_do_not_hide_stale_ones_of_another():
    gone = {".zgroup": b'{"zarr_format": 2}', ".zmetadata": b"{}"}
    group = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    copies = {"kind": "inline", "must_understand": False, "metadata": {"a": group}}
    values = {**gone, "zarr.json": json.dumps({**group, "consolidated_metadata": copies}).encode(), "b/c/0": b""}
    values["b/zarr.json"] = json.dumps(group).encode()
    codes = [finding.code for finding in omnizarr.check(values) if "consolidated" in finding.code]
    assert "stale-consolidated-metadata" in codes
    assert "broken-consolidated-metadata" in codes


# Large consolidated metadata, of which the copies are found without parsing them


def _blocks():
    """Yield hierarchies with consolidated metadata: stale copies, lone ones, numbers without token."""
    for zarr_format in (2, 3):
        values = {}
        root = omnizarr.create_group(values, zarr_format=zarr_format, attributes={"title": "all"})
        for name in ("a", "b/c", "b/d"):
            root.create_array(name, shape=(4,), chunks=(2,), dtype="f4", attributes={"units": "m"})[:] = 1
        omnizarr.consolidate_metadata(values)
        yield f"v{zarr_format}", values
        document = ".zattrs" if zarr_format == 2 else "zarr.json"
        yield f"v{zarr_format} stale", {
            **values, f"b/c/{document}": values[f"b/c/{document}"].replace(b'"m"', b'"km"')
        }  # fmt: skip
        key = ".zmetadata" if zarr_format == 2 else "zarr.json"
        nan = {**values, key: values[key].replace(b'"units": "m"', b'"units": [1, NaN, -Infinity]')}
        yield f"v{zarr_format} NaN", nan
        yield f"v{zarr_format} lone", {name: value for name, value in nan.items() if not name.startswith("b/c/.z")
                                       and name not in {"b/c/zarr.json", "b/zarr.json"}}  # fmt: skip
        yield f"v{zarr_format} only", {key: nan[key], "b/c/0": b"", "b/c/c/0": b""}
        if zarr_format == 2:
            yield "v2 own", {**values, key: values[key].replace(b"all", b"other")}
        else:
            unknown = {**values, key: values[key].replace(b'"inline"', b'"other"')}
            del unknown["b/zarr.json"]
            yield "v3-unknown", unknown


@pytest.mark.parametrize(("name", "values"), [pytest.param(*block, id=block[0]) for block in _blocks()])
def test_large_consolidated_metadata_has_the_findings_of_small_ones(name, values, monkeypatch):
    parsed = omnizarr.check(values)
    monkeypatch.setattr(inventory, "_MANY_BYTES", 0)
    scanned = omnizarr.check(values)
    assert scanned.to_dict() == parsed.to_dict()
    assert parsed.ok == (" " not in name)
