"""A repair mends what takes no guessing, says so before, keeps what it changes, and touches nothing else."""

import json
import os
import random
import shutil
import struct
import subprocess
import sys
import zipfile
from itertools import count
from pathlib import Path

import google_crc32c
import numpy as np
import pytest
import zarr

import omnizarr
from omnizarr.errors import NodeNotFoundError, ReadOnlyError, StoreError
from omnizarr.stores import LocalStore, MemoryStore, PrefixStore, ZipStore
from omnizarr.tools.check.codes import CODES, REPAIRABLE
from omnizarr.tools.repair import mistakes, repairer, stored
from omnizarr.tools.repair.policy import ASKED, CERTAIN, KINDS, NEEDS_DATA, codes_of
from tests import damaged
from tests.corpus.test_corpus import CORPUS, bits, document_of, expected_array, open_node, same
from tests.damaged import A2, A3, CHUNK, V2_ARRAY, V3_ARRAY, V3_GROUP, chunks, text, v2, v3, zmetadata
from tests.fakes import FaultyStore

OLD = 10_000
BLOCK = np.arange(4, dtype="<i4").reshape(2, 2)
TILED = np.tile(BLOCK, (2, 2))


def tree(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def aged(folder):
    """Make all files older than leftovers have to be."""
    for path in folder.rglob("*"):
        if path.is_file():
            at = path.stat().st_mtime - OLD
            os.utime(path, (at, at))
    return folder


def build(case, tmp_path):
    return aged(damaged.build(case, tmp_path / "x.zarr"))


def written(files, tmp_path):
    return build(damaged.Damaged("", files, []), tmp_path)


def mend(folder, **options):
    return omnizarr.repair(folder, dry_run=False, **options)


def told(report):
    return {(finding.code, finding.path, finding.key) for finding in report}


def arrays(folder):
    """Return the values of all arrays that can be read."""
    values = {}
    for path in sorted({key.rpartition("/")[0].removeprefix("meta/root/") for key in tree(folder)} | {"a", "g/a", "b"}):
        try:
            values[path] = omnizarr.open_array(folder, path=path, mode="r")[...]
        except omnizarr.errors.OmnizarrError:
            continue
    return values


def account_of(actions):
    return [(a.code, a.path, a.key, a.pointer, a.what, a.before, a.after) for a in actions]


# Over all kinds of damage

MENDED = {
    *("integer-with-fraction", "infinity-spelling", "loose-fill-value", "legacy-struct", "missing-parameter"),
    *("invalid-typesize", "shuffle-of-other-format", "short-name"),
    "repeated-member", "byte-order-mark", "bare-nan", "missing-group", "attributes-missing",
    "stale-consolidated-metadata", "broken-consolidated-metadata", "only-consolidated", "temporary-file", "lock-file",
    "undeclared-separator", "missing-filters", "empty-filters", "null-separator", "numbers-as-strings",
    "zero-elementsize", "byte-order-of-bytes", "missing-byte-order", "fixed-width-strings", "zero-chunk-length",
    "null-fill-value", "empty-fill-value", "null-member", "endian-codec", "missing-endian", "empty-codecs",
    "missing-codecs",
    "transpose-letter", "missing-index-codecs", "codec-uri", "shuffle-word", "fill-value-as-string",
    "missing-serializer", "shard-tail-torn", "missing-elementsize", "codec-id", "fill-value-kind",
}  # fmt: skip


def test_each_kind_that_is_repaired_by_default_has_a_damaged_hierarchy():
    assert {code for case in damaged.STORES for code, _, _ in case.expected} >= MENDED
    assert MENDED == CERTAIN


@pytest.mark.parametrize("case", damaged.STORES, ids=str)
def test_damage_is_mended_or_left_with_a_remedy_and_nothing_else_is_touched(case, tmp_path):
    folder = build(case, tmp_path)
    before, values = tree(folder), arrays(folder)
    account = mend(folder, data=case.data)
    after = tree(folder)
    # only what the account names
    assert {key for key in {*before, *after} if before.get(key) != after.get(key)} == {a.key for a in account}
    # what could be read is read the same
    now = arrays(folder)
    assert {*values} <= {*now}
    for path, expected in values.items():
        assert now[path].dtype == expected.dtype
        assert bits(now[path]) == bits(expected) if expected.dtype.kind not in "OT" else same(
            now[path].tolist(), expected.tolist())  # fmt: skip
    # all of it is either gone, or left with a remedy
    still = told(omnizarr.check(folder, data=case.data))
    left = {(one.code, one.path, one.key): one for one in account.left}
    worse = {code for code in CODES if CODES[code].severity != "note"} | REPAIRABLE
    for found in case.expected:
        if found in still:
            assert found[0] not in worse or left[found].remedy
        else:
            assert any((a.code, a.path) == found[:2] for a in account)
    # and nothing new has come up
    assert {one for one in still if CODES[one[0]].severity != "note"} <= {*case.expected}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", damaged.STORES, ids=str)
def test_dry_run_tells_exactly_what_will_be_done_and_changes_nothing(case, tmp_path):
    folder = build(case, tmp_path)
    before = tree(folder)
    dry = omnizarr.repair(folder, data=case.data)
    assert tree(folder) == before
    assert [*tmp_path.iterdir()] == [folder]
    assert dry.dry_run
    assert dry.backup is None
    assert not any(action.done for action in dry)
    real = mend(folder, data=case.data)
    assert account_of(dry) == account_of(real)
    assert [one.to_dict() for one in dry.left] == [one.to_dict() for one in real.left]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", damaged.STORES, ids=str)
def test_second_repair_has_nothing_to_do(case, tmp_path):
    folder = build(case, tmp_path)
    mend(folder, data=case.data, backup=False)
    before = tree(folder)
    assert len(mend(aged(folder), data=case.data, backup=tmp_path / "second")) == 0
    assert tree(folder) == before
    assert not (tmp_path / "second").exists()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", damaged.STORES, ids=str)
def test_undone_repair_leaves_every_byte_as_it_was(case, tmp_path):
    folder = build(case, tmp_path)
    before = tree(folder)
    account = mend(folder, data=case.data, backup=tmp_path / "old")
    if not account.actions:
        assert account.backup is None
        return
    assert omnizarr.undo_repair(account, dry_run=False).ok
    assert tree(folder) == before


@pytest.mark.parametrize("name", damaged.SOUND)
def test_sound_hierarchy_is_left_alone(name, tmp_path):
    folder = written(damaged.SOUND[name], tmp_path)
    account = mend(folder, data=True)
    assert (account.actions, account.left, account.ok) == ((), (), True)


@pytest.mark.parametrize("name", damaged.SOUND)
def test_sound_hierarchy_costs_no_more_requests_than_a_check(name):
    store = FaultyStore(MemoryStore(damaged.SOUND[name]))
    omnizarr.check(store)
    checked = dict(store.requests)
    store.reset()
    omnizarr.repair(store, dry_run=False)
    assert {verb: n for verb, n in store.requests.items() if verb not in {"get", "exists"}} == {
        verb: n for verb, n in checked.items() if verb not in {"get", "exists"}
    }
    # where the hierarchy begins is looked up once more
    assert sum(store.requests.values()) <= sum(checked.values()) + 1


def cases_of_corpus():
    return [path.parent for path in sorted(CORPUS.glob("*/*/expected.json"))]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", cases_of_corpus(), ids=lambda path: path.relative_to(CORPUS).as_posix())
def test_what_other_programs_wrote_is_read_after_a_repair_as_they_read_it(case, tmp_path):
    folder = tmp_path / "x.zarr"
    with zipfile.ZipFile(case / "store.zip") as archive:
        archive.extractall(folder)
    account = mend(aged(folder))
    assert all(action.done for action in account)
    assert {one.code for one in account.left} <= KINDS | CODES.keys() - REPAIRABLE
    found = omnizarr.check(folder)
    assert not {one.code for one in found} & {action.code for action in account}
    for path, expected in document_of(case)["nodes"].items():
        if expected["node_type"] == "array":
            values, _ = expected_array(case, path, expected)
            array = open_node(case, folder, path, "array", **expected.get("open", {}))
            if values.dtype.kind in "OT":
                assert same(array[...].ravel().tolist(), values.ravel().tolist())
            else:
                assert bits(array[...]) == bits(values)


PIECES = [b"-1", b"null", b"[]", b"{}", b'"x"', b"1e999", b"NaN", b"9" * 30, b', "a": 1', b'"3"', b"0", b"\\\\"]
KEYS = ["zarr.json", ".zarray", ".zgroup", ".zmetadata", "meta", "a/b/zarr.json", "a/0", "a/.zattrs", "a/zarr.json"]


def broken_at_random(rng):
    """Return the files of one or two of the damaged hierarchies, with more damage at random places."""
    files = {}
    for _ in range(rng.randint(1, 2)):
        files.update({key: data for key, data in rng.choice(damaged.STORES).files.items() if data is not None})
    for _ in range(rng.randint(0, 3)):
        key = rng.choice(list(files))
        data = bytearray(files[key])
        place = rng.randrange(len(data) + 1)
        match rng.randrange(4):
            case 0:
                data[place:place] = rng.choice(PIECES)
            case 1:
                del data[place:]
            case 2:
                data += rng.choice(PIECES) * rng.randint(1, 5)
            case 3:
                key = rng.choice(KEYS)
                data = bytearray(rng.choice(list(files.values())))
        files[key] = bytes(data)
    return files


def readable(files):
    values = {}
    for path in ("", "a", "b", "g/a"):
        try:
            array = omnizarr.open_array(dict(files), path=path, mode="r")
            values[path] = (array.dtype, array[...].tolist() if array.dtype.kind in "OT" else bits(array[...]))
        except omnizarr.errors.OmnizarrError:
            continue
    return values


@pytest.mark.parametrize("seed", range(20))
def test_random_damage_is_mended_as_announced_without_changing_a_value_and_undone(seed, tmp_path):
    rng = random.Random(seed)
    for number in range(15):
        before = broken_at_random(rng)
        values, files = readable(before), dict(before)
        dry = omnizarr.repair(files, data=True)
        assert files == before
        account = omnizarr.repair(files, dry_run=False, data=True, backup=tmp_path / str(number))
        assert account_of(dry) == account_of(account)
        assert {key for key in {*before, *files} if before.get(key) != files.get(key)} == {a.key for a in account}
        after = readable(files)
        assert {path: after[path] for path in values} == values
        assert omnizarr.repair(dict(files), data=True).actions == ()
        if account.actions:
            omnizarr.undo_repair(account, files, dry_run=False)
            assert files == before


# What others read afterwards

F_ORDER = np.block([[BLOCK.T, BLOCK.T], [BLOCK.T, BLOCK.T]])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("v2 without filters", TILED),
        ("v2 with null for a separator", TILED),
        ("v2 with numbers as strings", TILED),
        ("v2 chunks nested without saying so", TILED),
        ("v2 with shuffle as a word", None),
        ("v3 fill value is null", TILED),
        ("v3 fill value is an empty string", TILED),
        ("v3 names are null", TILED),
        ("v3 with codec endian", TILED),
        ("v3 bytes without endian", TILED),
        ("v3 without codecs", TILED),
        ("v3 without a member codecs", TILED),
        ("v3 codecs without one that makes bytes", None),
        ("v3 transpose with a letter", F_ORDER),
        ("v3 shard without index codecs", TILED),
        ("v3 document with a byte order mark", TILED),
        ("shard whose tail was added and is torn", TILED),
        ("v3 nothing but a copy of an array", TILED),
    ],
)
def test_zarr_python_reads_what_was_mended(name, expected, tmp_path):
    case = next(case for case in damaged.STORES if case.name == name)
    folder = build(case, tmp_path)
    mend(folder, data=case.data)
    with np.errstate(all="ignore"):
        array = zarr.open_group(folder, mode="r", use_consolidated=False)["a"]
    if expected is None:
        expected = omnizarr.open_array(folder, path="a", mode="r")[...]
    np.testing.assert_array_equal(array[...], expected)


