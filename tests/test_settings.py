"""`omnizarr.settings`."""

import pytest

from omnizarr.settings import DEFAULTS, Config


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
    assert config.get("array.order") == "C"
    assert config.get("default_zarr_format") == 3


def test_nested_names_and_keywords():
    config = Config()
    config.set({"array": {"write_empty_chunks": True}}, array__order="F")
    assert config.get("array.write_empty_chunks") is True
    assert config.get("array.order") == "F"


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
    assert config.get("array.order") == "C"
