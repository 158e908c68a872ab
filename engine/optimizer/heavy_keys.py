"""Heavy keys of a repartitioned join are split, so that no subtask gets 13/14 of the rows.

    one side      rows of the key are spread over all subtasks, each row to one
    other side    rows of the key are copied to all subtasks

A key is heavy when its rows, or its rows and the pairs they make, are more than 1/4 of one subtask's equal share: a key
that is left whole makes its subtask at most a quarter busier than the others. The side with more rows of the key is the
one that is spread. Keys are known by text, from statistics of single columns; what is not known stays whole. Of several
key columns the combinations of their heavy values are taken, as frequent as independent columns make them.

Correct for every type, because each pair of rows meets in exactly one subtask, and because a row that comes out for its
own sake does so once: a spread row is in one subtask with all rows of the other side; of the copies of a row only the
one at the key's home comes out, which knows whether there is a match, since a row of the spread side is there when
there is any. Not split:

    null-aware anti join                   its nulls concern every subtask
    copies of a side whose rows come out   with a condition (home has one row of the other side, not all), and in a
      for their own sake                   sort-merge join (it takes all rows alike)
    semi, anti                             where there would be more copies than rows that are spread
    full                                   one of the sides only is copied: that with less
    legacy estimates                       to show what happens then

The result is not hash partitioned: a group by after it does not find its keys together. A side that lies hash
partitioned already would have to move to be split; costs decide.

Source: DeWitt et al., Practical Skew Handling in Parallel Joins (1992), "fragment replicate" of the heavy keys alone.
Held by: tests/integration/test_skew.py
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from engine.graph.plan import Join
from engine.graph.said_operators import JoinType
from engine.graph.ship_strategy import HeavyKeys, KeyText, PartitionerSpec, ShipStrategy
from engine.optimizer.candidates import Shipping
from engine.optimizer.join_alternatives import SORTING, LocalStrategy
from engine.statistics.costs import Costs, repartition_cost
from engine.statistics.estimates import Estimates

#: work of one key, as a part of a subtask's equal share, from which it is split
HEAVY_LOAD = 0.25
#: limit of split keys
KEYS_MAX = 32
#: limit of keys named in the reason of a channel
_NAMED_MAX = 3

#: sides (0 left, 1 right) whose unmatched rows are in the result
_OWN_ROWS = {
    JoinType.LEFT: {0},
    JoinType.RIGHT: {1},
    JoinType.FULL: {0, 1},
    JoinType.SEMI: {0},
    JoinType.ANTI: {0},
}


class _Key(NamedTuple):
    """A heavy key and its rows on both sides."""

    text: KeyText
    rows: tuple[float, float]

    @property
    def spread_side(self) -> int:
        return 0 if self.rows[0] >= self.rows[1] else 1


class JoinSides(NamedTuple):
    """The shipping of both sides of a join, and the rows that arrive in all subtasks together."""

    shippings: tuple[Shipping, Shipping]
    arriving: tuple[Estimates, Estimates]
    is_split: bool = False


def split_heavy_keys(join: Join, strategy: LocalStrategy, rows: float, whole: JoinSides, parallelism: int) -> JoinSides:
    """Return the sides of a repartitioned join with its heavy keys split, or as they are where none is.

    Args:
        join: what is joined.
        strategy: its algorithm.
        rows: expected result.
        whole: both sides hash partitioned, or FORWARD where one lies right already.
        parallelism: of the join.
    """
    if parallelism == 1 or not join.left_keys or join.null_aware:
        return whole
    sides = whole.arriving
    found = _heavy(join, rows, sides, parallelism)
    reasons = {key: _why_whole(join, strategy, key, parallelism) for key in found}
    keys = [key for key in found if not reasons[key]]
    if join.how is JoinType.FULL:
        spread = _spread_side(keys)
        reasons |= {key: "a full join copies rows of one side only" for key in keys if key.spread_side != spread}
        keys = [key for key in keys if key.spread_side == spread]
    if not keys:
        return _with_reasons(whole, join, reasons)
    heavy = HeavyKeys(_texts(keys, 0), _texts(keys, 1))
    mirrored = HeavyKeys(heavy.replicated, heavy.spread)
    arriving = _with_copies(sides[0], keys, 0, parallelism), _with_copies(sides[1], keys, 1, parallelism)
    shippings = (
        _shipping(join.left_keys, sides[0], arriving[0], heavy, parallelism),
        _shipping(join.right_keys, sides[1], arriving[1], mirrored, parallelism),
    )
    lies_right = any(each.strategy is ShipStrategy.FORWARD for each in whole.shippings)
    if lies_right and not _costs_of(shippings) < _costs_of(whole.shippings):
        return whole
    return _with_reasons(JoinSides(shippings, arriving, is_split=True), join, reasons)


def has_heavy_keys(join: Join, rows: float, sides: tuple[Estimates, Estimates], parallelism: int) -> bool:
    """Whether a join would load one subtask with a heavy key, were it repartitioned and no key split."""
    return bool(join.left_keys) and bool(_heavy(join, rows, sides, parallelism))


def _costs_of(shippings: tuple[Shipping, Shipping]) -> Costs:
    return shippings[0].costs + shippings[1].costs


def _heavy(join: Join, rows: float, sides: tuple[Estimates, Estimates], parallelism: int) -> list[_Key]:
    """Return the keys with more than HEAVY_LOAD of a subtask's share, in rows or in rows and pairs, heaviest first."""
    shares = key_shares(sides[0], join.left_keys), key_shares(sides[1], join.right_keys)
    left_light = _rows_of_light_key(sides[0], join.left_keys, shares[0])
    right_light = _rows_of_light_key(sides[1], join.right_keys, shares[1])
    keys = [
        _Key(
            text,
            (
                sides[0].rows * shares[0][text] if text in shares[0] else left_light,
                sides[1].rows * shares[1][text] if text in shares[1] else right_light,
            ),
        )
        for text in {**shares[0], **shares[1]}
    ]
    makes_pairs = join.how not in (JoinType.SEMI, JoinType.ANTI)
    pairs = {key: key.rows[0] * key.rows[1] if makes_pairs else 0.0 for key in keys}
    taken = sides[0].rows + sides[1].rows
    work = taken + max(rows, sum(pairs.values()))
    least = HEAVY_LOAD / parallelism
    loads = {key: max(sum(key.rows) / taken, (sum(key.rows) + pairs[key]) / work) for key in keys}
    return sorted((key for key in keys if loads[key] > least), key=lambda key: (-loads[key], key.text))


