"""zarr-python, and the packages upon it, with the codec pipeline of omnizarr switched on."""

from __future__ import annotations

from dataclasses import replace

from tests.downstream import themselves

_DEFAULT = "asks which pipeline zarr-python has by default"
APART = {
    "test_config.py::test_config_defaults_set": _DEFAULT,
    "test_config.py::test_config_codec_pipeline_class*": _DEFAULT,
}
AS_IT_IS = "fails as it is too: "
KNOWN = {
    "dask": {"test_zarr_risky_shards_warns": AS_IT_IS + "it wants the configuration of dask's own tests"},
    "ome-zarr": {
        "test_reader.py::test_class_reader_legacy*": AS_IT_IS + "it reads from servers on the internet",
        "test_cli.py::TestCli::test_s3_info*": AS_IT_IS + "it reads from servers on the internet",
    },
    "zarr": {"test_examples.py::test_scripts_can_run*": AS_IT_IS + "it runs uv"},
}

SUITES = tuple(
    replace(
        suite,
        name=suite.name.replace("as it is", "with the codec pipeline"),
        plugin="omnizarr_pipeline",
        apart=APART if suite.project == "zarr" else {},
        known=KNOWN.get(suite.project, {}),
    )
    for suite in themselves.SUITES
)
