"""The keywords of public functions, which their implementations take all at once."""

import inspect
from dataclasses import MISSING, fields
from importlib import import_module

import pytest

import omnizarr
from omnizarr.tools.convert.task import Task
from omnizarr.tools.pyramid import building

RUNS = {
    "advise": "advise.adviser.run",
    "check": "check.checker.run",
    "copy_node": "edit.cp.run",
    "delete_node": "edit.rm.run",
    "diff": "diff.comparer.run",
    "digest": "digest.digester.run",
    "digest_of_bytes": "digest.digester.of_bytes",
    "du": "du.measuring.run",
    "missing": "missing.absent.run",
    "move_node": "edit.mv.run",
    "repair": "repair.repairer.run",
    "stat": "stat.counter.run",
    "undo_repair": "repair.repairer.undo",
}


def keywords_of(function):
    return inspect.signature(function).parameters


@pytest.mark.parametrize("name", RUNS)
def test_implementation_takes_all_keywords(name):
    module, _, function = RUNS[name].rpartition(".")
    run = getattr(import_module(f"omnizarr.tools.{module}"), function)
    assert set(keywords_of(run)) == set(keywords_of(getattr(omnizarr, name)))


def test_task_of_convert_has_its_keywords_and_defaults():
    given = {
        name: MISSING if each.default is each.empty else each.default
        for name, each in keywords_of(omnizarr.convert).items()
    }
    assert {each.name: each.default for each in fields(Task)} == given


def test_task_of_convert_has_the_keywords_of_rechunk():
    assert set(keywords_of(omnizarr.rechunk)) <= {each.name for each in fields(Task)}


def test_task_of_pyramid_has_its_keywords():
    assert [each.name for each in fields(building.Task)] == list(keywords_of(omnizarr.pyramid))
