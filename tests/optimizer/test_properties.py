"""How rows are spread and ordered, and which operators keep that."""

from __future__ import annotations

from engine.graph.expression import ColumnRef, NamedExpression
from engine.optimizer.properties import RANDOM, GlobalProperties, Partitioning, hashed_by, key_grouped_by
from tests.optimizer.plan_building import call, lit

BY_K = hashed_by(("k",))


def test_a_hash_by_keys_in_another_order_is_another_hash_and_key_groups_are_none() -> None:
    both = hashed_by(("k", "v"))
    assert both.is_hashed_by(("k", "v"))
    assert not both.is_hashed_by(("v", "k")) and not both.is_hashed_by(("k",))
    assert not key_grouped_by(("k",)).is_hashed_by(("k",))
    assert key_grouped_by(("k",)) == GlobalProperties(Partitioning.KEY_GROUP_PARTITIONED, (("k",),))


def test_rows_partitioned_by_some_of_the_keys_are_grouped_by_all_of_them() -> None:
    for properties in (BY_K, key_grouped_by(("k",)), hashed_by(("x",), ("k",))):
        assert properties.groups(("k",)) and properties.groups(("v", "k"))
        assert not properties.groups(("v",)) and not properties.groups(())
    assert not RANDOM.groups(("k",))


def test_a_partitioning_is_kept_as_long_as_its_columns_are() -> None:
    assert BY_K.kept(["v", "k"]) == BY_K
    assert BY_K.kept(["v"]) == RANDOM
    assert hashed_by(("k",), ("v",)).kept(["v"]) == hashed_by(("v",))
    assert key_grouped_by(("k",)).kept(["k"]) == key_grouped_by(("k",))
    assert key_grouped_by(("k",)).kept([]) == RANDOM
    assert hashed_by() == RANDOM
    assert hashed_by(("k",), ("k",)) == BY_K


def test_a_projection_renames_columns_and_loses_what_it_computes() -> None:
    first = NamedExpression("a", ColumnRef("k"))
    again = NamedExpression("b", ColumnRef("k"))
    computed = NamedExpression("k", call("add", "k", lit(1)))
    assert BY_K.projected([computed, first, again]) == hashed_by(("a",))
    assert BY_K.projected([computed]) == RANDOM
    assert key_grouped_by(("k",)).projected([first]) == key_grouped_by(("a",))
    # two alternatives that become one
    assert hashed_by(("k",), ("v",)).renamed({"k": "x", "v": "x"}) == hashed_by(("x",))
