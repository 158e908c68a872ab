"""Samples of the tests that a parametrization makes: a run needs few of what ``make torture`` runs whole.

``@pytest.mark.sample("values")``: every value of every parameter, fixtures with parameters among them, is in at least
one of the tests that are kept; ``"pairs"``: every two values of two parameters are. Operators meet types, nulls, skew
and memory in pairs in tests/property already; what is marked here asks whether each value gets through a mechanism.

The choice is greedy and the same every time. ``TORTURE=1`` keeps everything, ``TORTURE_PART=2/10`` with it the second
tenth of all tests, and a command line that names a test with its parameters turns sampling off. ``EXAMPLES`` (1; for
torture 20) times as many examples are taken for each test of hypothesis; slow builds take a part of them. The run
without options takes at most ``MOST_EXAMPLES``: what breaks such a test breaks it within a few dozen, and who changes
a room runs its tests by name, with all.
"""

import itertools
import os
import random
from collections import Counter, defaultdict

import hypothesis
import pytest

from tests.property.matrix import IS_TORTURE, PART, PARTS

SIZES = {"values": 1, "pairs": 2}
EXAMPLES = float(os.environ.get("EXAMPLES", "20" if IS_TORTURE else "1"))
#: limit of the examples of a test of hypothesis, in the run without options
MOST_EXAMPLES = 40
#: where hypothesis keeps the settings of a test that has its own
_SETTINGS = "_hypothesis_internal_use_settings"


def first(*values):
    """Return the values of a parameter: the first one is quick, the others are thorough."""
    return [values[0], *(pytest.param(value, marks=pytest.mark.thorough) for value in values[1:])]


def keep_samples(config, items):
    """Take the tests out of ``items`` that a sample leaves out."""
    if any("[" in argument for argument in config.args):
        return
    if IS_TORTURE:
        _drop(config, items, not_of_this_part(items))
        return
    _drop(config, items, left_out(items, _size_that_is_marked))


def _size_that_is_marked(item):
    mark = item.get_closest_marker("sample")
    return None if mark is None else SIZES[mark.args[0]]


def left_out(items, size_of):
    """Return the tests that a sample leaves out; ``size_of(item)``: members that are to meet, None: it is no sample."""
    groups = defaultdict(list)
    for item in items:
        size = size_of(item) if hasattr(item, "callspec") else None
        if size is not None:
            groups[item.path, item.originalname, size].append(item)
    dropped = set()
    for (_, _, size), tests in groups.items():
        cases = [tuple((name, id(value)) for name, value in test.callspec.params.items()) for test in tests]
        chosen = sample(cases, size)
        dropped.update(test for index, test in enumerate(tests) if index not in chosen)
    return dropped


def _drop(config, items, dropped):
    if dropped:
        config.hook.pytest_deselected(items=list(dropped))
        items[:] = [item for item in items if item not in dropped]


def not_of_this_part(items):
    """Return the tests of other parts; of a matrix's cases there are only those of this part."""
    whole = [item for item in items if not (hasattr(item, "callspec") and "case" in item.callspec.params)]
    random.Random(PARTS).shuffle(whole)
    return set(whole) - set(whole[PART - 1 :: PARTS])


def take_examples(items, times=EXAMPLES, most=None):
    """Let each test of hypothesis have so many times the examples it asks for, or as many of them as it may."""
    if times != 1:
        _resize(items, lambda asked: max(5, round(asked * times)))
    elif most is not None:
        _resize(items, lambda asked: min(asked, most))


def _resize(items, examples):
    """Let each test of hypothesis have the number of examples that a function says for what it asks for."""
    machines = {item.cls for item in items if hasattr(getattr(item, "cls", None), "settings")}
    for machine in machines:
        machine.settings = _resized(machine.settings, examples)
    tests = {id(found): found for item in items if (found := getattr(item.obj, "__func__", item.obj)) is not None}
    for test in tests.values():
        if getattr(test, "is_hypothesis_test", False) and hasattr(test, _SETTINGS):
            setattr(test, _SETTINGS, _resized(getattr(test, _SETTINGS), examples))


def _resized(settings, examples):
    return hypothesis.settings(settings, max_examples=examples(settings.max_examples))


def sample(cases, size):
    """Return indices of cases, tuples of the same length, such that every ``size`` members are together in one.

    Of the cases that add as much, the one is taken whose members have met each other least.
    """
    if all(len(case) <= size for case in cases):
        return set({case: at for at, case in reversed(list(enumerate(cases)))}.values())  # one part each
    parts = [list(itertools.combinations(case, min(size, len(case)))) for case in cases]
    missing = {part for of_case in parts for part in of_case}
    met, chosen = Counter(), set()
    while missing:
        added = {at: sum(part in missing for part in parts[at]) for at in range(len(cases)) if at not in chosen}
        most = max(added.values())
        best = min(
            (at for at, count in added.items() if count == most),
            key=lambda at: sum(met[pair] for pair in meetings(cases[at])),
        )
        chosen.add(best)
        missing.difference_update(parts[best])
        met.update(meetings(cases[best]))
    return chosen


def meetings(case):
    return itertools.combinations_with_replacement(case, 2)
