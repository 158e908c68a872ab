"""Join types: one truth table of what each returns, and its reading for a given build side.

    RULES[how]                       in terms of left and right, as a person says it
    emission(how, build_is_left)     in terms of build and probe, as the hash join asks it

                 matched rows        left without match    right without match
    inner        every pair          -                     -
    left         every pair          row, right is null    -
    right        every pair          -                     row, left is null
    full         every pair          row, right is null    row, left is null
    semi         left row once       -                     -
    anti         -                   left row once         -
    cross        every pair of all rows, there are no keys

A null key matches nothing, so its row counts as one without match. Whether a probe row matches is known, and the row
returned, when it is looked up in all of the build side; a build row is matched when the first probe row finds it, and
unmatched only when the whole probe side has passed.

Source: the join types of SQL; Flink's ``FlinkJoinType`` and the two booleans buildOuter and probeOuter of its
``HashJoinIterator``, which this table makes explicit.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from engine.graph.said_operators import JoinType


class Matched(Enum):
    """The output for rows whose keys match."""

    PAIRS = "every pair"
    LEFT_ONCE = "the left row, once"
    NOTHING = "nothing"


class JoinRule(msgspec.Struct, frozen=True):
    """One line of the truth table."""

    matched: Matched
    #: a left row without match is returned (with nulls on the right)
    unmatched_left: bool
    #: a right row without match is returned (with nulls on the left)
    unmatched_right: bool
    has_keys: bool = True


RULES: dict[JoinType, JoinRule] = {
    JoinType.INNER: JoinRule(Matched.PAIRS, unmatched_left=False, unmatched_right=False),
    JoinType.LEFT: JoinRule(Matched.PAIRS, unmatched_left=True, unmatched_right=False),
    JoinType.RIGHT: JoinRule(Matched.PAIRS, unmatched_left=False, unmatched_right=True),
    JoinType.FULL: JoinRule(Matched.PAIRS, unmatched_left=True, unmatched_right=True),
    JoinType.SEMI: JoinRule(Matched.LEFT_ONCE, unmatched_left=False, unmatched_right=False),
    JoinType.ANTI: JoinRule(Matched.NOTHING, unmatched_left=True, unmatched_right=False),
    JoinType.CROSS: JoinRule(Matched.PAIRS, unmatched_left=False, unmatched_right=False, has_keys=False),
}


class Emission(msgspec.Struct, frozen=True):
    """A rule read for one choice of the build side."""

    #: True to return every pair
    pairs: bool
    #: True to return a probe row once, when its first match is found
    matched_probe: bool
    #: True to return a build row once, when its first match is found
    matched_build: bool
    #: True to return a probe row without match, as soon as that is known
    unmatched_probe: bool
    #: True to return the build rows without match at the end
    unmatched_build: bool


def emission(how: JoinType, build_is_left: bool) -> Emission:
    """Return the emission of a hash join of this type when its build side is the left (or the right) input."""
    rule = RULES[how]
    left_once = rule.matched is Matched.LEFT_ONCE
    unmatched_probe, unmatched_build = rule.unmatched_left, rule.unmatched_right
    if build_is_left:
        unmatched_probe, unmatched_build = unmatched_build, unmatched_probe
    return Emission(
        pairs=rule.matched is Matched.PAIRS,
        matched_probe=left_once and not build_is_left,
        matched_build=left_once and build_is_left,
        unmatched_probe=unmatched_probe,
        unmatched_build=unmatched_build,
    )
