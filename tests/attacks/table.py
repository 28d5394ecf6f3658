"""All attacks, from the modules beside this one; a module enters its attacks when it is imported."""

import importlib
from pathlib import Path

from tests.attacks.arena import ATTACKS

NO_ATTACKS = {"__main__", "arena", "victim", "table"}

for _path in sorted(Path(__file__).parent.glob("*.py")):
    if _path.stem not in NO_ATTACKS and not _path.stem.startswith("test_"):
        importlib.import_module(f"tests.attacks.{_path.stem}")

__all__ = ["ATTACKS"]
