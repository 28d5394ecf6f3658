"""What tests of the command line share."""

import pytest

from omnizarr.cli import main


@pytest.fixture
def capture(capsys):
    """What `run` reads: files replace it by `capfd` if their commands write past `sys.stdout`."""
    return capsys


@pytest.fixture
def run(request, capture, monkeypatch):
    """Return a function that runs a command line in this process: it gives exit code, stdout and stderr.

    Every line of a file that has `COMMAND` begins with it. `COLUMNS` is the width of its terminal.
    """
    command = [request.module.COMMAND] if hasattr(request.module, "COMMAND") else []
    width = getattr(request.module, "COLUMNS", None)

    def run(*arguments, columns=width):
        if columns is not None:
            monkeypatch.setenv("COLUMNS", str(columns))
        code = main([*command, *map(str, arguments)])
        captured = capture.readouterr()
        return code, captured.out, captured.err

    return run
