"""Which engine is chosen (`omnizarr.settings.engines`), and the error if it does not exist."""

import warnings

import pytest

import omnizarr
from omnizarr.errors import OmnizarrError, SettingError
from omnizarr.settings import engines


@pytest.fixture
def importing(monkeypatch):
    """Return what makes the import of the extension module raise an error."""

    def raising(error):
        def fail(name):
            raise error

        monkeypatch.setattr(engines, "import_module", fail)

    engines.module.cache_clear()
    yield raising
    engines.module.cache_clear()


def test_module_that_was_not_built_is_none(importing):
    importing(ModuleNotFoundError("No module named 'omnizarr._native'", name="omnizarr._native"))
    assert engines.module() is None


@pytest.mark.parametrize(
    "error",
    [
        ImportError("libc.so.6: version `GLIBC_2.99' not found", name="omnizarr._native"),
        ModuleNotFoundError("No module named 'other'", name="other"),
    ],
)
def test_module_that_cannot_be_loaded_is_warned_of_once(importing, error):
    importing(error)
    with pytest.warns(RuntimeWarning, match="cannot be loaded") as caught:
        assert engines.module() is None
    assert str(error) in str(caught[0].message)
    with warnings.catch_warnings(action="error"):
        assert engines.module() is None


def test_engine_that_there_is_not_is_refused_by_name():
    with pytest.raises(ValueError, match="fast") as caught:
        omnizarr.config.set({"engine": "fast"})
    assert isinstance(caught.value, SettingError)
    assert isinstance(caught.value, OmnizarrError)
    assert "native" in str(caught.value)
    assert "reference" in str(caught.value)


def test_name_of_the_engine_is_that_of_the_one_chosen():
    with omnizarr.config.set({"engine": "reference"}):
        assert engines.name() == "reference"