def key_shares(side: Estimates, names: tuple[str, ...]) -> dict[KeyText, float]:
    """Return the share of the rows of each heavy key, the heaviest KEYS_MAX; of several columns an estimate."""
    combined: dict[KeyText, float] = {(): 1.0}
    for name in names:
        known = side.columns.get(name)
        heavy = () if known is None else known.heavy_keys
        found = {(*text, value): share * of_value for text, share in combined.items() for value, of_value in heavy}
        heaviest = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[:KEYS_MAX]
        combined = dict(heaviest)
    return combined


def _rows_of_light_key(side: Estimates, names: tuple[str, ...], shares: dict[KeyText, float]) -> float:
    """Return the expected rows of a key that is not heavy; one where nothing is known of the keys."""
    distinct, nulls = 1.0, 0.0
    for name in names:
        count = side.distinct(name)
        if count is None:
            return 1.0
        distinct *= count
        nulls = max(nulls, side.columns[name].null_fraction or 0.0)
    rest = max(0.0, 1.0 - sum(shares.values()) - nulls)
    return max(1.0, side.rows * rest / max(1.0, min(distinct, side.rows) - len(shares)))


def _why_whole(join: Join, strategy: LocalStrategy, key: _Key, parallelism: int) -> str:
    """Return the reason why a key cannot be split, or "" when it can."""
    if 1 - key.spread_side in _OWN_ROWS.get(join.how, ()):
        if join.condition is not None:
            return "whether a copy has a match depends on the condition"
        if strategy in SORTING:
            return "a sort-merge join does not tell copies"
    if join.how in (JoinType.SEMI, JoinType.ANTI) and min(key.rows) * parallelism > max(key.rows):
        return "there would be more copies than rows"
    return ""


def _spread_side(keys: list[_Key]) -> int:
    """Return the side on which keys are spread that have more rows than those spread on the other one."""
    rows = [sum(max(key.rows) for key in keys if key.spread_side == side) for side in (0, 1)]
    return 0 if rows[0] >= rows[1] else 1


def _with_reasons(sides: JoinSides, join: Join, reasons: dict[_Key, str]) -> JoinSides:
    """Return sides whose channels say why the heaviest key that is not split is whole."""
    shippings = list(sides.shippings)
    for side, shipping in enumerate(sides.shippings):
        names = (join.left_keys, join.right_keys)[side]
        key, why = next(((key, why) for key, why in reasons.items() if why and key.spread_side == side), (None, ""))
        if key is not None:
            said = f"{shipping.reason}; " if shipping.reason else ""
            shippings[side] = shipping._replace(reason=f"{said}{_key_text(names, key.text)} not split: {why}")
    return sides._replace(shippings=(shippings[0], shippings[1]))


def _texts(keys: Iterable[_Key], side: int) -> tuple[KeyText, ...]:
    return tuple(key.text for key in keys if key.spread_side == side)


def _with_copies(side: Estimates, keys: list[_Key], index: int, parallelism: int) -> Estimates:
    """Return the rows that arrive of a side: copied rows count once for each subtask."""
    copies = sum(key.rows[index] for key in keys if key.spread_side != index) * (parallelism - 1)
    size = side.size_bytes * (1 + copies / side.rows) if side.is_size_known else side.size_bytes
    return msgspec.structs.replace(side, rows=side.rows + copies, size_bytes=size)


def _shipping(
    names: tuple[str, ...], side: Estimates, arriving: Estimates, heavy: HeavyKeys, parallelism: int
) -> Shipping:
    shares = key_shares(side, names)
    heaviest = max(
        (share for text, share in shares.items() if text not in (*heavy.spread, *heavy.replicated)), default=0.0
    )
    reasons = []
    if heavy.spread:
        texts = [f"{_key_text(names, text)} ({100 * shares.get(text, 0.0):.1f} %)" for text in heavy.spread]
        origins = {known.heavy_origin: None for name in names if (known := side.columns.get(name)) and known.heavy_keys}
        reasons.append(f"heavy keys split: {_listed(texts)}, source: {' and '.join(origins)}")
    if heavy.replicated:
        texts = [_key_text(names, text) for text in heavy.replicated]
        reasons.append(f"to all subtasks: rows with {_listed(texts)}")
    partitioner = PartitionerSpec("HASH", names, spread_nulls=True, heavy=heavy)
    costs = repartition_cost(arriving, parallelism, heaviest)
    return Shipping(ShipStrategy.PARTITION_HASH, partitioner, costs, "; ".join(reasons))


def _key_text(names: tuple[str, ...], text: KeyText) -> str:
    return " and ".join(f"{name}={value}" for name, value in zip(names, text, strict=True))


def _listed(texts: list[str]) -> str:
    more = len(texts) - _NAMED_MAX
    return ", ".join(texts[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
