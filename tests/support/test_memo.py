"""`omnizarr.support.memo`."""

import os
import threading

import numpy as np
import pytest

from omnizarr.support.memo import ById, Memo


def asked(memo, question):
    """Return whether an answer had to be made."""
    made = []
    memo.get(question, lambda: made.append(1))
    return bool(made)


@pytest.mark.parametrize(
    "question",
    [{"a": [1, 2.5, None, "x"]}, (), float("nan"), -0.0, 2**70, b"\0", np.arange(3), np.float32(1), frozenset({1})],
    ids=repr,
)
def test_same_question_is_answered_once(question):
    memo = Memo()
    assert [asked(memo, question) for _ in range(3)] == [True, False, False]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ("NaN", float("nan")),
        ((1,), [1]),
        ({"1": 0}, {1: 0}),
        (b"a", "a"),
        (np.int32(1), np.int64(1)),
        (np.arange(2, dtype="<i4"), np.arange(2, dtype=">i4")),
        (np.zeros(5000), np.r_[np.zeros(2500), 1, np.zeros(2499)]),
    ],
    ids=lambda value: f"{type(value).__name__}",
)
def test_other_question_is_another(one, other):
    memo = Memo(most_bytes=10**6)
    assert [asked(memo, one), asked(memo, other), asked(memo, one)] == [True, True, False]


def test_errors_are_not_remembered():
    memo = Memo()

    def fail():
        raise ValueError("broken")

    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            memo.get("question", fail)
    assert memo.get("question", lambda: 7) == 7


def test_few_and_small_questions_are_kept():
    memo = Memo(most=10, most_bytes=100)
    for number in range(1000):
        memo.get(number, lambda: None)
        assert len(memo) <= 10
    assert [asked(memo, "x" * 200) for _ in range(2)] == [True, True]


def test_what_cannot_be_asked_twice_is_made_each_time():
    memo = Memo()
    circle = []
    circle.append(circle)
    for question in (lambda: None, threading.Lock(), (number for number in range(3))):
        assert [asked(memo, question) for _ in range(2)] == [True, True]
    assert len(memo) == 0
    assert [asked(memo, circle) for _ in range(2)] == [True, False]


def test_what_may_not_be_kept_is_not():
    memo = Memo()
    assert memo.get("a", lambda: [1], keep=lambda _: False) is not memo.get("a", lambda: [1])


def test_none_is_an_answer():
    memo = Memo()
    assert memo.get("a", lambda: None) is memo.get("a", lambda: 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_child_has_its_own():
    memo = Memo()
    memo.get("a", lambda: 1)
    child = os.fork()
    if not child:
        os._exit(memo.get("a", lambda: 2) + memo.get("b", lambda: 2))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    assert memo.get("b", lambda: 5) == 5


def test_many_threads_ask_at_once():
    memo = Memo(most=5)
    wrong = []

    def ask():
        wrong.extend(n for n in range(3000) if memo.get(n % 7, lambda n=n: n % 7) != n % 7)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_remembered_results_can_be_looked_up_and_put_in():
    memo = Memo(exact=True)
    assert memo.known("question") is None
    memo.put("question", 7)
    assert (memo.known("question"), memo.get("question", lambda: 8), len(memo)) == (7, 7, 1)


def test_results_by_object_are_those_of_this_very_object():
    memo = ById(most=3)
    one, other = [1], [1]
    memo.put(one, "one")
    assert (memo.get(one), memo.get(other)) == ("one", None)
    for number in range(10):  # without `put`, its id would be free again
        memo.put([number], number)
        assert memo.get([number]) is None
    assert 0 < len(memo) <= 3
