"""The output of ``omnizarr --version``, which needs no extra."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

from omnizarr.settings import config, engines


def version_line() -> str:
    """Return the versions of omnizarr, its main dependencies and Python, and the engine."""
    metadata, platform = import_module("importlib.metadata"), import_module("platform")
    parts = [f"numpy {metadata.version('numpy')}"]
    with suppress(metadata.PackageNotFoundError):
        parts.append(f"numcodecs {metadata.version('numcodecs')}")
    packages = f"{', '.join(parts)}; Python {platform.python_version()}"
    return f"omnizarr {metadata.version('omnizarr')} (engine: {_engine()}; {packages})"


def _engine() -> str:
    """Return the engine in use, and why it is the slower one."""
    module = engines.module()
    if module is None:
        return f"reference; {_absence()}"
    if engines.choice(config.get("engine")) == "reference":
        return f"reference, as chosen; native {module.__version__} is available"
    return f"native {module.__version__}"


def _absence() -> str:
    """Return why there is no native engine."""
    try:
        import_module("omnizarr._native")
    except ModuleNotFoundError:
        pass
    except ImportError as error:  # built for another machine
        return f"native engine cannot be loaded: {error}"
    return "native engine not built"
