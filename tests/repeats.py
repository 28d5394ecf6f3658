"""How often tests of races, kills and random inputs run."""

import os


def runs(usually: int) -> int:
    """Return the number of the environment variable RUNS, or how often a test usually runs."""
    return int(os.environ.get("RUNS", usually))
