"""Hints of errors name what is nearly written so."""

import pathlib

from engine.near_names import did_you_mean, near_names


def test_the_nearest_name_comes_first_whatever_its_case():
    assert near_names("ORDERS_", ["order", "Orders", "lines"], count=2) == ["Orders", "order"]
    assert near_names("ORDERS_", ["order", "Orders", "lines"]) == ["Orders"]
    assert near_names("region", ["lines", "x"]) == []


def test_a_name_must_be_like_enough():
    assert near_names("abcd", ["abxy"], likeness=0.5) == ["abxy"]
    assert near_names("abcd", ["abxy"]) == []


def test_a_message_suggests_the_names_or_ends():
    assert did_you_mean("lenght", ["length", "strip"]) == "; did you mean length?"
    assert did_you_mean("orders", ["order", "oders", "x"]) == "; did you mean order or oders?"
    assert did_you_mean("q", ["length"]) == ""


def test_one_module_alone_compares_names():
    engine = pathlib.Path(__file__).parents[1] / "engine"
    using = [path.name for path in engine.rglob("*.py") if "difflib" in path.read_text()]
    assert using == ["near_names.py"]
