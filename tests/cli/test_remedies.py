"""What errors of the library advise, as the command line says it: options as they are typed, not keywords."""

import ast
import pickle
import re
from pathlib import Path

import click
import pytest

import omnizarr
from omnizarr.cli import main
from omnizarr.cli.commands import omnizarr as program
from omnizarr.cli.remedies import as_typed, message
from omnizarr.cli.remedies import typed as while_typed
from omnizarr.errors import NodeExistsError, Remedy
from omnizarr.tools.checking.codes import CODES

SOURCE = Path(omnizarr.__file__).parent
CONTEXT = click.Context(program)
COMMANDS = {name: program.get_command(CONTEXT, name) for name in program.list_commands(CONTEXT)}
UNTYPED = re.compile(r"(?<![\w-])[a-z][a-z_]*[a-z]=(?!\S* \(in Python\)|\.\.\.)|\{'|storage_options|`[a-z_]+`")
"""Python, in what somebody who typed a command reads."""


def remedies():
    """Yield module and text of each remedy in the source; a field of an f-string is the word VALUE."""
    for file in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(file.read_text())
        names = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign | ast.AnnAssign) and (text := text_of(node.value)):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                names[ast.unparse(target)] = text
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg == "remedy":
                for part in ast.walk(node.value):
                    text = text_of(part) or (isinstance(part, ast.Name) and names.get(part.id)) or ""
                    if " " in text and not text.endswith(": "):
                        yield file.relative_to(SOURCE).as_posix(), text
    yield from (("tools/checking/codes.py", code.remedy) for code in CODES.values())


def typed(command, text):
    return as_typed(text, COMMANDS[command], COMMANDS.__contains__)


def text_of(node):
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "VALUE" for part in node.values)
    return None


STORAGE = re.compile(r"(?:-o|--storage-option) \w+=\S+")
REMEDIES = sorted(set(remedies()))
# What commands run: the rest is for those who write programs.
REACHED = ("api/opening", "codecs", "engine", "formats", "nodes", "stores", "tools")


def test_remedies_are_found():
    assert len(REMEDIES) > 150
    assert ("tools/converting/journal.py", "start again with {overwrite}") in REMEDIES


def values():
    """Yield module and value of each `Remedy` in the source."""
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            is_whole = isinstance(node, ast.BinOp | ast.Call) and ast.unparse(node).startswith("Remedy(")
            if is_whole:
                yield file.relative_to(SOURCE).as_posix(), eval(ast.unparse(node), {"Remedy": Remedy})


VALUES = sorted(set(values()))
KEYWORD = re.compile(r"\b(overwrite|resume|recursive|in_place|remove_old|strict|dry_run|if_exists)=")


def test_remedies_with_keywords_are_values():
    assert len(VALUES) > 30
    assert any(str(value).startswith("continue it with resume=True, or") for _, value in VALUES)
    said = [(module, text) for module, text in REMEDIES if KEYWORD.search(text) and module.startswith(REACHED)]
    assert said == []


def options_of(command):
    below = [command.get_command(CONTEXT, name) for name in command.commands] if hasattr(command, "commands") else []
    params = [*command.params, *(param for each in below for param in each.params)]
    return {name for param in params for name in (*param.opts, *param.secondary_opts)}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_only_offer_options_that_they_have(name):
    """A remedy leaves out ways that the typed command has no option for."""
    with while_typed([name]):
        said = {value: message(NodeExistsError("", remedy=value)) for _, value in VALUES}
    offered = {
        text: set(re.findall(r"(?<![\w-])--[a-z-]+", text)) - options_of(COMMANDS[name]) for text in said.values()
    }
    assert {text: options for text, options in offered.items() if options} == {}
    assert [text for text in said.values() if "in Python" in text or KEYWORD.search(text)] == []


def test_remedies_leave_out_what_a_command_cannot_do():
    ways = Remedy("move it away") | Remedy("pass {overwrite} to replace it", overwrite=True)
    said = {}
    for name in ("cp", "mv"):
        with while_typed([name]):
            said[name] = message(NodeExistsError("it exists", remedy=ways))
    assert said == {"cp": "it exists; move it away, or pass --overwrite to replace it", "mv": "it exists; move it away"}
    assert str(NodeExistsError("it exists", remedy=ways)).endswith("move it away, or pass overwrite=True to replace it")


