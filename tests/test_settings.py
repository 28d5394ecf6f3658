"""`omnizarr.settings`."""

import pickle

import pytest

import omnizarr
from omnizarr import errors
from omnizarr.settings import DEFAULTS, Config, config, engines
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
    with config.set({"references.trust": "yes"}), pytest.raises(errors.SettingError, match="yes"):
        trust.of(None)


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


def test_engine_that_does_not_exist_is_refused_by_the_array_opened_with_it():
    store = {}
    omnizarr.create_array(store, data=[1, 2, 3])
    with config.set({"engine": "warp"}):
        array = omnizarr.open_array(store)
    with pytest.raises(errors.SettingError, match="warp"):
        array[...]
    assert omnizarr.open_array(store)[0] == 1


def test_number_of_bytes_is_an_integer():
    with config.set({"array.variable_chunk_bytes": "1 MB"}), pytest.raises(errors.SettingError, match="1 MB"):
        omnizarr.create_array({}, shape=3, dtype="string")


def test_arrays_behave_as_the_settings_say_when_they_are_opened():
    store = MemoryStore()
    omnizarr.create_array(store, shape=(2, 2), dtype="i4")
    orders = [omnizarr.open_array(store).config.order]
    with omnizarr.config.set({"array.order": "F"}):
        orders.append(omnizarr.open_array(store).config.order)
    orders.append(omnizarr.open_array(store).config.order)
    assert orders == [None, "F", None]
