"""Each join type has its rule, whichever input is built."""

import pytest
from msgspec.structs import replace

from engine.graph.said_operators import JoinType
from engine.join.join_type import RULES, Emission, emission


def test_every_join_type_has_a_rule():
    assert set(RULES) == set(JoinType)


NOTHING = Emission(pairs=False, matched_probe=False, matched_build=False, unmatched_probe=False, unmatched_build=False)
PAIRS = replace(NOTHING, pairs=True)


@pytest.mark.parametrize(
    ("how", "right_built", "left_built"),
    [
        (JoinType.INNER, PAIRS, PAIRS),
        (JoinType.CROSS, PAIRS, PAIRS),
        (JoinType.LEFT, replace(PAIRS, unmatched_probe=True), replace(PAIRS, unmatched_build=True)),
        (JoinType.RIGHT, replace(PAIRS, unmatched_build=True), replace(PAIRS, unmatched_probe=True)),
        (JoinType.FULL, *[replace(PAIRS, unmatched_probe=True, unmatched_build=True)] * 2),
        (JoinType.SEMI, replace(NOTHING, matched_probe=True), replace(NOTHING, matched_build=True)),
        (JoinType.ANTI, replace(NOTHING, unmatched_probe=True), replace(NOTHING, unmatched_build=True)),
    ],
)
def test_the_rule_is_read_for_whichever_input_is_built(how, right_built, left_built):
    assert emission(how, False) == right_built
    assert emission(how, True) == left_built