# Documents


def test_only_the_member_concerned_is_changed_in_the_text(tmp_path):
    odd = b'{\n\t"shape":[4,4], "chunks" : [2 ,2],"dtype":"<i4",\r\n  "compressor":{"id":"zlib","level":"1"}'
    odd += b', "fill_value":  7,"order":"C","filters":null , "zarr_format":2,"x":"\\/\\u00e9"}\n\n'
    folder = written({**v2(), A2: odd}, tmp_path)
    mend(folder)
    assert (folder / A2).read_bytes() == odd.replace(b'"level":"1"', b'"level":1')


def test_all_that_netcdf_c_writes_is_corrected_at_once(tmp_path):
    document = {
        **{name: value for name, value in V2_ARRAY.items() if name != "filters"},
        "compressor": {"id": "zlib", "level": "1"},
        "filters": [{"id": "shuffle", "elementsize": "0"}, {"id": "shuffle", "elementsize": "2"}],
        "dimension_separator": None,
    }
    folder = written({**v2(), A2: text(document)}, tmp_path)
    account = mend(folder, backup=False)
    assert json.loads((folder / A2).read_bytes()) == {
        **{name: value for name, value in document.items() if name != "dimension_separator"},
        "compressor": {"id": "zlib", "level": 1},
        "filters": [{"id": "shuffle", "elementsize": 4}, {"id": "shuffle", "elementsize": 2}],
    }
    assert len(account) == 5


