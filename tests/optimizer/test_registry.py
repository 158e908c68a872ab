"""Each operator of a plan has one complete entry, and each physical one says what is asked of any."""

from __future__ import annotations

import inspect
from typing import get_args

import pytest

from engine.errors import PlanError
from engine.graph import operator_descriptor, plan, said_operators
from engine.graph.operator_descriptor import PhysicalOperator, Traits
from engine.graph.plan import Limit, Operator
from engine.graph.said_operators import SAID, GroupBy
from engine.operators import registry as drivers
from engine.optimizer import operator_entries
from engine.optimizer.operator_entries.entry import OperatorEntry, OrderUse
from engine.optimizer.operator_entries.limit import LimitEntry
from engine.optimizer.operator_entries.registry import PLACES, entry_of, entry_of_type
from tests.tidy.imports import ROOT

#: of engine.graph.plan, but no operator
NOT_OPERATORS = {"PlanNode", "Plan", "SaidForm"}
#: of engine.graph.operator_descriptor, but no physical operator
NOT_PHYSICAL = {"Traits", "GroupedStates", "OperatorDescriptor"}

ENTRIES = {operator: entry_of_type(operator) for operator in PLACES}


def structs_of(module):
    """The structs that a module defines, by name."""
    found = inspect.getmembers(module, lambda one: inspect.isclass(one) and hasattr(one, "__struct_fields__"))
    return {name: one for name, one in found if one.__module__ == module.__name__}


def test_every_operator_of_a_plan_has_exactly_one_entry():
    assert set(PLACES) == set(get_args(Operator)) - set(SAID)
    assert [entry.operator for entry in ENTRIES.values()] == list(PLACES)
    structs = {*structs_of(plan), *structs_of(said_operators)}
    assert structs - NOT_OPERATORS == {one.__name__ for one in get_args(Operator)}
    assert isinstance(entry_of(Limit(1)), LimitEntry)


def test_what_is_not_lowered_is_not_planned():
    with pytest.raises(PlanError, match="GroupBy is as users say it"):
        entry_of(GroupBy((), ()))


def test_entries_answer_all_that_the_planner_asks():
    for entry in ENTRIES.values():
        asked = {name for name in vars(OperatorEntry) if not name.startswith("_")} - {"operator"}
        assert type(entry).__abstractmethods__ == frozenset(), type(entry)
        for name in asked:
            expected = list(inspect.signature(getattr(OperatorEntry, name)).parameters)
            assert list(inspect.signature(getattr(type(entry), name)).parameters) == expected, (type(entry), name)


def test_an_entry_that_leaves_a_question_open_cannot_be_made():
    class Incomplete(LimitEntry):
        estimate = OperatorEntry.estimate

    assert Incomplete.__abstractmethods__ == {"estimate"}


def test_what_an_entry_does_not_say_is_taken_carefully():
    entry = LimitEntry()
    assert OperatorEntry.order_use(entry, Limit(1)) is OrderUse.SEEN
    assert OperatorEntry.take_filter(entry, None, None, Limit(1), ["part"]) == []
    assert list(OperatorEntry.details(entry, None)) == []
    assert Traits() == Traits(False, False, False, False, False, False)


def test_every_file_of_entries_is_in_the_registry():
    folder = ROOT / "engine" / "optimizer" / "operator_entries"
    files = {path.stem for path in folder.glob("*.py")} - {"__init__", "entry", "registry", "row_wise"}
    assert {type(entry).__module__.rpartition(".")[2] for entry in ENTRIES.values()} == files
    assert operator_entries.__doc__ is not None


def test_every_physical_operator_says_what_is_asked_of_any_and_has_a_class_that_runs_it():
    physical = get_args(PhysicalOperator)
    assert set(structs_of(operator_descriptor)) - NOT_PHYSICAL == {one.__name__ for one in physical}
    for one in physical:
        assert "traits" in vars(one), one
    led = {one for one in physical if isinstance(one.traits, Traits) and one.traits.is_driver}
    steps, heads = set(drivers._CLASSES), set(drivers._DRIVERS)
    assert steps | led == set(physical) and not steps & led
    assert heads < led
    for one, place in {**drivers._CLASSES, **drivers._DRIVERS}.items():
        assert callable(drivers._loaded(place)), one
