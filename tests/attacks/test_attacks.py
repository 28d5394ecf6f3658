"""Data, files, servers and browsers that mean harm get a clear error, and nothing else."""

import sys
from collections import Counter

import pytest

if sys.platform == "win32":
    pytest.skip("processes are bounded with setrlimit", allow_module_level=True)

from tests.attacks.arena import attack, field_of, harm_of
from tests.attacks.table import ATTACKS

TRIES = [
    pytest.param(each, attempt, id=f"{each.kind}: {each.name}: {number}")
    for each in ATTACKS
    for number, attempt in enumerate(each.tries)
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("attack", "attempt"), TRIES)
def test_attack_does_no_harm(attack, attempt, tmp_path):
    (tmp_path / "out").mkdir()
    with field_of(attack, tmp_path / "field") as field:
        assert harm_of(attack, attempt, field, tmp_path / "out" / "x.zarr").harm == ""


def test_names_are_unique():
    assert [
        name for name, times in Counter((attack.kind, attack.name) for attack in ATTACKS).items() if times > 1
    ] == []


# The harness sees each kind of harm.


HARMFUL = {
    "ended by SIGSEGV": "import ctypes; ctypes.string_at(0)",
    "MiB": "x = bytearray(1 << 29); x[::4096] = b'x' * len(x[::4096])",
    "of CPU": "import time\nwhile time.process_time() < 4: pass",
    "bare error ZeroDivisionError": "1 / 0",
    "changed files": "open('{x}/new', 'w').close()",
    "asked for GET /": "import urllib.request; urllib.request.urlopen({url!r})",
    "showed a secret": "print(open({secret!r}).read())",
    "was not refused": "pass",
    "was no command": "omnizarr look {x}",
}


@pytest.mark.parametrize(("harm", "code"), HARMFUL.items(), ids=HARMFUL)
def test_harness_sees(harm, code, tmp_path, monkeypatch):
    monkeypatch.setattr("tests.attacks.arena.ATTACKS", [])
    (tmp_path / "out").mkdir()

    @attack("data", "harm", code, refused=harm == "was not refused", memory=256 << 20, cpu=3)
    def lay(field):
        pass

    from tests.attacks import arena

    with field_of(arena.ATTACKS[0], tmp_path / "field") as field:
        attempt = code.replace("{url!r}", repr(field.url)).replace("{secret!r}", repr(str(field.secret)))
        assert harm in harm_of(arena.ATTACKS[0], attempt, field, tmp_path / "out" / "x").harm
