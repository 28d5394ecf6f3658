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
from omnizarr.cli.remedies import in_words, message
from omnizarr.cli.remedies import typed as while_typed
from omnizarr.errors import Function, NodeExistsError, Remedy, Setting, StorageOption, Wording
from omnizarr.tools.check.codes import CODES

pytestmark = pytest.mark.rules

SOURCE = Path(omnizarr.__file__).parent
KINDS = {kind.__name__: kind for kind in (Function, Remedy, Setting, StorageOption, Wording)}


def leaves(command, words):
    """Yield each command that can be typed, by its words."""
    if not isinstance(command, click.Group):
        yield words, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        yield from leaves(command.get_command(context, name), (*words, name))


COMMANDS = dict(leaves(program, ()))
# What commands run: the rest is for those who write programs.
REACHED = ("api/opening", "codecs", "engine", "formats", "nodes", "show", "stores", "tools", "web")
KEYWORD = re.compile(
    r"(?<![\w'/?-])[a-z][a-z_]*[a-z]=|storage_options|omnizarr\.(?!stores|codecs|engine|netcdf|config)[a-z_]+|`[a-z]+_[a-z_]+`"
)
"""Python, in what somebody who typed a command reads."""


STORAGE = re.compile(r"(?:-o|--storage-option) \w+=\S+")


class Unknown(str):
    """A value that is known only at run time."""

    __slots__ = ()

    def __new__(cls):
        return super().__new__(cls, "VALUE")

    def __repr__(self):
        return "VALUE"

    def __format__(self, spec):
        return "VALUE"

    def __getattr__(self, name):
        return self

    def __getitem__(self, key):
        return self

    def __call__(self, *args, **kwargs):
        return self


class Names(dict):
    """Names of a module: those of wordings, and others, which are unknown."""

    def __missing__(self, name):
        return Unknown()


def trees():
    for file in sorted(SOURCE.rglob("*.py")):
        if file.name != "errors.py":
            yield file.relative_to(SOURCE).as_posix(), ast.parse(file.read_text())


