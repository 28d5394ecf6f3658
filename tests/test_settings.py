"""`omnizarr.settings`."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from omnizarr.formats import DIALECTS
from omnizarr.settings import DEFAULTS, RULES, Config, config, engines
from omnizarr.stores import MemoryStore, trust


def test_set_holds_until_changed():
    config = Config()
    config.set({"array.order": "F"})
    assert config.get("array.order") == "F"
    config.reset()
    assert config.get("array.order") == DEFAULTS["array.order"]


def test_set_in_a_with_block_is_put_back():
    config = Config()
    with config.set({"array.order": "F"}, default_zarr_format=2) as inside:
        assert inside is config
        with config.set({"array.order": "C"}):
            assert config.get("array.order") == "C"
        assert config.get("array.order") == "F"
    assert config.get("array.order") is None
    assert config.get("default_zarr_format") == 3


def test_nested_names_and_keywords():
    config = Config()
    config.set({"array": {"write_empty_chunks": True}}, array__order="F")
    assert config.get("array.write_empty_chunks") is True
    assert config.get("array.order") == "F"


def test_no_setting_is_the_group_of_others():
    groups = {name[:end] for name in DEFAULTS for end, letter in enumerate(name) if letter == "."}
    assert not groups & DEFAULTS.keys(), "a nested mapping can hold a value or settings below a name, not both"


@pytest.mark.parametrize(("given", "covers"), [("trusted", True), (["s3://b"], True), ("inside", False), (None, False)])
def test_trust_in_references_is_a_setting(given, covers):
    with config.set({"references": {"trust": given}}):
        assert trust.of(None).covers("s3://b/a") is covers
        assert not trust.of("inside").covers("s3://b/a")


def test_unknown_trust_in_references_is_refused_and_named():
    with pytest.raises(errors.SettingError, match="yes"):
        trust.of("yes")


@pytest.mark.parametrize("name", ["async.concurrency", "threading.max_workers"])
def test_two_settings_of_zarr_python_are_one(name):
    config = Config()
    config.set({name: 3})
    assert config.get("concurrency") == config.get(name) == 3


def test_settings_of_zarr_python_without_effect_are_remembered():
    config = Config()
    with config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
        assert config.get("codec_pipeline.path") == "zarrs.ZarrsCodecPipeline"
    assert config.get("codec_pipeline.path", None) is None


def test_misspelt_setting_says_what_comes_near():
    config = Config()
    with pytest.raises(KeyError, match=r"array\.order"):
        config.set({"array.oder": "F"})
    with pytest.raises(KeyError, match="did you mean"):
        config.get("default_zar_format")


def test_failed_set_changes_nothing():
    config = Config()
    with pytest.raises(KeyError):
        config.set({"array.order": "F", "nonsense": 1})
    assert config.get("array.order") is None


@pytest.mark.parametrize(("chosen", "later"), [("reference", None), (None, "reference")])
def test_engine_counts_when_the_array_is_opened(chosen, later, monkeypatch):
    monkeypatch.setattr(engines, "_FROM_ENVIRONMENT", None)
    store = {}
    omnizarr.create_array(store, data=[1, 2, 3])
    unasked = omnizarr.open_array(store).engine
    with config.set({"engine": chosen}):
        arrays = [
            omnizarr.open_array(store),
            omnizarr.create_array({}, shape=3, dtype="i4"),
            omnizarr.open_group({"zarr.json": b'{"zarr_format": 3, "node_type": "group"}'}, mode="a").create_array(
                "x", shape=3, dtype="i4"
            ),
        ]
    with config.set({"engine": later}):
        arrays[0].resize(5)
        copies = [pickle.loads(pickle.dumps(arrays[0]))]
        assert {array.engine for array in [*arrays, *copies]} == {chosen or unasked}


# For each setting, values that it cannot have, of a wrong type, a wrong word, or out of range.
WRONG = {
    "default_zarr_format": ["3", 4, "zarr", True, None],
    "array.chunk_cache": [-1, "1 lot", 1.5, True, None],
    "array.order": ["c", "K", 1],
    "array.write_empty_chunks": ["yes", 1, None],
    "array.read_missing_chunks": ["no", 0, None],
    "array.target_shard_size_bytes": [0, "1 lot", 2.5],
    "array.variable_chunk_bytes": [-1, "1 lot", 1.5, True, None],
    "array.variable_element_bytes": [-1, "1 lot", None],
    "attributes.nonfinite": ["null", None],
    "bytes_in_flight": [-1, "1 lot", 1.5, True, None],
    "concurrency": [-3, 0, "4", 2.0, True],
    "display.thumbnails": ["yes", 1],
    "documents.max_bytes": [-1, "1 lot"],
    "engine": ["warp", "Native", True],
    "fetch": ["curl", "natively", 1],
    "references.max_bytes": [-1, None],
    "references.max_count": [-1, 1.5],
    "references.max_generated": [-1, "many"],
    "references.trust": ["yes", 3, ["relative/path"], [], [1]],
}


def test_each_setting_has_a_rule_that_its_default_keeps():
    assert RULES.keys() == DEFAULTS.keys() == WRONG.keys()
    Config().set(DEFAULTS)


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_value_that_a_setting_cannot_have_is_refused_when_it_is_set(name, value):
    config = Config()
    with pytest.raises(errors.SettingError) as caught:
        config.set({name: value, "array.order": "F"} if name != "array.order" else {name: value})
    assert isinstance(caught.value, ValueError)
    assert (name in str(caught.value), caught.value.found, bool(caught.value.expected)) == (True, repr(value), True)
    assert config.asdict() == DEFAULTS


def test_alias_of_zarr_python_is_checked_too():
    with pytest.raises(errors.SettingError, match="concurrency"):
        Config().set({"async": {"concurrency": -3}})


def test_formats_of_new_nodes_are_those_that_there_are():
    Config().set(default_zarr_format=2)
    formats = {dialect.zarr_format for dialect in DIALECTS} - {0}
    assert all(RULES["default_zarr_format"].allows(each) for each in formats)


def test_integers_of_numpy_are_integers():
    Config().set({"concurrency": np.int64(4), "array.chunk_cache": np.uint8(10)})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("concurrency", -3),
        ("concurrency", "4"),
        ("chunk_cache", -1),
        ("order", "c"),
        ("missing", "zero"),
        ("allow_pickle", "yes"),
        ("write_empty_chunks", "no"),
        ("engine", "warp"),
        ("bytes_in_flight", "1 lot"),
        ("variable_chunk_bytes", -1),
        ("variable_element_bytes", None),
    ],
)
def test_value_that_an_array_cannot_have_is_refused_when_it_is_opened(name, value):
    store = {}
    omnizarr.create_array(store, data=[1, 2, 3])
    with pytest.raises(errors.SettingError, match=name) as caught:
        omnizarr.open_array(store, config={name: value})
    assert caught.value.found == repr(value)
    assert caught.value.expected


@pytest.mark.parametrize("variable", ["OMNIZARR_ENGINE", "OMNIZARR_FETCH"])
def test_variable_of_the_environment_is_checked(variable):
    done = subprocess.run(
        [sys.executable, "-c", "import omnizarr; omnizarr.create_array({}, data=[1, 2, 3])"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, variable: "curl"},
    )
    said = done.stderr.splitlines()[-1]
    assert ("SettingError" in said, "found curl" in said, "'native' or" in said, variable in said) == (True,) * 4


def test_arrays_behave_as_the_settings_say_when_they_are_opened():
    store = MemoryStore()
    omnizarr.create_array(store, shape=(2, 2), dtype="i4")
    orders = [omnizarr.open_array(store).config.order]
    with omnizarr.config.set({"array.order": "F"}):
        orders.append(omnizarr.open_array(store).config.order)
    orders.append(omnizarr.open_array(store).config.order)
    assert orders == [None, "F", None]