def test_remedies_are_values_in_other_processes_too():
    error = pickle.loads(pickle.dumps(NodeExistsError("it exists", remedy=Remedy("pass {overwrite}", overwrite=True))))
    assert error.worded(lambda name, value: f"{name} is {value}") == "it exists; pass overwrite is True"


def test_misspelt_options_are_compared_without_their_dashes(capsys):
    assert main(["attrs", "get", "x.zarr", "--json"]) == 2
    assert "anon" not in capsys.readouterr().err
    assert main(["attrs", "get", "x.zarr", "--anom"]) == 2
    assert "did you mean '--anon'?" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_no_remedy_that_a_command_can_meet_is_in_python(name):
    said = {text: typed(name, text) for module, text in REMEDIES if module.startswith(REACHED)}
    left = {text: words for text, words in said.items() if UNTYPED.search(STORAGE.sub("", words))}
    assert left == {}


@pytest.mark.parametrize(
    ("command", "module"),
    [("convert", "tools/converting/"), ("convert", "tools/streaming/"), ("repair", "tools/repairing/")],
)
def test_all_that_a_tool_advises_can_be_typed(command, module):
    said = [typed(command, text) for found, text in REMEDIES if found.startswith(module)]
    assert [words for words in said if "(in Python)" in words] == []


@pytest.mark.parametrize(
    ("command", "text", "expected"),
    [
        ("convert", "continue it with resume=True, or start again with overwrite=True",
         "continue it with --resume, or start again with --overwrite"),
        ("convert", "dry_run=True shows all; strict=False converts what can be",
         "--dry-run shows all; without --strict converts what can be"),
        ("convert", "choose a smaller max_memory, and continue with resume=True",
         "choose a smaller --max-memory, and continue with --resume"),
        ("convert", "source_format= names the documents to convert", "--from names the documents to convert"),
        ("convert", "leave out zarr_format, or pass zarr_format='2'", "leave out --from, or pass --from 2"),
        ("convert", "max_memory=10: one chunk has 80 bytes", "--max-memory 10: one chunk has 80 bytes"),
        ("convert", "verify=False", "--no-verify"),
        ("dump", "there is an array, not a group; open it as an array",
         "there is an array, not a group; name the group that contains it"),
        ("resize", "there is a group, not an array; open it as a group",
         "there is a group, not an array; name an array in it: omnizarr ls -r lists them"),
        ("check", "rename it, or open it as a store of its own", "rename it, or open it as a store of its own"),
        ("show", "limits=(5.0, 1.0): expected two rising numbers", "--limits 5.0,1.0: expected two rising numbers"),
        ("advise", "as in 'time=*'", "as in 'time=*'"),
        ("ls", "zarr_format='2' opens them", "zarr_format='2' (in Python) opens them"),
        ("ls", "raise `list_timeout` if there is so much", "raise -o list_timeout=... if there is so much"),
        ("get", "raise `timeout`, or wait", "raise --storage-option timeout=..., or wait"),
        ("ls", "if you trust them, pass storage_options={'references': 'trusted'} (--trust-references)",
         "if you trust them, pass --trust-references"),
        ("convert", 'if you trust the file, pass references="trusted" (--trust-references)',
         "if you trust the file, pass --trust-references"),
        ("ls", "convert it: omnizarr.convert(file, 'x.zarr'), or open it with netCDF4",
         "convert it: omnizarr convert, or open it with netCDF4"),
        ("ls", "nothing to be said otherwise", "nothing to be said otherwise"),
    ],
)  # fmt: skip
def test_remedies_become_options(command, text, expected):
    assert typed(command, text) == expected


def test_what_convert_says_of_a_target_that_is_there(tmp_path, capsys):
    omnizarr.create_array(tmp_path / "a.zarr", data=[1, 2])
    omnizarr.create_array(tmp_path / "b.zarr", data=[1, 2])
    assert main(["convert", str(tmp_path / "a.zarr"), str(tmp_path / "b.zarr")]) == 1
    err = capsys.readouterr().err
    assert err.endswith("there is an array already; pass --overwrite to replace it\n")


def test_what_convert_says_of_too_little_memory(tmp_path, capsys):
    omnizarr.create_array(tmp_path / "a.zarr", data=list(range(1000)), chunks=100)
    arguments = ["convert", str(tmp_path / "a.zarr"), str(tmp_path / "b.zarr"), "--chunks", "500", "--max-memory", "10"]
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert "--max-memory 10: one chunk" in err
    assert "bug" not in err