def is_wording(node):
    """Whether an expression makes a `Wording`: a call, a further remark, or several ways."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.BitOr) and (is_wording(node.left) or is_wording(node.right))
    if not isinstance(node, ast.Call):
        return False
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    return name in ("Remedy", "Wording", "also")


def wordings():
    """Yield module and value of each `Wording` in the source."""
    for module, tree in trees():
        names = Names(KINDS, join=Unknown())
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                target = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
                text = ast.unparse(node.value)
                if is_wording(node.value) or isinstance(node.value, ast.Constant) or "StorageOption(" in text:
                    names[target] = eval(text, names)
        for node in ast.walk(tree):
            if is_wording(node) and isinstance(value := eval(ast.unparse(node), names), Wording):
                yield module, value
    yield from (("tools/check/codes.py", code.remedy) for code in CODES.values() if isinstance(code.remedy, Wording))


VALUES = sorted(set(wordings()))


def plain():
    """Yield module and text of each plain remedy, and of each plain message of a ValueError."""
    for module, tree in trees():
        inside = {id(part) for node in ast.walk(tree) if is_wording(node) for part in ast.walk(node)}
        for node in ast.walk(tree):
            name = node.arg if isinstance(node, ast.keyword) else getattr(getattr(node, "func", None), "id", "")
            if name in ("remedy", "ValueError"):
                parts = [part for part in ast.walk(node) if id(part) not in inside]
                for part in parts:
                    if isinstance(part, ast.JoinedStr):
                        pieces = (each.value if isinstance(each, ast.Constant) else "VALUE" for each in part.values)
                        yield module, "".join(pieces)
                    elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield module, part.value
    yield from (("tools/check/codes.py", str(code.remedy)) for code in CODES.values()
                if not isinstance(code.remedy, Wording))  # fmt: skip


def test_wordings_are_found():
    assert len(VALUES) > 100
    assert any(str(value).startswith("continue it with resume=True, or") for _, value in VALUES)
    assert any(str(value).startswith("max_memory=VALUE: ") for _, value in VALUES)
    assert len(set(plain())) > 200


IN_PYTHON = {
    "api/opening.py",  # modes, which no option sets
    "nodes/array.py",  # `copy=` of NumPy's protocol
    "nodes/lazy/view.py",  # the same
    "nodes/config.py",  # keywords of `open`, which no option sets
    "stores/remote/object_errors.py",  # a keyword of PyTorch
    "tools/copy.py",  # `if_exists=`, which no option sets
}


def test_what_names_a_keyword_is_a_wording():
    """So that the command line, and other interfaces, can word it."""
    said = {(module, text) for module, text in plain() if module.startswith(REACHED) and KEYWORD.search(text)}
    assert {each for each in said if each[0] not in IN_PYTHON} == set()


def options_of(command):
    return {name for param in command.params for name in (*param.opts, *param.secondary_opts)}


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_commands_only_offer_what_they_have(words):
    """A remedy leaves out ways that the typed command has no option for, and functions without a command."""
    with while_typed(words):
        said = [message(NodeExistsError("", remedy=value)) for _, value in VALUES if isinstance(value, Remedy)]
    options = options_of(COMMANDS[words])
    offered = {text: set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", text)) - options for text in said}
    assert {text: missing for text, missing in offered.items() if missing} == {}
    commands = {text: set(re.findall(r"\bomnizarr ([a-z_]+)", text)) for text in said}
    assert set().union(*commands.values()) <= {name for name, *_ in COMMANDS}
    assert [text for text in said if KEYWORD.search(STORAGE.sub("", text))] == []


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


@pytest.mark.parametrize(
    ("command", "value", "expected"),
    [
        ("convert", Remedy("{strict} converts what can be", strict=False), "without --strict converts what can be"),
        ("convert", Remedy("{verify}", verify=False), "--no-verify"),
        ("convert", Remedy("choose a smaller {max_memory}", max_memory=...), "choose a smaller --max-memory"),
        ("convert", Remedy("{source_format} names it", source_format=...), "--from names it"),
        ("convert", Remedy("pass {zarr_format}", zarr_format="2"), "pass --from 2"),
        ("show", Wording("{limits}: rising numbers", limits=(5.0, 1.0)), "--limits 5.0,1.0: rising numbers"),
        ("ls", Remedy("wait") | Remedy("pass {zarr_format}", zarr_format="2"), "wait"),
        ("ls", Wording("{mode}: what is it", mode="q"), "mode='q': what is it"),
        ("ls", Remedy("raise {list_timeout}", list_timeout=StorageOption()), "raise -o list_timeout=..."),
        ("get", Remedy("raise {timeout}", timeout=StorageOption()), "raise --storage-option timeout=..."),
        ("ls", Remedy("pass {anon}", anon=StorageOption(value=True)), "pass --anon"),
        ("attrs get", Remedy("pass {anon}", anon=StorageOption(value=True)), "pass --anon"),
        ("ls", Remedy("{references}", references=StorageOption("trusted")), "--trust-references"),
        ("ls", Remedy("{references}", references=["/data"]), "--trust-root /data"),
        ("ls", Remedy("use {convert}", convert=Function("(file, 'x.zarr')")), "use omnizarr convert"),
        ("ls", Remedy("use {delete_node}", delete_node=Function()), "use omnizarr rm"),
        ("ls", Remedy("raise {it}", it=Setting("a.b")), 'raise omnizarr.config.set({"a.b": ...}) (in Python)'),
        ("ls", "fill_value is null, and so is `dtype`", "fill_value is null, and so is `dtype`"),
    ],
)  # fmt: skip
def test_wordings_become_options(command, value, expected):
    with while_typed(command.split()):
        assert in_words(value) == expected


def test_fields_of_metadata_are_no_options(tmp_path, capsys):
    """Options have the names of fields of metadata documents: ``zarr_format`` became ``--to`` in messages."""
    omnizarr.create_array(tmp_path / "a.zarr", data=[1, 2])
    document = tmp_path / "a.zarr" / "zarr.json"
    document.write_text(document.read_text().replace('"zarr_format": 3', '"zarr_format": 7').replace(":3,", ":7,"))
    assert main(["convert", str(tmp_path / "a.zarr"), str(tmp_path / "b.zarr"), "--to", "2"]) == 1
    err = capsys.readouterr().err
    assert "zarr_format" in err
    assert "--to" not in err


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
