"""zarr-python, and the packages that use it, with the codec pipeline of omnizarr switched on."""

from __future__ import annotations

from dataclasses import replace

from tests.downstream import themselves

_DEFAULT = "asks which pipeline zarr-python has by default"
APART = {
    "test_config.py::test_config_defaults_set": _DEFAULT,
    "test_config.py::test_config_codec_pipeline_class*": _DEFAULT,
}
SUITES = tuple(
    replace(
        suite,
        name=suite.name.replace("as it is", "with the codec pipeline"),
        plugin="omnizarr_pipeline",
        apart=APART if suite.project == "zarr" else {},
        known=themselves.FAIL_TOO.get(suite.project, {}),
    )
    for suite in themselves.SUITES
)
