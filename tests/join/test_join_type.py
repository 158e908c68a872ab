import pytest

from engine.errors import NotYetSupportedError
from engine.graph.plan import JoinType
from engine.join.join_type import RULES, SUPPORTED, Matched, emission


def test_every_join_type_has_a_rule():
    assert set(RULES) == set(JoinType)


@pytest.mark.parametrize(
    ("how", "build_is_left", "unmatched_probe", "unmatched_build"),
    [
        (JoinType.INNER, False, False, False),
        (JoinType.INNER, True, False, False),
        (JoinType.LEFT, False, True, False),
        (JoinType.LEFT, True, False, True),
        (JoinType.RIGHT, False, False, True),
        (JoinType.RIGHT, True, True, False),
    ],
)
def test_the_outer_side_is_found_whichever_input_is_built(how, build_is_left, unmatched_probe, unmatched_build):
    assert emission(how, build_is_left) == (Matched.PAIRS, unmatched_probe, unmatched_build)


@pytest.mark.parametrize("how", sorted(set(JoinType) - SUPPORTED))
def test_a_type_that_is_not_built_is_refused_by_name(how):
    with pytest.raises(NotYetSupportedError, match=f"a {how.value} join is not supported yet"):
        emission(how, False)
