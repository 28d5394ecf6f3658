"""Running a command: handles errors, interruptions and closed pipes."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from omnizarr.cli import completion, interrupts, progress, remedies
from omnizarr.cli.commands import omnizarr
from omnizarr.cli.text import Discreet, one_line
from omnizarr.errors import NodeNotFoundError, OmnizarrError, SelectionError
from omnizarr.stores import redaction
from omnizarr.support import suggestions

OK, PROBLEM, USAGE, INTERRUPTED = 0, 1, 2, 130


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; an error becomes one line on stderr."""
    # Replace characters that the terminal cannot print, instead of raising an error.
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    if completion.VARIABLE in os.environ:
        completion.register()
    words = sys.argv[1:] if arguments is None else arguments
    with _somewhere_to_print(), _discreet(words), _short_warnings(), remedies.typed(words), interrupts.twice(words):
        try:
            result = omnizarr.main(args=arguments, prog_name="omnizarr", standalone_mode=False)
            sys.stdout.flush()
        except BrokenPipeError:
            return _reader_has_gone()
        except SystemExit as error:
            # click exits like this on a broken pipe, or after completing a word for a shell.
            return (
                error.code if completion.VARIABLE in os.environ and isinstance(error.code, int) else _reader_has_gone()
            )
        except Exception as error:  # noqa: BLE001 - a user of a command line can do nothing with a traceback
            code = explain(error)
            _flush()
            return code
        except KeyboardInterrupt as error:
            return _interrupted(error)
        return result if isinstance(result, int) else OK


def explain(error: Exception) -> int:
    """Print what went wrong, and return the exit code."""
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.Abort):  # which click makes of an interruption
        return _interrupted(error.__cause__)
    if isinstance(error, click.UsageError):
        command = error.ctx.command_path if error.ctx is not None else remedies.typed_command()
        if not isinstance(error, click.NoSuchOption):
            usage = " ".join(error.format_message().split()).rstrip(".")  # click lists choices on lines of their own
        else:
            parameters = error.ctx.command.get_params(error.ctx) if error.ctx is not None else ()
            options = [name[2:] for each in parameters for name in each.opts if name.startswith("--")]
            near = suggestions.near_names(error.option_name.lstrip("-"), options, 1, likeness=0.6)
            question = suggestions.question([f"--{name}" for name in near])
            usage = f"no option {error.option_name!r}{f'; {question}' if question else ''}"
        _say(f"{usage}; see '{command} --help'")
        return USAGE
    if isinstance(error, click.ClickException):
        _say(error.format_message())
        return error.exit_code
    if isinstance(error, SelectionError):
        _say(remedies.message(error))
        return USAGE
    if isinstance(error, NodeNotFoundError):
        _say(remedies.message(_for_looking(error)))
        return PROBLEM
    if isinstance(error, (OmnizarrError, OSError)):
        _say(remedies.message(error))
        return PROBLEM
    if isinstance(error, MemoryError):
        _say("not enough memory")
        return PROBLEM
    _say(f"unexpected {type(error).__name__}: {error} (a bug of omnizarr: please report it)")
    return PROBLEM


def _for_looking(error: NodeNotFoundError) -> NodeNotFoundError:
    """Return the error without advice on creating the node, because the command only reads."""
    if error.remedy is not None and error.remedy.startswith("create"):
        error.remedy = None
    return error


def _say(message: str) -> None:
    progress.clear()
    click.echo(f"omnizarr: {one_line(remedies.safe(message))}", err=True)


def _interrupted(error: BaseException | None) -> int:
    """Print how far the work came, and how to continue it."""
    progress.clear()
    done = progress.so_far()
    click.echo(f"omnizarr: interrupted{'' if done is None else f' while {done}'}", err=True)
    if isinstance(error, interrupts.Stopped):
        click.echo(error.advice, err=True)
    _flush()
    return INTERRUPTED


def _reader_has_gone() -> int:
    """Discard buffered output. For ``omnizarr ls -r x | head``, a closed pipe is not an error."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # a stdout without a file behind it
        sys.stdout = None
    return OK


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _reader_has_gone()


@contextmanager
def _somewhere_to_print() -> Iterator[None]:
    """Discard output if there is no stdout, as in ``omnizarr ls x >&-``."""
    if sys.stdout is not None:
        yield
        return
    try:
        with open(os.devnull, "w", encoding="utf-8") as sys.stdout:  # noqa: PTH123 - no path
            yield
    finally:
        sys.stdout = None


@contextmanager
def _discreet(words: Sequence[str]) -> Iterator[None]:
    """Show no password and no signature of a URL that was typed, wherever a command prints it."""
    hidings = redaction.hidings(words) if any("://" in word for word in words) else {}
    if not hidings:
        yield
        return
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (Discreet(stream, hidings) for stream in streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


@contextmanager
def _short_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("default")

        def show(message: Warning | str, *_: Any, **__: Any) -> None:
            _say(f"warning: {message}")

        warnings.showwarning = show
        yield
