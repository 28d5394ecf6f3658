"""`omnizarr.copy` and `copy_all`: what is not kept of values, and which files of the target stay."""

import pickle

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import NodeExistsError, NotRepresentableError

# What is not kept


ROUNDING = {
    "a filter of v3": (3, {"filters": [{"name": "bitround", "configuration": {"keepbits": 5}}]}),
    "a filter of v2": (2, {"filters": [{"id": "bitround", "keepbits": 5}]}),
    "a data type": (3, {"dtype": "float16"}),
    "within shards": (
        3,
        {"filters": [{"name": "bitround", "configuration": {"keepbits": 5}}], "chunks": (3,), "shards": (6,)},
    ),
}
EXACT = {"other compression": {"compressors": None}, "other chunks": {"chunks": (3,)}, "wider": {"dtype": "float64"}}
ODD = np.float32(1) + np.arange(12, dtype="f4") / 1000


class Foreign:
    """An array of another library."""

    name, shape, dtype, attrs, nbytes = "/foreign", ODD.shape, ODD.dtype, {"a": 1}, ODD.nbytes

    def __getitem__(self, selection):
        return ODD[selection]


def sources():
    group = omnizarr.create_group({})
    inner = group.create_group("inner")
    inner["odd"] = ODD
    return {"array": inner["odd"], "group": inner, "all": group, "foreign": Foreign()}


def copied(kind, dest, **options):
    source = sources()[kind]
    return omnizarr.copy_all(source, dest, **options) if kind == "all" else omnizarr.copy(source, dest, "x", **options)


@pytest.mark.parametrize("kind", ["array", "group", "all", "foreign"])
@pytest.mark.parametrize("what", ROUNDING)
def test_codecs_and_types_that_round_are_listed_and_refused_by_strict(kind, what):
    zarr_format, options = ROUNDING[what]
    dest = omnizarr.create_group({}, zarr_format=zarr_format)
    for dry_run in (True, False):
        with pytest.raises(NotRepresentableError, match="digits of the values"):
            copied(kind, dest, strict=True, dry_run=dry_run, **options)
        assert list(dest.keys()) == []
    told = copied(kind, dest, dry_run=True, **options).losses
    done = copied(kind, dest, **options)
    assert done.losses == told
    assert [loss.path for loss in told] == ["foreign" if kind == "foreign" else "inner/odd"]
    made = {"array": "x", "foreign": "x", "group": "x/odd", "all": "inner/odd"}[kind]
    assert not np.array_equal(dest[made][:], ODD)


@pytest.mark.parametrize("kind", ["array", "group", "all", "foreign"])
@pytest.mark.parametrize("what", EXACT)
def test_what_keeps_all_values_loses_nothing(kind, what):
    dest = omnizarr.create_group({})
    assert copied(kind, dest, strict=True, **EXACT[what]).losses == ()


def test_what_a_filter_of_the_source_has_rounded_is_not_lost_again():
    filters = [{"name": "bitround", "configuration": {"keepbits": 5}}]
    source = omnizarr.create_array({}, name="a", data=ODD, filters=filters)
    dest = omnizarr.create_group({})
    assert omnizarr.copy(source, dest, filters=filters, chunks=(5,), strict=True).losses == ()
    np.testing.assert_array_equal(dest["a"][:], source[:])


def test_arrays_that_are_skipped_lose_nothing():
    dest = omnizarr.create_group({})
    dest["x"] = ODD
    done = copied("array", dest, if_exists="skip", dtype="float16", strict=True)
    assert done == (0, 1, 0)
    assert done.losses == ()


def test_a_result_is_a_tuple_of_three_that_can_be_pickled():
    dest = omnizarr.create_group({})
    done = copied("array", dest, dtype="float16")
    count, skipped, nbytes = done
    assert (count, skipped, nbytes) == (1, 0, ODD.nbytes)
    assert repr(done) == f"Copied(copied=1, skipped=0, nbytes={ODD.nbytes})"
    again = pickle.loads(pickle.dumps(done))
    assert (again, again.losses) == (done, done.losses)


# Files that are not Zarr, and exist at the target


@pytest.fixture
def beside(tmp_path):
    """Return two groups with files: one equal in both, one different, one only in the first."""
    for name in ("source", "dest"):
        group = omnizarr.create_group(tmp_path / name)
        group.create_group("g")
        for at in ("", "g/"):
            (tmp_path / name / f"{at}same.txt").write_text("same")
            (tmp_path / name / f"{at}other.txt").write_text(name)
    (tmp_path / "source" / "g" / "new.txt").write_text("new")
    omnizarr.open(tmp_path / "source").create_array("g/a", data=ODD)
    return tmp_path


def run(verb, place, **options):
    source, dest = omnizarr.open(place / "source"), omnizarr.open(place / "dest")
    return (
        omnizarr.copy_all(source, dest, **options)
        if verb == "copy_all"
        else omnizarr.copy(source["g"], dest, **options)
    )


VERBS = {"copy": ["g/other.txt"], "copy_all": ["g/other.txt", "other.txt"]}


@pytest.mark.parametrize("verb", VERBS)
def test_a_different_file_at_the_target_is_an_error_before_anything_is_copied(beside, verb):
    with pytest.raises(NodeExistsError, match="another content") as raised:
        run(verb, beside)
    assert "other.txt" in str(raised.value)
    assert not (beside / "dest" / "g" / "a").exists()
    assert not (beside / "dest" / "g" / "new.txt").exists()


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("if_exists", ["skip", "skip_initialized"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_different_file_that_stays_is_told(beside, verb, if_exists, dry_run):
    said = []
    done = run(verb, beside, if_exists=if_exists, dry_run=dry_run, log=said.append)
    assert [name if verb == "copy_all" else f"g/{name}" for name in done.kept] == VERBS[verb]
    assert sum(text.startswith("keep ") for text in said) == len(done.kept)
    assert (beside / "dest" / "g" / "other.txt").read_text() == "dest"
    assert (beside / "dest" / "g" / "new.txt").exists() != dry_run


@pytest.mark.parametrize("verb", VERBS)
def test_a_different_file_is_replaced_with_the_nodes(beside, verb):
    done = run(verb, beside, if_exists="replace")
    assert done.kept == ()
    for name in VERBS[verb]:
        assert (beside / "dest" / name).read_text() == "source"


@pytest.mark.parametrize("verb", VERBS)
def test_equal_files_are_no_obstacle(beside, verb):
    for name in VERBS["copy_all"]:
        (beside / "dest" / name).write_text("source")
    assert run(verb, beside).kept == ()
