"""docs/differences.md says what does not exist, and that is held against both libraries."""

import importlib
import inspect
import pkgutil
import re
import warnings
from pathlib import Path

import pytest

import omnizarr
import omnizarr.aio

pytestmark = pytest.mark.rules

zarr = pytest.importorskip("zarr", reason="the page compares with it")

PAGE = (Path(__file__).parents[1] / "docs" / "differences.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## Missing names\n")[2].partition("\n## ")[0]
VERSION = tuple(map(int, zarr.__version__.split(".")[:2]))
COMPARED = tuple(map(int, re.search(r"compares with zarr-python (\d+)\.(\d+)", PAGE).groups()))
LISTED = {
    name: (remark or "", tuple(map(int, since.split("."))) if since else ())
    for row in re.findall(r"^\| (`zarr\..*?) \|", SECTION, re.MULTILINE)
    for name, remark, since in re.findall(r"`(zarr\.[\w.]+)`(?: \((before|since) ([\d.]+)\))?", row)
}
# Where omnizarr has what zarr-python has elsewhere.
AWAITED = ("zarr.api.asynchronous.", "zarr.AsyncArray.", "zarr.AsyncGroup.")


def is_there(name):
    """Whether a module, or something in one, has that name."""
    parts = name.split(".")
    for split in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for part in parts[split:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def ours(name):
    """Return the name that something of zarr-python would have in omnizarr."""
    for prefix in AWAITED:
        if name.startswith(prefix):
            return f"omnizarr.aio.{name.removeprefix('zarr.').removeprefix('api.asynchronous.')}"
    return name.replace("zarr.", "omnizarr.", 1)


def public(module):
    return getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]


def names_of_zarr_python():
    """Yield the public names of zarr-python."""
    for module in pkgutil.iter_modules(zarr.__path__):
        if not module.name.startswith("_") and module.name != "core":  # which the page calls private
            yield f"zarr.{module.name}"
    for function in (zarr.set_log_level, zarr.set_format):  # public, but not in __all__
        yield f"zarr.{function.__name__}"
    for path in ("zarr", "zarr.storage", "zarr.codecs", "zarr.errors", "zarr.api.asynchronous"):
        for name in public(importlib.import_module(path)):
            yield f"{path}.{name}"
    for name in ("Array", "Group", "AsyncArray", "AsyncGroup"):
        for member, _ in inspect.getmembers_static(getattr(zarr, name)):
            if not member.startswith("_"):
                yield f"zarr.{name}.{member}"


def test_the_page_lists_names():
    assert len(LISTED) > 50


@pytest.mark.parametrize("name", LISTED)
def test_what_is_stated_not_to_be_there_is_missing(name):
    assert not is_there(ours(name)), "it is there: strike it off docs/differences.md"


@pytest.mark.parametrize("name", LISTED)
def test_what_is_stated_not_to_be_there_is_in_zarr_python(name):
    remark, version = LISTED[name]
    # Releases after 3.1 are compared with as they come: the page says "since 3.4" of what 3.2 and 3.3 may have too.
    expected = {"before": VERSION < (3, 2), "since": version <= VERSION}.get(remark, True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of modules that will go
        found = is_there(name)
    if (3, 2) <= VERSION < COMPARED and remark:
        return
    assert found == expected, f"of zarr-python {zarr.__version__} this is not true"


def test_whatever_zarr_python_has_besides_is_there():
    if VERSION > COMPARED:
        pytest.skip(f"the page compares with zarr-python {'.'.join(map(str, COMPARED))}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        missing = {name for name in names_of_zarr_python() if name not in LISTED and not is_there(ours(name))}
    assert not missing, "docs/differences.md does not say that these are not there"


def test_names_of_errors_mean_what_the_page_says():
    for row in re.findall(r"((?:`\w+`(?:, | and )?)+) (?:is|are) `(\w+)`", PAGE.partition("## Errors\n")[2]):
        for name in re.findall(r"`(\w+)`", row[0]):
            assert getattr(omnizarr.errors, name) is getattr(omnizarr.errors, row[1])


def test_settings_that_the_page_names_have_an_effect_and_others_of_zarr_python_none():
    named = SECTION.partition("`omnizarr.config` knows")[2].partition("It accepts other settings")[0]
    known = re.findall(r"`([a-z][\w.]*)`", named.replace("`zarr.config`", ""))
    assert len(known) == 8
    for name in known:
        omnizarr.config.get(name)  # raises KeyError

    def flat(settings, prefix=""):
        for name, value in settings.items():
            yield from flat(value, f"{prefix}{name}.") if isinstance(value, dict) and value else [prefix + name]

    for name in {*flat(zarr.config.config), "array.allow_unsafe_pickle_decode"}:
        with omnizarr.config.set({name: omnizarr.config.get(name, None)}):
            pass
    with pytest.raises(KeyError):
        omnizarr.config.set({"array.ordre": "F"})
