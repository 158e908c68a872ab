"""What a sample of tests holds, and when there is none."""

import itertools
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests import sampling
from tests.sampling import sample

AXES = {"type": range(21), "mode": range(4), "how": range(3), "ship": range(2)}
CASES = [tuple(zip(AXES, values, strict=True)) for values in itertools.product(*AXES.values())]


def parts_of(cases, size):
    return {part for case in cases for part in itertools.combinations(case, size)}


@pytest.mark.parametrize(("size", "count_max"), [(1, 21), (2, 21 * 4 + 21)])
def test_a_sample_holds_every_value_or_every_pair_and_not_much_more(size, count_max):
    chosen = [CASES[index] for index in sample(CASES, size)]
    assert parts_of(chosen, size) == parts_of(CASES, size)
    assert len(chosen) <= count_max


def test_a_sample_of_values_mixes_the_others():
    chosen = [CASES[index] for index in sample(CASES, 1)]
    met = {(dict(case)["mode"], dict(case)["how"]) for case in chosen}
    assert len(met) == 12


def test_a_sample_is_the_same_every_time_and_one_axis_is_kept_whole():
    assert sample(CASES, 2) == sample(list(CASES), 2)
    assert sample([(("mode", mode),) for mode in range(4)], 2) == {0, 1, 2, 3}


def kept(*arguments):
    """Return the parameters of the tests that are kept of six which are a sample, and the seventh, which is not."""
    deselected = []

    def deselect(items):
        deselected.extend(items)

    mark = pytest.mark.sample("values").mark
    tests = [Item({"one": one, "other": other}, mark) for other in "ab" for one in (1, 2, 3)]
    tests.append(Item({"one": 7}))
    items = list(tests)
    sampling.keep_samples(SimpleNamespace(args=arguments, hook=SimpleNamespace(pytest_deselected=deselect)), items)
    assert [test for test in tests if test not in deselected] == items
    return [tuple(item.callspec.params.values()) for item in items]


class Item:
    """What the choice asks of a test of pytest."""

    path, originalname = "test_it.py", "test_it"

    def __init__(self, params, *marks):
        self.callspec, self.mark = SimpleNamespace(params=params), next(iter(marks), None)

    def get_closest_marker(self, name):
        return self.mark if name == "sample" else None


def test_what_has_no_mark_is_kept_and_a_name_with_parameters_turns_sampling_off():
    assert kept("tests")[-1] == (7,)
    assert len(kept("tests")) == 3 + 1
    assert len(kept("tests/test_it.py::test_it[a-3]")) == 6 + 1


def test_torture_keeps_everything_and_its_parts_are_everything_together(monkeypatch):
    monkeypatch.setattr(sampling, "IS_TORTURE", True)
    everything = sorted([*itertools.product((1, 2, 3), "ab"), (7,)])
    assert sorted(kept("tests")) == everything
    monkeypatch.setattr(sampling, "PARTS", 3)
    parts = []
    for part in range(1, 4):
        monkeypatch.setattr(sampling, "PART", part)
        parts.append(kept("tests"))
    assert sorted(itertools.chain(*parts)) == everything
    assert all(2 <= len(part) <= 3 for part in parts)


def test_a_case_of_a_matrix_is_of_this_part_already(monkeypatch):
    monkeypatch.setattr(sampling, "PARTS", 10**6)
    cases = [Item({"case": number}) for number in range(5)]
    assert sampling.not_of_this_part(cases) == set()


class Machine(RuleBasedStateMachine):
    @rule()
    def turn(self):
        pass


def test_hypothesis_has_as_many_times_its_examples_as_are_asked_for():
    ran = []

    @settings(max_examples=3, database=None)
    @given(st.integers())
    def test(number):
        ran.append(number)

    case = type("Case", (Machine.TestCase,), {"settings": settings(max_examples=7)})
    items = [SimpleNamespace(obj=test), SimpleNamespace(obj=test), SimpleNamespace(obj=case.runTest, cls=case)]
    sampling.take_examples([*items, SimpleNamespace(obj=kept)], 4)
    test()
    assert len(ran) == 12
    assert case.settings.max_examples == 28
    sampling.take_examples(items, 0.5)
    assert case.settings.max_examples == 14
    sampling.take_examples(items, most=13)
    ran.clear()
    test()
    assert (len(ran), case.settings.max_examples) == (6, 13)
    sampling.take_examples(items)
    assert case.settings.max_examples == 13
