"""The line that ``omnizarr --version`` prints; it needs nothing beyond what a plain installation brings."""

from __future__ import annotations

import platform
from importlib import import_module

from omnizarr.settings import config, engines


def version_line() -> str:
    """Return the versions of omnizarr, of what it computes with, and of Python, and which engine runs."""
    version = import_module("importlib.metadata").version
    parts = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numcodecs"))
    return f"omnizarr {version('omnizarr')} (engine: {_engine()}; {parts}; Python {platform.python_version()})"


def _engine() -> str:
    """Return which engine runs, and why it is the slower one."""
    module = engines.module()
    if module is None:
        return f"reference; {_absence()}"
    if engines.choice(config.get("engine")) == "reference":
        return f"reference, as chosen; native {module.__version__} is there"
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
