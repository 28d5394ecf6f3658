"""``omnizarr completion bash | zsh | fish``: scripts for shells, and the completions that these request.

The scripts run ``omnizarr`` with ``_OMNIZARR_COMPLETE``, which prints a line per completion: ``open`` for a path that
continues (the shell adds no space), ``path`` or ``word``, then the value and its help, separated by tabs.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem, ShellComplete, add_completion_class, split_arg_string

from omnizarr.cli.options import PLACE, command

if TYPE_CHECKING:
    _Item = CompletionItem[str]
else:  # not generic before click 8.4
    _Item = CompletionItem

VARIABLE: Final = "_OMNIZARR_COMPLETE"
OPTIONS: Final = Path(__file__).with_name("offered.json")
"""The options of each command with their help; ``python -m tests.tables`` writes it."""
_NO_PLACE_FIRST: Final = frozenset({"completion", "attrs"})


class _Shell(ShellComplete):
    """Base of the scripts of all shells."""

    def get_completions(self, args: list[str], incomplete: str) -> list[_Item]:
        """Return the completions of a word; for a path without importing the command."""
        is_first = len([word for word in args if not word.startswith("-")]) == 1
        if is_first and len(args) == 1 and not incomplete.startswith("-") and args[0] not in _NO_PLACE_FIRST:
            return PLACE.complete(incomplete)
        option, sign, _ = incomplete.partition("=")
        if incomplete.startswith("--") and not sign and args and not any(word.startswith("-") for word in args):
            offered = _offered(args[0], incomplete)
            if offered is not None:
                return offered
        found = super().get_completions(args, incomplete)
        if sign and option.startswith("--"):
            return [CompletionItem(f"{option}={item.value}", item.type, item.help) for item in found]
        return found

    def format_completion(self, item: _Item) -> str:
        """Return the line for a completion."""
        kind = item.type if item.type in ("open", "path") else "word"
        return "\t".join((kind, item.value, " ".join((item.help or "").split())))

    def complete(self) -> str:
        """Return the lines."""
        args, incomplete = self.get_completion_args()
        found = self.get_completions(args, incomplete)
        return "\n".join(self.format_completion(item) for item in found if item.value.isprintable())


def _offered(name: str, incomplete: str) -> list[_Item] | None:
    """Return the options of a command of which none has been typed yet, without importing it; None for other words."""
    offered: dict[str, str | None] | None = json.loads(OPTIONS.read_bytes()).get(name)
    if offered is None:
        return None
    return [CompletionItem(option, help=text) for option, text in offered.items() if option.startswith(incomplete)]


class _Bash(_Shell):
    name = "bash"
    source_template = """\
# Completion of omnizarr for bash 4 and later.
%(complete_func)s() {
    local kind value _
    COMPREPLY=()
    while IFS=$'\\t' read -r kind value _; do
        COMPREPLY+=("$value")
        [[ $kind == word ]] || compopt -o filenames
        [[ $kind != open ]] || compopt -o nospace
    done < <(COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_WORD="${COMP_WORDS[COMP_CWORD]}" \\
        COMP_WORDBREAKS="$COMP_WORDBREAKS" %(complete_var)s=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F %(complete_func)s %(prog_name)s 2>/dev/null || complete -F %(complete_func)s %(prog_name)s
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor, and the one at it."""
        line = os.environ["COMP_LINE"]
        words = split_arg_string(line)
        if len(split_arg_string(f"{line}x")) > len(words):
            words.append("")
        return words[1:-1], words[-1]

    def format_completion(self, item: _Item) -> str:
        """Return the line for a completion, without the part that bash treats as a separate word."""
        _, incomplete = self.get_completion_args()
        breaks = set(os.environ.get("COMP_WORDBREAKS", "")) & {":", "="}
        start = max((incomplete.rfind(sign) + 1 for sign in breaks), default=0)
        if os.environ.get("COMP_WORD", "").startswith(('"', "'")):
            start = 0
        return super().format_completion(CompletionItem(item.value[start:], item.type, item.help))


class _Words(_Shell):
    """A shell that splits the command line itself, and passes the words before the cursor and the one at it."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor, and the one at it."""
        return os.environ["COMP_WORDS"].split("\n")[1:], os.environ["COMP_WORD"]


class _Zsh(_Words):
    name = "zsh"
    source_template = """\
#compdef %(prog_name)s
# Completion of omnizarr for zsh.
%(complete_func)s() {
    local line kind value help
    local -a before opened paths plain shown
    before=("${(@Q)words[1,CURRENT-1]}")
    for line in "${(@f)$(COMP_WORDS="${(pj:\\n:)before}" COMP_WORD="${(Q)PREFIX}" \\
            %(complete_var)s=zsh_complete %(prog_name)s 2>/dev/null)}"; do
        kind="${line%%%%$'\\t'*}" value="${${line#*$'\\t'}%%$'\\t'*}" help="${line##*$'\\t'}"
        case $kind in
            open) opened+=("$value") ;;
            path) paths+=("$value") ;;
            word) plain+=("$value"); shown+=("${value}${help:+  -- $help}") ;;
        esac
    done
    (( $#opened )) && compadd -f -S '' -a opened
    (( $#paths )) && compadd -f -a paths
    (( $#plain )) && compadd -l -d shown -a plain
    (( $#opened + $#paths + $#plain ))
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""


class _Fish(_Words):
    name = "fish"
    source_template = """\
# Completion of omnizarr for fish.
function %(complete_func)s
    set -l before (string join \\n -- (commandline -opc) | string collect)
    set -l word (commandline -ct | string unescape)
    for line in (COMP_WORDS=$before COMP_WORD="$word" %(complete_var)s=fish_complete %(prog_name)s 2>/dev/null)
        set -l parts (string split \\t -- $line)
        string join \\t -- $parts[2] $parts[3]
    end
end
complete --no-files --command %(prog_name)s --arguments '(%(complete_func)s)'
"""


_SHELLS: Final[dict[str, type[_Shell]]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}


def register() -> None:
    """Register these shells with click."""
    for name, shell in _SHELLS.items():
        add_completion_class(shell, name)


def script(shell: str) -> str:
    """Return the script for a shell."""
    root: Any = click.get_current_context().find_root().command
    return _SHELLS[shell](root, {}, "omnizarr", VARIABLE).source()


@command()
@click.argument("shell", metavar="SHELL", type=click.Choice(tuple(_SHELLS)))
def completion(shell: str) -> None:
    """Print a script that completes commands, options and paths.

    SHELL is bash, zsh or fish. Press Tab to complete commands, options, values of options, files, and the groups and
    arrays inside a hierarchy.

    \b
    Examples:
      source <(omnizarr completion bash)
      omnizarr completion bash > ~/.local/share/bash-completion/completions/omnizarr
      omnizarr completion zsh > ~/.zfunc/_omnizarr
      omnizarr completion fish > ~/.config/fish/completions/omnizarr.fish
    """  # noqa: D301 - click's mark of lines to be kept
    click.echo(script(shell), nl=False)