def test_mistakes_within_shards_are_corrected(tmp_path):
    inner = [{"name": "transpose", "configuration": {"order": "F"}}, {"name": "endian"}]
    sharding = {"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 2], "codecs": inner}}
    index = damaged.crc(damaged.index(*damaged.PLACES))
    files = {
        "zarr.json": text(V3_GROUP),
        A3: text({**V3_ARRAY, "codecs": [sharding], "fill_value": None,
                  "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 4]}}}),
        "a/c/0/0": damaged.FOUR + index,
    }  # fmt: skip
    folder = written(files, tmp_path)
    mend(folder)
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    found = json.loads((folder / A3).read_bytes())
    assert found["fill_value"] == 0
    assert found["codecs"] == [{"name": "sharding_indexed", "configuration": {
        "chunk_shape": [2, 2],
        "codecs": [{"name": "transpose", "configuration": {"order": [1, 0]}}, little],
        "index_codecs": [little, {"name": "crc32c"}],
    }}]  # fmt: skip
    np.testing.assert_array_equal(zarr.open_array(folder / "a", mode="r")[...], F_ORDER)


def test_codec_written_as_a_word_gets_its_byte_order(tmp_path):
    folder = written(v3(codecs=["bytes"]), tmp_path)
    mend(folder)
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    assert json.loads((folder / A3).read_bytes())["codecs"] == [little]


def test_bare_nan_is_quoted_but_not_in_attributes_where_it_would_become_a_text(tmp_path):
    document = text({**V3_ARRAY, "data_type": "float32", "fill_value": float("nan"), "attributes": {"x": float("nan")}})
    folder = written({**v3(), A3: document}, tmp_path)
    account = mend(folder)
    assert [action.code for action in account] == ["bare-nan"]
    assert (folder / A3).read_bytes() == document.replace(b'"fill_value": NaN', b'"fill_value": "NaN"')
    assert [one.code for one in omnizarr.check(folder)] == ["nonfinite-attribute"]


def test_members_of_one_name_that_say_different_things_are_left(tmp_path):
    document = text(V3_ARRAY)[:-1] + b', "fill_value": 8}'
    folder = written({**v3(), A3: document}, tmp_path)
    account = mend(folder)
    assert not account.actions
    assert ["by hand" in one.remedy for one in account.left if one.code == "repeated-member"] == [True]
    assert not account.ok


def test_nested_chunks_beside_flat_ones_are_left(tmp_path):
    nested = {".zgroup": text({"zarr_format": 2}), A2: text(V2_ARRAY), **chunks("a/{}/{}"), "a/1.1": CHUNK}
    account = mend(written(nested, tmp_path))
    assert not account.actions
    assert any("some have keys with dots" in one.remedy for one in account.left if one.code == "undeclared-separator")


def test_correction_that_would_change_the_meaning_is_not_made(tmp_path, monkeypatch):
    from omnizarr.tools.repair import mistakes

    wrong = {**mistakes._MENDERS, "null-fill-value": mistakes._replace("", lambda *_: 5)}
    monkeypatch.setattr(mistakes, "_MENDERS", wrong)
    folder = written({**v3(), A3: text({**V3_ARRAY, "fill_value": None})}, tmp_path)
    before = tree(folder)
    account = mend(folder)
    assert not account.actions
    assert [one.code for one in account.left] == ["null-fill-value"]
    assert tree(folder) == before


def test_root_is_made_a_group_only_if_asked(tmp_path):
    folder = written({**v3(), "zarr.json": None, "g/b/zarr.json": text(V3_ARRAY)}, tmp_path)
    assert not mend(folder).actions
    account = mend(folder, codes=["missing-root", "missing-group"])
    assert sorted(action.key for action in account) == ["g/zarr.json", "zarr.json"]
    assert sorted(dict(zarr.open_group(folder, mode="r").members())) == ["a", "g"]


def test_group_without_document_is_not_made_where_no_group_is_above(tmp_path):
    files = {f"x/{key}": data for key, data in v2().items() if key != ".zgroup"}
    account = mend(written({**files, "y/.zgroup": text({"zarr_format": 2})}, tmp_path))
    assert not account.actions
    assert ["all nodes below belong together" in one.remedy for one in account.left] == [True]


# Consolidated metadata


def test_copies_are_made_again_when_the_documents_were_corrected(tmp_path):
    wrong = {name: value for name, value in V2_ARRAY.items() if name != "filters"}
    folder = written({**v2(filters=...), ".zmetadata": zmetadata({A2: wrong})}, tmp_path)
    account = mend(folder)
    assert [action.key for action in account] == [A2, ".zmetadata"]
    found = json.loads((folder / ".zmetadata").read_bytes())
    assert found["metadata"] == {".zgroup": {"zarr_format": 2}, A2: V2_ARRAY}
    np.testing.assert_array_equal(zarr.open_consolidated(folder, mode="r")["a"][...], TILED)


def test_copies_that_were_stale_stay_so_unless_that_is_asked(tmp_path):
    folder = written({**v2(filters=...), ".zmetadata": zmetadata({})}, tmp_path)
    copies = (folder / ".zmetadata").read_bytes()
    mend(folder, codes=["missing-filters"])
    assert (folder / ".zmetadata").read_bytes() == copies


def test_copies_keep_the_nan_that_the_documents_have_in_attributes(tmp_path):
    folder = written({**v2(), "a/.zattrs": b'{"x": NaN}', ".zmetadata": zmetadata({})}, tmp_path)
    mend(folder)
    copied = json.loads((folder / ".zmetadata").read_bytes())["metadata"]["a/.zattrs"]["x"]
    assert isinstance(copied, float)
    assert copied != copied  # noqa: PLR0124


def test_only_copy_of_an_array_survives_new_copies(tmp_path):
    files = {**v3(), "zarr.json": damaged.inlined({"b": V3_ARRAY}), "b/c/0/0": CHUNK}
    folder = written(files, tmp_path)
    mend(folder, codes=["stale-consolidated-metadata"])
    copies = json.loads((folder / "zarr.json").read_bytes())["consolidated_metadata"]["metadata"]
    assert copies == {"a": V3_ARRAY, "b": V3_ARRAY}


def test_new_copies_of_one_format_keep_the_documents_beside_those_of_another(tmp_path):
    folder = written({**damaged._both(), ".zmetadata": zmetadata({})}, tmp_path)
    mend(folder)
    copies = json.loads((folder / ".zmetadata").read_bytes())["metadata"]
    assert copies == {".zgroup": {"zarr_format": 2}, A2: V2_ARRAY}


def test_copies_are_not_made_while_a_document_is_broken(tmp_path):
    folder = written({**v2(), A2: b"{", ".zmetadata": zmetadata({A2: V2_ARRAY, "b/.zarray": V2_ARRAY})}, tmp_path)
    before = tree(folder)
    account = mend(folder)
    assert tree(folder) == before
    assert not account.ok


def test_copies_of_an_unknown_kind_are_replaced_only_if_asked(tmp_path):
    folder = written({**v3(), "zarr.json": damaged.inlined({}, kind="external")}, tmp_path)
    account = mend(folder)
    assert not account.actions
    assert ["newer than this release of omnizarr" in one.remedy for one in account.left] == [True]
    assert mend(folder, codes=["unknown-consolidated-metadata"]).ok
    np.testing.assert_array_equal(zarr.open_consolidated(folder, mode="r")["a"][...], TILED)


def test_documents_below_come_before_that_of_the_group_whose_copies_they_are(tmp_path):
    files = {".zmetadata": zmetadata({A2: V2_ARRAY, "g/.zgroup": {"zarr_format": 2}, "g/b/.zarray": V2_ARRAY})}
    folder = written(files, tmp_path)
    account = mend(folder)
    assert [action.key for action in account][-1] == ".zgroup"
    assert [action.key for action in account].index("g/b/.zarray") < [action.key for action in account].index(
        "g/.zgroup"
    )
    assert omnizarr.check(folder).ok


# Shards and chunks


def shard(*inner, extra=b"", **options):
    """Return a group with one shard, with a checksum, and something behind it."""
    entries, data = [], b""
    for chunk in inner:
        entries.append((2**64 - 1, 2**64 - 1) if chunk is None else (len(data), len(chunk)))
        data += chunk or b""
    index = struct.pack(f"<{2 * len(entries)}Q", *(number for entry in entries for number in entry))
    whole = data + index + struct.pack("<I", google_crc32c.value(index))
    return damaged.sharded(whole + extra, index_codecs=[damaged.BYTES, damaged.CRC], **options), whole


@pytest.mark.parametrize(
    "extra",
    [b"x", bytes(100), bytes(5000), b"\xff" * 777, np.random.default_rng(0).bytes(100_000), CHUNK * 9],
    ids=["one", "zeros", "many zeros", "ones", "random", "chunks"],
)
def test_shard_is_cut_off_behind_its_last_whole_index(extra, tmp_path):
    files, whole = shard(CHUNK, None, CHUNK, CHUNK, extra=extra)
    folder = written(files, tmp_path)
    before = tree(folder)
    account = mend(folder, data=True)
    assert [action.code for action in account] == ["shard-tail-torn"]
    assert tree(folder) == {**before, "a/c/0/0": whole}
    expected = TILED.copy()
    expected[:2, 2:] = 7
    np.testing.assert_array_equal(zarr.open_array(folder / "a", mode="r")[...], expected)


def test_of_several_whole_states_the_last_counts(tmp_path):
    _, first = shard(CHUNK, None, None, None)
    second = first + CHUNK
    index = struct.pack("<8Q", 0, 16, len(first), 16, *[2**64 - 1] * 4)
    second += index + struct.pack("<I", google_crc32c.value(index))
    folder = written(damaged.sharded(second + b"torn", index_codecs=[damaged.BYTES, damaged.CRC]), tmp_path)
    mend(folder, data=True)
    assert (folder / "a/c/0/0").read_bytes() == second


def test_shard_of_shards_is_not_cut_behind_the_index_of_an_inner_one(tmp_path):
    inner = {"name": "sharding_indexed", "configuration": {
        "chunk_shape": [1, 1], "codecs": [damaged.BYTES], "index_codecs": [damaged.BYTES, damaged.CRC]}}  # fmt: skip
    index = struct.pack("<8Q", 0, 4, 4, 4, 8, 4, 12, 4)
    part = CHUNK + index + struct.pack("<I", google_crc32c.value(index))
    files, whole = shard(part, part, part, part, inner=[inner])
    folder = written({**files, "a/c/0/0": whole[:-30]}, tmp_path)
    before = tree(folder)
    account = mend(folder, data=True)
    assert tree(folder) == before
    assert not account.ok
    assert all(one.remedy for one in account.left)


def test_shard_is_not_cut_where_an_inner_chunk_cannot_be_decoded(tmp_path):
    files, _ = shard(b"no gzip", None, None, None, extra=b"torn", inner=[damaged.BYTES, damaged.GZIP])
    folder = written(files, tmp_path)
    before = tree(folder)
    assert not mend(folder, data=True).actions
    assert tree(folder) == before


def test_inner_chunks_that_are_gone_are_entered_as_missing_only_if_asked(tmp_path):
    sharding = {"chunk_shape": [2, 2], "codecs": [damaged.BYTES], "index_codecs": [damaged.BYTES, damaged.CRC],
                "index_location": "start"}  # fmt: skip
    index = struct.pack("<8Q", 68, 16, 84, 16, 100, 16, 116, 16)
    data = index + struct.pack("<I", google_crc32c.value(index)) + CHUNK * 3 + CHUNK[:5]
    codecs = [{"name": "sharding_indexed", "configuration": sharding}]
    files = v3(codecs=codecs, chunk_grid={"name": "regular", "configuration": {"chunk_shape": [4, 4]}})
    files = {"zarr.json": files["zarr.json"], A3: files[A3], "a/c/0/0": data}
    folder = written(files, tmp_path)
    account = mend(folder, data=True)
    assert not account.actions
    assert ["reading these inner chunks returns the fill value" in one.remedy for one in account.left] == [True]
    assert mend(folder, codes="shard-index-outside").ok
    expected = TILED.copy()
    expected[2:, 2:] = 7
    np.testing.assert_array_equal(zarr.open_array(folder / "a", mode="r")[...], expected)
    assert (folder / "a/c/0/0").read_bytes()[68:] == data[68:]


@pytest.mark.parametrize(
    "name", ["v3 empty chunk", "v3 truncated chunk", "v3 wrong checksum", "v3 truncated gzip", "v2 truncated blosc"]
)
def test_chunk_that_is_torn_is_deleted_only_if_asked(name, tmp_path):
    case = next(case for case in damaged.STORES if case.name == name)
    code, _, key = case.expected[0]
    folder = build(case, tmp_path)
    before = tree(folder)
    account = mend(folder, data=True)
    assert tree(folder) == before
    assert [code in CODES and "only if the code is named" in one.remedy for one in account.left] == [True]
    assert [action.key for action in mend(folder, codes=[code], data=True)] == [key]
    assert tree(folder) == {other: data for other, data in before.items() if other != key}
    expected = TILED.copy()
    expected[:2, :2] = 7
    np.testing.assert_array_equal(omnizarr.open_array(folder, path="a", mode="r")[...], expected)


def test_shard_is_not_deleted_for_one_inner_chunk(tmp_path):
    case = next(case for case in damaged.STORES if case.name == "inner chunk that cannot be decoded")
    folder = build(case, tmp_path)
    before = tree(folder)
    account = mend(folder, codes=["undecodable-chunk"])
    assert tree(folder) == before
    assert ["others of the shard can be read" in one.remedy for one in account.left] == [True]


def test_chunk_beyond_the_shape_is_deleted_only_if_asked(tmp_path):
    folder = written({**v3(), "a/c/2/0": CHUNK}, tmp_path)
    before = tree(folder)
    assert not mend(folder).actions
    assert mend(folder, codes=["chunk-beyond-grid"]).ok
    assert tree(folder) == {key: data for key, data in before.items() if key != "a/c/2/0"}


def test_scalar_of_the_draft_is_renamed_only_if_asked(tmp_path):
    case = next(case for case in damaged.STORES if case.name == "2020 scalar under c0")
    folder = build(case, tmp_path)
    before = tree(folder)
    assert not mend(folder).actions
    account = mend(folder, codes=["draft-scalar-key"], backup=tmp_path / "old")
    after = tree(folder)
    assert after == {key.replace("data/root/a/c0", "data/root/a/c"): data for key, data in before.items()}
    assert omnizarr.open_array(folder, path="a", mode="r")[()] == 0
    omnizarr.undo_repair(account, dry_run=False)
    assert tree(folder) == before


# What was left behind


def leftovers(tmp_path, name="a/c/0/.omnizarr-0123456789abcdef.tmp", data=b"x"):
    return written({**v3(), name: data}, tmp_path), name


def test_temporary_file_that_is_young_is_left(tmp_path):
    folder, name = leftovers(tmp_path)
    os.utime(folder / name)
    account = mend(folder)
    assert not account.actions
    assert ["3,600 seconds old" in one.remedy for one in account.left] == [True]
    assert mend(folder, older_than=-1).ok


@pytest.mark.skipif(sys.platform == "win32", reason="a file that is open cannot be deleted there")
@pytest.mark.parametrize("call", ["flock", "lockf"])
@pytest.mark.parametrize("name", ["a/.omnizarr-zarr.json.lock", "a/c/0/0.__lock", "a/attrs.lock"])
def test_what_another_process_has_locked_is_left(name, call, tmp_path):
    folder, name = leftovers(tmp_path, name, b"")
    script = (
        f"import fcntl, sys; f = open(sys.argv[1], 'r+'); fcntl.{call}(f, fcntl.LOCK_EX); print(flush=True); input()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(folder / name)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        holder.stdout.readline()
        account = mend(folder)
        holder.communicate(b"\n")
    assert (folder / name).exists()
    assert ["locked" in one.remedy for one in account.left] == [True]
    assert mend(folder).ok
    assert not (folder / name).exists()


def test_lock_file_with_something_in_it_is_left(tmp_path):
    folder, name = leftovers(tmp_path, "a/poetry.lock", b"[[package]]")
    account = mend(folder)
    assert (folder / name).exists()
    assert all("it is not empty" in one.remedy for one in account.left if one.code == "lock-file")


def test_leftovers_of_a_store_without_times_are_deleted_only_if_asked():
    values = {**v3(), f"a/c/0/0.{damaged.HEX}.partial": b"x"}
    account = omnizarr.repair(values, dry_run=False, backup=False)
    assert not account.actions
    assert ["name the code" in one.remedy for one in account.left] == [True]
    assert omnizarr.repair(values, dry_run=False, backup=False, codes=["temporary-file"]).ok
    assert values == v3()


# Keeping and putting back


def test_account_and_old_values_are_beside_the_store(tmp_path):
    folder = written(v2(filters=...), tmp_path)
    before = tree(folder)
    account = mend(folder)
    (place,) = (path for path in tmp_path.iterdir() if path != folder)
    assert place.name.startswith("x.zarr.omnizarr-repair-")
    assert account.backup == str(place)
    assert json.loads((place / "account.json").read_text()) == account.to_dict()
    assert [(place / action.kept).read_bytes() for action in account] == [before[A2]]


def test_old_values_of_a_node_within_are_beside_the_whole_hierarchy(tmp_path):
    folder = written({**v2(filters=...), "a/x": None}, tmp_path)
    mend(folder / "a")
    assert [path.name.partition(".omni")[0] for path in tmp_path.iterdir() if path != folder] == ["x.zarr"]
    assert omnizarr.check(folder).ok


@pytest.mark.parametrize("name", ["", "account.json"])
def test_account_alone_is_enough_to_undo(name, tmp_path):
    folder = written(v2(filters=...), tmp_path)
    before = tree(folder)
    place = Path(mend(folder).backup)
    dry = omnizarr.undo_repair(place / name)
    assert tree(folder) != before
    assert [action.key for action in dry] == [A2]
    assert not dry.ok
    assert omnizarr.undo_repair(place / name, dry_run=False).ok
    assert tree(folder) == before
    assert omnizarr.undo_repair(place / name, dry_run=False).actions == ()


def test_account_elsewhere_is_enough_to_undo_for_the_program_that_made_it(tmp_path):
    folder = written(v2(filters=...), tmp_path)
    before = tree(folder)
    assert omnizarr.undo_repair(mend(folder, backup=tmp_path / "old"), dry_run=False).ok
    assert tree(folder) == before


@pytest.mark.parametrize("elsewhere", ["old", "a/x.zarr.omnizarr-repair-1", "y.zarr.omnizarr-repair-1"])
def test_account_elsewhere_needs_the_store_to_undo(elsewhere, tmp_path):
    folder = written(v2(filters=...), tmp_path)
    before = tree(folder)
    mend(folder, backup=tmp_path / elsewhere)
    now = tree(folder)
    with pytest.raises(StoreError, match=r"does not lie beside .*give the store"):
        omnizarr.undo_repair(tmp_path / elsewhere, dry_run=False)
    assert tree(folder) == now
    assert omnizarr.undo_repair(tmp_path / elsewhere, folder, dry_run=False).ok
    assert tree(folder) == before


@pytest.mark.skipif(sys.platform == "win32", reason="links")
@pytest.mark.parametrize("link", ["x.zarr", "x.zarr/a"])
def test_store_that_is_a_link_is_named_to_undo(link, tmp_path):
    folder = written(v2(filters=...), tmp_path)
    other = tmp_path / "elsewhere" / link
    other.parent.mkdir(parents=True)
    account = mend(folder, backup=None).backup
    (tmp_path / link).rename(other)
    (tmp_path / link).symlink_to(other, target_is_directory=True)
    with pytest.raises((StoreError, omnizarr.errors.InvalidKeyError)):
        omnizarr.undo_repair(account, dry_run=False)


def test_store_that_was_moved_is_named_to_undo(tmp_path):
    folder = written(v2(filters=...), tmp_path)
    before = tree(folder)
    account = mend(folder)
    shutil.move(folder, tmp_path / "y.zarr")
    omnizarr.undo_repair(account, tmp_path / "y.zarr", dry_run=False)
    assert tree(tmp_path / "y.zarr") == before


def test_what_was_changed_after_the_repair_is_not_undone(tmp_path):
    folder = written(v2(filters=...), tmp_path)
    account = mend(folder)
    omnizarr.open_array(folder, path="a", mode="r+").resize((8, 4))
    now = tree(folder)
    undone = omnizarr.undo_repair(account, dry_run=False)
    assert tree(folder) == now
    assert not undone.ok
    assert "changed after the repair" in str(undone)


def test_damaged_backup_is_not_put_back(tmp_path):
    folder = written(v2(filters=...), tmp_path)
    account = mend(folder, backup=tmp_path / "old")
    (tmp_path / "old" / account.actions[0].kept).write_bytes(b"{}")
    with pytest.raises(StoreError, match="damaged"):
        omnizarr.undo_repair(account, dry_run=False)


def test_what_is_no_account_cannot_be_undone(tmp_path):
    with pytest.raises(StoreError, match="no account of a repair"):
        omnizarr.undo_repair(tmp_path)
    with pytest.raises(StoreError, match="kept no old values"):
        omnizarr.undo_repair(mend(written(v2(filters=...), tmp_path), backup=False))


@pytest.mark.parametrize(
    "changes",
    [{"kept": "../secret"}, {"kept": "/etc/passwd"}, {"is_file": True, "key": "../x"}, {"is_file": True, "key": "/x"},
     {"is_file": True, "key": "../.omnizarr-x"}, {"unknown": 1}, {"key": "../x"}, {"key": "/etc/x"}, {"key": ""},
     {"lock": "../x"}, {"key": 1}, {"before": 1}, {"kept": ["values/000000"]}, {"is_file": 1}, {"is_file": "x"}],
    ids=str,
)  # fmt: skip
def test_account_that_leads_elsewhere_is_refused(changes, tmp_path):
    folder = written(v2(filters=...), tmp_path)
    mend(folder, backup=tmp_path / "old")
    journal = tmp_path / "old" / "journal.jsonl"
    first, second = journal.read_text().splitlines()
    journal.write_text(f"{first}\n{json.dumps({**json.loads(second), **changes})}\n")
    for store in (None, folder, MemoryStore()):
        with pytest.raises(StoreError, match="no account of a repair"):
            omnizarr.undo_repair(tmp_path / "old", store, dry_run=False)


def test_key_that_was_changed_twice_is_undone_twice(tmp_path):
    twice = damaged.inlined({})[:-1] + b', "attributes": {}}'
    folder = written({**v3(), "zarr.json": twice}, tmp_path)
    before = tree(folder)
    account = mend(folder)
    assert [(action.code, action.key) for action in account] == [
        ("repeated-member", "zarr.json"), ("stale-consolidated-metadata", "zarr.json")]  # fmt: skip
    assert [action.key for action in omnizarr.undo_repair(account)] == ["zarr.json"] * 2
    assert "changed after" not in str(omnizarr.undo_repair(account))
    assert omnizarr.undo_repair(account, dry_run=False).ok
    assert tree(folder) == before


def test_second_repair_does_not_write_over_the_backup_of_the_first(tmp_path):
    mend(written(v2(filters=...), tmp_path), backup=tmp_path / "old")
    before = tree(tmp_path / "old")
    folder = written(v2(filters=[]), tmp_path)
    with pytest.raises(StoreError, match="another repair"):
        mend(folder, backup=tmp_path / "old")
    assert tree(tmp_path / "old") == before
    assert (folder / A2).read_bytes() == v2(filters=[])[A2]


def test_store_with_no_place_beside_it_needs_to_be_told_where():
    values = v2(filters=...)
    with pytest.raises(StoreError, match="no place beside"):
        omnizarr.repair(values, dry_run=False)
    assert values == v2(filters=...)


def test_nothing_is_changed_if_the_old_value_cannot_be_kept(tmp_path):
    folder = written(v2(filters=...), tmp_path)
    before = tree(folder)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be kept"):
        mend(folder, backup=tmp_path / "file" / "old")
    assert tree(folder) == before


# Stores


def test_archive_is_mended_when_it_is_closed(tmp_path):
    folder = written({**v2(filters=...), ".zmetadata": zmetadata({}), f"a/0.0.{damaged.HEX}.partial": b"x"}, tmp_path)
    with ZipStore(tmp_path / "x.zip", mode="w") as store:
        for key, data in tree(folder).items():
            store.set(key, data)
    before = (tmp_path / "x.zip").read_bytes()
    dry = omnizarr.repair(tmp_path / "x.zip")
    assert (tmp_path / "x.zip").read_bytes() == before
    account = mend(tmp_path / "x.zip")
    assert account_of(dry) == account_of(account)
    assert {action.code for action in account} == {"missing-filters", "stale-consolidated-metadata", "temporary-file"}
    mend(folder, backup=tmp_path / "other")

    def entries():
        with zipfile.ZipFile(tmp_path / "x.zip") as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    assert entries() == tree(folder)
    omnizarr.undo_repair(account, dry_run=False)
    omnizarr.undo_repair(tmp_path / "other", folder, dry_run=False)
    assert entries() == tree(folder)


def test_store_below_a_prefix_is_mended_and_put_back(tmp_path):
    name = "a/c/0/0.__lock"
    folder = written({f"p/{key}": data for key, data in {**v2(filters=...), name: b"x"}.items()}, tmp_path)
    before = tree(folder)
    account = omnizarr.repair(PrefixStore(LocalStore(folder), "p"), dry_run=False, backup=tmp_path / "old")
    assert sorted(action.key for action in account) == [A2, name]
    assert tree(folder) == {
        **{key: data for key, data in before.items() if key != f"p/{name}"},
        f"p/{A2}": text_with_filters(before),
    }
    assert omnizarr.undo_repair(account, dry_run=False).ok
    assert tree(folder) == before


def text_with_filters(files):
    return files[f"p/{A2}"][:-1] + b', "filters": null}'


def test_archive_below_a_prefix_is_mended_and_put_back(tmp_path):
    with ZipStore(tmp_path / "x.zip", mode="w") as store:
        for key, data in v2(filters=...).items():
            store.set(f"p/{key}", data)
    with ZipStore(tmp_path / "x.zip", mode="r+") as store:
        account = omnizarr.repair(PrefixStore(store, "p"), dry_run=False)
    omnizarr.undo_repair(account, dry_run=False)
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {
            f"p/{key}": data for key, data in v2(filters=...).items()
        }


def test_store_that_may_not_be_written_can_be_looked_at_only(tmp_path):
    store = LocalStore(written(v2(filters=...), tmp_path), read_only=True)
    assert len(omnizarr.repair(store)) == 1
    with pytest.raises(ReadOnlyError):
        omnizarr.repair(store, dry_run=False)


def test_part_of_a_hierarchy_is_mended(tmp_path):
    other = {key.replace("a/", "b/", 1): data for key, data in v2(filters=...).items()}
    folder = written({**other, **v2(filters=...)}, tmp_path)
    account = mend(folder, path="b")
    assert [action.key for action in account] == ["b/.zarray"]


def test_part_of_a_draft_is_mended(tmp_path):
    files = damaged.d2020(dtype=..., shape=[0, 4], chunk_grid={"type": "regular", "chunk_shape": [0, 2]})
    files = {key: data for key, data in files.items() if not key.startswith("data/")}
    folder = written(files, tmp_path)
    account = mend(folder, path="a")
    assert [(action.code, action.key) for action in account] == [("zero-chunk-length", damaged.A20)]


def test_where_nothing_is_there_is_nothing_to_mend(tmp_path):
    with pytest.raises(NodeNotFoundError):
        omnizarr.repair(tmp_path / "nothing")


# Interruptions


def everything(tmp_path):
    """Return a hierarchy with many things wrong."""
    files, _ = shard(CHUNK, CHUNK, CHUNK, CHUNK, extra=b"torn")
    inner = {key.replace("a/", "s/", 1): data for key, data in files.items() if key.startswith("a/")}
    below = {key.replace("a/", "g/a/", 1): data for key, data in v3(fill_value=None).items() if key.startswith("a/")}
    below["g/a/zarr.json"] = text({**V3_ARRAY, "fill_value": None})
    return written({
        **v3(codecs=[{"name": "endian"}], dimension_names=[None, None]),
        "zarr.json": damaged.inlined({"a": {**V3_ARRAY, "shape": [8, 4]}, "b": V3_ARRAY}),
        "b/c/0/0": CHUNK,
        **inner,
        **below,
        f"a/c/0/0.{damaged.HEX}.partial": b"x",
    }, tmp_path)  # fmt: skip


STRIDES = {} if "RUNS" in os.environ else {"get": 3}
"""Of requests that are many and change nothing one in so many fails, unless all is to be tried."""


@pytest.mark.parametrize("verb", ["get", "set", "delete", "lock", "list_prefix", "list_dir", "exists", "size"])
@pytest.mark.sampled(4)
def test_repair_that_fails_at_any_request_can_be_finished_and_undone(verb, tmp_path):
    folder = everything(tmp_path)
    before, data = tree(folder), verb != "size"  # sizes are asked for only where chunks are not decoded
    mend(folder, data=data, backup=False)
    expected = tree(folder)
    failed = 0
    for nth in count(1, STRIDES.get(verb, 1)):
        shutil.rmtree(folder)
        aged(damaged.build(damaged.Damaged("", before, []), folder))
        store = FaultyStore(LocalStore(folder))
        store.fail(verb, nth)
        place = tmp_path / f"{verb}-{nth}"
        try:
            account = omnizarr.repair(store, dry_run=False, data=data, backup=place)
        except StoreError:
            failed += 1
        else:
            # a check goes on where a value cannot be read, and says so
            unread = any(one.code == "unreadable-key" for one in account.left)
            if not unread and store._faults:
                break
            failed += unread
        if nth % 7 == 1 and place.exists():  # what was done until then is undone
            omnizarr.undo_repair(place, folder, dry_run=False)
            assert tree(folder) == before
            aged(folder)
        omnizarr.check(folder)
        mend(folder, data=data, backup=False)
        assert tree(folder) == expected
    assert failed


def test_repair_that_is_killed_between_journal_and_change_can_be_undone(tmp_path):
    folder = everything(tmp_path)
    before = tree(folder)
    store = FaultyStore(LocalStore(folder))
    store.fail("set", 2, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        omnizarr.repair(store, dry_run=False, data=True, backup=tmp_path / "old")
    with (tmp_path / "old" / "journal.jsonl").open("ab") as journal:
        journal.write(b'{"code": "x", "pa')
    omnizarr.undo_repair(tmp_path / "old", folder, dry_run=False)
    assert tree(folder) == before


def test_value_that_somebody_else_has_changed_meanwhile_is_left(tmp_path):
    folder = written(v2(filters=...), tmp_path)
    newer = text({**V2_ARRAY, "shape": [6, 4]})

    class Busy(FaultyStore):
        """Somebody resizes the array right before it is locked."""

        def lock(self, key):
            (folder / A2).write_bytes(newer)
            return super().lock(key)

    account = omnizarr.repair(Busy(LocalStore(folder)), dry_run=False, backup=tmp_path / "old")
    assert (folder / A2).read_bytes() == newer
    assert [action.done for action in account] == [False]
    assert "another writer has changed the value" in str(account)
    assert not account.ok


# Codes


def test_only_what_is_named_is_mended(tmp_path):
    folder = written(v2(filters=..., dimension_separator=None), tmp_path)
    account = mend(folder, codes=["null-separator"])
    assert [action.code for action in account] == ["null-separator"]
    assert [one.code for one in account.left] == ["missing-filters"]


@pytest.mark.parametrize(
    ("code", "message"),
    [("nonsense", "no code 'nonsense'"), ("missing-filter", "missing-filters"), ("not-json", "cannot be repaired")],
)
def test_code_that_cannot_be_mended_is_refused(code, message):
    with pytest.raises(ValueError, match=message):
        omnizarr.repair(v3(), codes=[code])


def test_code_that_is_seen_in_chunks_only_has_them_decoded():
    files, whole = shard(CHUNK, CHUNK, CHUNK, CHUNK, extra=b"torn")
    assert not omnizarr.repair(files).actions
    assert omnizarr.repair(files, codes="shard-tail-torn", dry_run=False, backup=False).ok
    assert files["a/c/0/0"] == whole
    assert NEEDS_DATA <= KINDS


def test_all_that_a_check_calls_repairable_can_be_repaired():
    assert REPAIRABLE <= KINDS
    assert CODES.keys() >= KINDS
    assert not CERTAIN & ASKED.keys()


def test_each_kind_has_what_mends_it():
    assert codes_of("document") == mistakes.CODES
    assert codes_of("chunk") == stored.CODES
    assert codes_of("leftover") == repairer.leftovers.CODES


def test_manual_lists_each_code():
    page = (CORPUS.parents[1] / "docs" / "repairing.md").read_text(encoding="utf-8")
    assert [code for code in sorted(KINDS) if f"| `{code}` |" not in page] == []


# The account


def test_account_says_it_all_in_text_json_and_html(tmp_path):
    folder = written(v2(filters=..., fill_value="seven"), tmp_path)
    folder_of_group = written({**v2(filters=...), "b/.zarray": b"{"}, tmp_path / "other")
    assert not omnizarr.repair(folder).ok
    account = omnizarr.repair(folder_of_group)
    lines = str(account).splitlines()
    assert (
        lines[0] == "would: /a: a/.zarray#/filters: write that there are no filters: nothing -> null [missing-filters]"
    )
    assert lines[1].startswith("left: /b: b/.zarray: ")
    assert lines[2] == "1 repair to be made, nothing changed, 1 finding left"
    assert repr(account) == f"<Account not ok: {lines[2]}>"
    assert "<code>missing-filters</code>" in account._repr_html_()
    assert json.loads(account.to_json())["actions"][0]["key"] == A2
    assert (len(account), bool(account), [action.code for action in account]) == (1, False, ["missing-filters"])
    assert str(account.actions[0]).startswith("did not: /a: a/.zarray#/filters")


def test_memory_store_is_mended_in_place():
    store = MemoryStore(v2(filters=...))
    assert omnizarr.repair(store, dry_run=False, backup=False).ok
    assert json.loads(bytes(store.get(A2))) == V2_ARRAY
