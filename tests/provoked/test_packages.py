"""Errors of packages that are missing: each names the package, the place that needs it, and how to install it.

Each runs in a process of its own, because what was imported or found is kept.
"""

import re
import subprocess
import sys
import textwrap

import pytest

DOCUMENT = {
    2: """
        array = omnizarr.create_array('x.zarr', data=np.arange(4.0), zarr_format=2, compressors=None)
        import json, pathlib
        file = pathlib.Path('x.zarr/.zarray')
        members = json.loads(file.read_text())
        members['compressor'] = {{'id': {id!r}}}
        file.write_text(json.dumps(members))
        omnizarr.open_array('x.zarr')[:]
    """,
    3: """
        array = omnizarr.create_array('x.zarr', data=np.arange(4.0), compressors=None)
        import json, pathlib
        file = pathlib.Path('x.zarr/zarr.json')
        members = json.loads(file.read_text())
        members['codecs'] = [{{'name': 'bytes', 'configuration': {{'endian': 'little'}}}}, {{'name': {id!r}}}]
        file.write_text(json.dumps(members))
        omnizarr.open_array('x.zarr')[:]
    """,
}
CASES = {
    "zfp": (["zfpy"], DOCUMENT[3].format(id="numcodecs.zfpy"), "key 'zarr.json' at /codecs/1", "x.zarr"),
    "pcodec": (["pcodec"], DOCUMENT[2].format(id="pcodec"), "key '.zarray' at /compressor", "x.zarr"),
    "szip": (["imagecodecs"], DOCUMENT[2].format(id="szip"), "key '.zarray' at /compressor", "x.zarr"),
    "msgpack": (["msgpack"], DOCUMENT[2].format(id="msgpack2"), "key '.zarray' at /compressor", "x.zarr"),
    "ml": (["ml_dtypes"], "omnizarr.create_array('x.zarr', shape=3, dtype='bfloat16')", "bfloat16"),
    "cloud": (["obstore"], "omnizarr.open('s3://bucket/x.zarr')"),
    "fsspec": (["fsspec"], "omnizarr.open('fsspec+file:///x.zarr')"),
    "lmdb": (["lmdb"], "omnizarr.create_group('x.lmdb')"),
    "parquet": (
        ["pyarrow", "fastparquet"],
        """
        import pathlib
        pathlib.Path('x.parq/temp').mkdir(parents=True)
        pathlib.Path('x.parq/.zmetadata').write_text('{"metadata": {".zgroup": {"zarr_format": 2}, "temp/.zarray": '
            '{"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i4", "order": "C", "filters": null, '
            '"compressor": null, "fill_value": 0}}, "record_size": 10}')
        pathlib.Path('x.parq/temp/refs.0.parq').write_bytes(b'PAR1')
        omnizarr.open('x.parq', mode='r')['temp'][:]
        """,
        "x.parq",
        "refs.0.parq",
    ),
    "show": (["PIL"], "omnizarr.create_array({}, data=np.eye(9)).show().save('x.png')"),
    "serve": (["starlette"], "omnizarr.create_group('x.zarr'); omnizarr.serve('x.zarr')"),
    "netcdf": (["netCDF4"], "omnizarr.create_group('x.zarr'); omnizarr.convert('x.zarr', 'x.nc')"),
    "dask": (
        ["distributed"],
        "omnizarr.create_group('x.zarr'); omnizarr.convert('x.zarr', 'y.zarr', scheduler='tcp://127.0.0.1:1')",
    ),
    "blake3": (["blake3"], "omnizarr.digest(omnizarr.create_group({}), algorithm='blake3')"),
}


def said(packages, code, place):
    """Return the classes and the message of what some code raises where packages are missing."""
    program = f"""
import sys
for name in {packages!r}:
    sys.modules[name] = None
import numpy as np, omnizarr
try:
{textwrap.indent(textwrap.dedent(code).strip(), "    ")}
except Exception as error:
    print(*[kind.__name__ for kind in type(error).__mro__], sep=" ")
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=place)
    kinds, _, message = done.stdout.partition("\n")
    assert kinds, done.stderr
    return kinds.split(), message.strip()


@pytest.mark.parametrize("extra", CASES)
def test_missing_package_is_named_with_what_needs_it_and_what_installs_it(extra, tmp_path):
    packages, code, *where = CASES[extra]
    kinds, message = said(packages, code, tmp_path)
    assert {"MissingDependencyError", "ImportError", "ValueError"} <= set(kinds)
    assert re.search(rf"\b({'|'.join(packages)}|Pillow)\b", message)
    assert f'pip install "omnizarr[{extra}]"' in message
    for words in where:
        assert words in message
    assert "\n" not in message


def test_command_line_names_the_package_and_no_python(tmp_path):
    code = f"""
    from omnizarr.cli import main
    {DOCUMENT[2].format(id="pcodec").strip().rpartition(chr(10))[0].strip()}
    sys.exit(main(['get', 'x.zarr']))
    """
    program = "import sys\nsys.modules['pcodec'] = None\nimport numpy as np, omnizarr\n" + textwrap.dedent(
        "\n".join(line.strip() for line in code.strip().splitlines())
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    for words in ("x.zarr", "key '.zarray' at /compressor", "pcodec", 'pip install "omnizarr[pcodec]"'):
        assert words in done.stderr
    assert done.stderr.count("\n") == 1
