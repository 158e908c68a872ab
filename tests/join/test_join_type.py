"""Each join type has its rule, whichever input is built."""

import pytest

from engine.graph.plan import JoinType
from engine.join.join_type import RULES, Emission, emission


def test_every_join_type_has_a_rule():
    assert set(RULES) == set(JoinType)


NOTHING = Emission(pairs=False, matched_probe=False, matched_build=False, unmatched_probe=False, unmatched_build=False)
PAIRS = NOTHING._replace(pairs=True)


@pytest.mark.parametrize(
    ("how", "right_built", "left_built"),
    [
        (JoinType.INNER, PAIRS, PAIRS),
        (JoinType.CROSS, PAIRS, PAIRS),
        (JoinType.LEFT, PAIRS._replace(unmatched_probe=True), PAIRS._replace(unmatched_build=True)),
        (JoinType.RIGHT, PAIRS._replace(unmatched_build=True), PAIRS._replace(unmatched_probe=True)),
        (JoinType.FULL, *[PAIRS._replace(unmatched_probe=True, unmatched_build=True)] * 2),
        (JoinType.SEMI, NOTHING._replace(matched_probe=True), NOTHING._replace(matched_build=True)),
        (JoinType.ANTI, NOTHING._replace(unmatched_probe=True), NOTHING._replace(unmatched_build=True)),
    ],
)
def test_the_rule_is_read_for_whichever_input_is_built(how, right_built, left_built):
    assert emission(how, False) == right_built
    assert emission(how, True) == left_built
