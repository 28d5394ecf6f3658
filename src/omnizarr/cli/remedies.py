"""Advice in errors of the library, translated for the command line: options instead of keywords.

The library says ``pass overwrite=True``, and the command line ``pass --overwrite``. Keywords become the command's
options with the same meaning. Keywords without such an option are marked "in Python".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

import click

from omnizarr.cli.commands import omnizarr
from omnizarr.errors import OmnizarrError
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from omnizarr.stores import redaction
else:
    redaction = Lazy("omnizarr.stores.redaction")

_VALUE: Final = r"(?P<value>\{[^{}]*\}|\([^()]*\)|'[^']*'|\"[^\"]*\"|\.\.\.|[\w./-]*[\w/-])?"
_keyword: Final = re.compile(rf"(?<![\w'-])(?P<name>(?!storage_options)[a-z][a-z_]*[a-z])={_VALUE}(?!=)")
_storage: Final = re.compile(r"storage_options=(?P<options>\{[^{}]*\})")
_pair: Final = re.compile(r"['\"](\w+)['\"]: *('[^']*'|\"[^\"]*\"|[\w.]+)")
_name: Final = re.compile(r"`(?P<quoted>[a-z]+(?:_[a-z]+)*)`|\b(?P<plain>[a-z]+(?:_[a-z]+)+)\b(?![=(:.])")
_function: Final = re.compile(r"\bomnizarr\.(?P<name>[a-z_]+)(?P<arguments>\([^()]*\))?(?![\w.])")
_setting: Final = re.compile(r"omnizarr\.config\.set\(\{[^{}]*\}\)(?! \(in)")

_PHRASES: Final[Mapping[str, str]] = {
    "`storage_options`": "options (-o key=value)",
    "in storage_options: target='...'": "by storage_options={'target': '...'}",
    "in storage_options: fo='refs.json'": "by storage_options={'fo': 'refs.json'}",
    "give storage_options that": "give options (-o key=value) that",
    " (your own store sets `is_shared`)": "",
    "; or no scheduler": "; or leave out --scheduler",
    "give them in `storage_options`, or in the environment": "give them by -o key=value, or in the environment",
    "pass storage_options={'references': 'trusted'} (--trust-references)": "pass --trust-references",
    'pass references="trusted" (--trust-references)': "pass --trust-references",
    "{'anon': True}": "--anon",
    "open with use_consolidated=False": "see omnizarr check",
    "open with use_consolidated=None, or make it with consolidate_metadata": "make it with omnizarr consolidate",
    "run consolidate_metadata again, or open with use_consolidated=False": "run omnizarr consolidate again",
    "run omnizarr.consolidate_metadata": "run omnizarr consolidate",
    "give a target instead": "give DST instead",
    "give a target, or ": "give DST, or ",
    "open it as an array": "name the group that contains it",
    "open it as a group": "name an array in it: omnizarr ls -r lists them",
    ", or give a target": ", or give DST",
}
"""Advice that is worded differently on the command line, the longest first."""

_MARKS: Final = ("=", "_", "`", "omnizarr.", "{'", "open it as", "give a target")
"""Text with none of these needs no translation."""
_STORE: Final = frozenset({"timeout", "list_timeout", "max_keys", "max_value_bytes", "conditional_put"})
"""Options of stores that errors advise to change."""
_FUNCTIONS: Final = {"copy": "cp", "consolidate_metadata": "consolidate"}
"""Functions whose command has another name."""
_ALIASES: Final[Mapping[str, Mapping[str, str]]] = {"convert": {"zarr_format": "source_format"}}
"""Keywords of functions that open a source; the options with these names concern the target."""


_command: ContextVar[click.Command | None] = ContextVar("command", default=None)


@contextmanager
def typed(words: Sequence[str]) -> Iterator[None]:
    """Set the typed command, for `in_words`."""
    name = next((word for word in words if not word.startswith("-")), "")
    token = _command.set(_command_named(name))
    try:
        yield
    finally:
        _command.reset(token)


def typed_command() -> str:
    """Return the program with the name of the typed command, if there is such a command."""
    command = _command.get()
    return "omnizarr" if command is None else f"omnizarr {command.name}"


def in_words(text: str) -> str:
    """Return a message of the library in terms of the typed command, without passwords and signatures in URLs."""
    if "://" in text:  # first: a query looks like keywords
        text = redaction.redact(text)
    return as_typed(text, _command.get(), lambda name: _command_named(name) is not None)


def message(error: Exception) -> str:
    """Return the message of an error in terms of the typed command: of its remedy, what the command has options for."""
    command = _command.get()
    if not isinstance(error, OmnizarrError) or command is None:
        return in_words(str(error))
    options = _options_of(command)
    return in_words(error.worded(lambda name, value: _as_option(options[name], value) if name in options else None))


def _command_named(name: str) -> click.Command | None:
    return omnizarr.get_command(click.Context(omnizarr), name)


def as_typed(text: str, command: click.Command | None, commands: Callable[[str], bool] = lambda _: True) -> str:
    """Return a message of the library in terms of the command line.

    Parameters
    ----------
    text : str
        An error, or advice.
    command : click.Command, optional
        The typed command; None if it is unknown.
    commands : callable
        Tells whether there is a command of a name.

    Examples
    --------
    >>> convert = click.Command("convert", params=[click.Option(["--overwrite"], is_flag=True)])
    >>> as_typed("pass overwrite=True to replace it", convert)
    'pass --overwrite to replace it'
    >>> as_typed("pass clobber=True to replace it", convert)
    'pass clobber=True (in Python) to replace it'
    """
    if not any(mark in text for mark in _MARKS):
        return text
    for phrase in sorted(_PHRASES, key=len, reverse=True):
        text = text.replace(phrase, _PHRASES[phrase])
    options = {} if command is None else _options_of(command)
    text = _setting.sub(r"\g<0> (in Python)", text)
    text = _function.sub(lambda found: _command_of(found, commands), text)
    aliases = {} if command is None else _ALIASES.get(str(command.name), {})
    of_source = options | {name: options[other] for name, other in aliases.items() if other in options}
    # An error that begins with a keyword is about its value.
    text = _keyword.sub(lambda found: _option(found, of_source if found.start() else options), text)
    text = _name.sub(lambda found: _named(found, of_source), text)
    return _storage.sub(lambda found: _pairs(found, options), text)


def _options_of(command: click.Command) -> dict[str, click.Option]:
    return {param.name: param for param in command.params if isinstance(param, click.Option) and param.name}


def _option(found: re.Match[str], options: Mapping[str, click.Option]) -> str:
    """Return a keyword with its value as an option."""
    name, value = found["name"], (found["value"] or "").strip("'\"")
    if value.startswith("("):
        value = re.sub(r",? *\)$|^\(|(?<=,) +", "", value)
    option = options.get(name)
    if option is None:
        return found[0] if name == "key" else f"{found[0]} (in Python)"
    return _as_option(option, value)


def _as_option(option: click.Option, value: object) -> str:
    """Return an option as it is typed to have a value."""
    if not option.is_flag:
        return f"{_longest(option.opts)} {value}" if value and value != "..." else _longest(option.opts)
    if str(value) != "False":
        return _longest(option.opts)
    if option.secondary_opts:
        return _longest(option.secondary_opts)
    return f"without {_longest(option.opts)}"


def _named(found: re.Match[str], options: Mapping[str, click.Option]) -> str:
    """Return the name of the option for a keyword."""
    name = found["quoted"] or found["plain"]
    if name in _STORE:
        return f"-o {name}=..." if _short_is_storage(options) else f"--storage-option {name}=..."
    option = options.get(name)
    return found[0] if option is None else _longest(option.opts)


def _pairs(found: re.Match[str], options: Mapping[str, click.Option]) -> str:
    """Return storage options as they are typed."""
    name = "-o" if _short_is_storage(options) else "--storage-option"
    pairs = [f"{name} {key}={value.strip(chr(39) + chr(34)).lower()}" for key, value in _pair.findall(found["options"])]
    return " ".join(pairs)


def _short_is_storage(options: Mapping[str, click.Option]) -> bool:
    return not any("-o" in option.opts and option.name != "pairs" for option in options.values())


def _command_of(found: re.Match[str], commands: Callable[[str], bool]) -> str:
    """Return a function of the library as the command of that name."""
    name = _FUNCTIONS.get(found["name"], found["name"])
    return f"omnizarr {name}" if commands(name) else found[0]


def _longest(names: list[str]) -> str:
    return max(names, key=len)
