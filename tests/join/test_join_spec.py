"""What a join is, said once: who may change it, and what cannot be said."""

import pyarrow as pa
import pytest

from engine.errors import SchemaError
from engine.graph.said_operators import JoinType
from engine.join.join_spec import JoinInput, JoinSpec
from engine.join.join_type import RULES, emission
from engine.join.replicated_keys import ReplicatedKeys

SCHEMA = pa.schema([("k", pa.int64()), ("n", pa.int64())])


def spec_of(how=JoinType.INNER, keys=(0,), **options):
    side = JoinInput(SCHEMA, keys)
    return JoinSpec(how=how, left=side, right=side, output=((0, 0),), output_schema=SCHEMA.remove(1), **options)


def test_nobody_changes_a_join_that_several_parts_were_given():
    spec = spec_of()
    with pytest.raises(AttributeError, match="immutable"):
        spec.how = JoinType.LEFT


@pytest.mark.parametrize("column", [-1, 2])
def test_a_key_is_a_column_of_its_input(column):
    with pytest.raises(SchemaError, match=f"column {column}: the input has 2 columns"):
        JoinInput(SCHEMA, (0, column))


@pytest.mark.parametrize("how", [how for how in JoinType if how is not JoinType.ANTI])
def test_only_an_anti_join_is_null_aware(how):
    with pytest.raises(SchemaError, match="anti join by one key"):
        spec_of(how, null_aware=True)


def test_not_in_asks_for_one_key():
    assert spec_of(JoinType.ANTI, null_aware=True).null_aware
    with pytest.raises(SchemaError, match="anti join by one key"):
        spec_of(JoinType.ANTI, (0, 1), null_aware=True)


@pytest.mark.parametrize("how", JoinType)
@pytest.mark.parametrize("build_is_left", [False, True])
def test_what_is_returned_follows_from_the_type_and_the_side_that_is_built(how, build_is_left):
    assert spec_of(how).rule is RULES[how]
    assert spec_of(how).emission(build_is_left=build_is_left) == emission(how, build_is_left)


@pytest.mark.parametrize("build_is_left", [False, True])
@pytest.mark.parametrize("is_build", [False, True])
def test_copies_keep_their_side_when_roles_are_exchanged(build_is_left, is_build):
    spec = spec_of(build_is_left=build_is_left, replicated=ReplicatedKeys(frozenset({1}), is_build))
    assert spec.copies_are_left == (is_build if build_is_left else not is_build)
    assert not spec_of(build_is_left=build_is_left).copies_are_left
