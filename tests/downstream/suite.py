"""What a suite is: the tests of a package, and what has them use omnizarr."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Suite:
    """The tests of a package, as its release has them.

    Parameters
    ----------
    name : str
        What the suite is called in the table and on the command line: "xarray, engine omnizarr".
    project : str
        The package on PyPI. The release is the one that is installed.
    tests : tuple of str
        Arguments of pytest: files and folders in the source distribution, or (`installed`) names of modules.
    plugin : str
        A module in the folder ``plugins`` that pytest loads before the tests (``-p``); it makes the package use
        omnizarr. Empty: none, for comparison.
    is_named : bool
        Whether ``import zarr`` finds omnizarr in every process that the tests start.
    installed : bool
        Whether the package is installed with its tests.
    options : tuple of str
        More arguments of pytest, such as ``("-k", "zarr")``.
    environment : mapping of str to str
        Variables that the tests need.
    known : mapping of str to str
        Tests that do not pass, and why. A key is a pattern (`fnmatch`) that ends the identifiers of these tests:
        "test_backends.py::TestZarr*::test_append*". A failure that is not listed makes the run fail.
    apart : mapping of str to str
        Tests that do not apply, and why, by the same patterns. They are not run and not counted.
    """

    name: str
    project: str
    tests: tuple[str, ...]
    plugin: str = ""
    is_named: bool = False
    installed: bool = False
    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, str] = field(default_factory=dict)
    apart: Mapping[str, str] = field(default_factory=dict)
