import threading

import pytest

from omnizarr.aio.replay import Answers, replay
from omnizarr.errors import InvalidKeyError, StoreError
from omnizarr.stores.asynchronous import asynchronous
from tests.aio.stores import Counting, objects, run


def stored(**values):
    store = objects()
    for key, value in values.items():
        store.set(key.replace("_", "/"), value)
    return store


def replayed(store, function):
    async def main():
        return await replay(Answers(store), asynchronous(store), function)

    return run(main())


def test_what_is_asked_is_answered():
    store = stored(a=b"one", b_c=b"two", b_d_e=b"three")

    def look(here):
        parts = [bytes(here.get("a", (1, 2))), here.exists("b/c"), here.exists("x"), here.size("b/c"), here.get("x")]
        many = {position: value and bytes(value) for position, value in here.get_many([("a", None), ("y", None)])}
        return parts, many, here.list_dir("b"), here.has_any("b/", ["c", "z"]), here.has_any("b/", ["z"])

    assert replayed(store, look) == look(store)


def test_several_questions_are_asked_side_by_side(monkeypatch):
    store = stored(**{f"k{number}": bytes([number]) for number in range(20)})
    counting = Counting(monkeypatch, delay=0.001)
    keys = [f"k{number}" for number in range(20)] * 2
    found = replayed(store, lambda here: dict(here.get_many((key, None) for key in keys)))
    assert [bytes(found[position]) for position in range(40)] == [bytes([number]) for number in range(20)] * 2
    assert counting.total == 20
    assert counting.most > 5


def test_nothing_is_asked_twice(monkeypatch):
    store = stored(a=b"one")
    counting = Counting(monkeypatch)
    replayed(store, lambda here: (here.get("a"), here.get("a"), here.size("a"), here.exists("a"), here.get("b")))
    assert counting.total == 2


def test_failures_come_where_the_question_is_asked(monkeypatch):
    store = stored(a=b"one")
    counting = Counting(monkeypatch)
    counting.failures["some/where/a"] = PermissionError("injected")

    def look(here):
        try:
            here.get("a")
        except StoreError as error:
            return error.key, here.get("b")

    assert replayed(store, look) == ("a", None)
    with pytest.raises(StoreError):
        replayed(store, lambda here: here.get("a"))


def test_keys_that_break_the_rules_are_refused():
    for look in (lambda here: here.get("../a"), lambda here: list(here.get_many([("/a", None)]))):
        with pytest.raises(InvalidKeyError):
            replayed(objects(), look)


def test_functions_that_ask_one_thing_after_the_other_are_left_to_a_thread():
    store = stored(**{f"k{number}": b"" for number in range(100)})
    names = set()

    def look(here):
        count = 0
        while here.exists(f"k{count}"):
            count += 1
        names.add(threading.current_thread().name)
        return count

    assert replayed(store, look) == 100
    assert any(name.startswith("omnizarr-wait") for name in names)


def test_writing_is_refused():
    for change in (lambda here: here.set("a", b""), lambda here: here.delete("a"), lambda here: list(here.list())):
        with pytest.raises(NotImplementedError):
            replayed(objects(), change)


def test_it_means_the_store():
    store = objects()
    answers = Answers(store)
    assert repr(answers) == repr(store)
    assert answers.origin() == store.origin()
    assert answers == Answers(store)
