"""How the native engine and the page of ``omnizarr view`` are built, where they can be; all else is in pyproject.toml.

The variable ``OMNIZARR_BUILD_NATIVE`` says what is wanted: ``auto`` (the default) builds the engine if that is possible
and goes without it if not, ``require`` fails if it cannot be built, ``never`` does not try.
"""

import sys
import sysconfig
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools_rust import Binding, RustExtension, build_rust

sys.path.insert(0, str(Path(__file__).parent / "packaging"))

from building import build_page, choice

CHOICE = choice("OMNIZARR_BUILD_NATIVE")

# PyPy has no stable ABI, CPython without the GIL none that goes back to 3.11: there the module is for one version.
HAS_STABLE_ABI = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")

NATIVE = RustExtension(
    "omnizarr._native",
    path="rust/Cargo.toml",
    features=["python", "remote"],
    cargo_manifest_args=["--locked"],
    binding=Binding.PyO3,
    debug=False,  # what is installed in place is tested and measured like any other
    optional=CHOICE != "require",
)


class BuildNative(build_rust):
    """The engine, or none: what an earlier build left behind is not taken for it."""

    built = False

    def run(self) -> None:
        """Build it; where that fails, say so and remove the module of another day."""
        super().run()
        if not self.built:
            Path(self.get_dylib_ext_path(NATIVE, NATIVE.name)).unlink(missing_ok=True)
            self.warn(
                "omnizarr goes without its native engine: it works, slower, and with numcodecs (omnizarr[numcodecs]); "
                "what was missing is said above"
            )

    def run_for_extension(self, extension: RustExtension) -> None:
        """Build it, and remember that this went well."""
        super().run_for_extension(extension)
        self.built = True


class BuildModules(build_py):
    """The modules of Python, with the page that is built beside them."""

    def run(self) -> None:
        """Build the page first, so that it is found."""
        build_page(self.warn)
        super().run()


class Wheel(bdist_wheel):
    """A wheel tagged by what is in it: without the engine it is one for every machine."""

    def finalize_options(self) -> None:
        """Ask for one wheel for all versions of Python, where there is such a thing."""
        if HAS_STABLE_ABI:
            self.py_limited_api = "cp311"
        super().finalize_options()

    def run(self) -> None:
        """Build first, then see what there is to be packed."""
        self.run_command("build")
        if not self.root_is_pure and not self.get_finalized_command("build_rust").built:
            self.root_is_pure = True
            self.plat_name_supplied = False
            self.distribution.has_ext_modules = lambda: False
        super().run()


setup(
    cmdclass={"bdist_wheel": Wheel, "build_py": BuildModules, "build_rust": BuildNative},
    rust_extensions=[] if CHOICE == "never" else [NATIVE],
)
