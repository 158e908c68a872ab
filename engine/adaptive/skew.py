"""Skewed inputs of a repartitioned join are split when their real sizes show it, whatever their keys are.

    left    ▇ ▂ ▂ ▂     subtask 0 would read most of it: its subpartition is cut, every subtask reads a share
    right   a b c d     and a whole, besides its own

    skew_decision(job_graph, sizes, join) -> decision, or None

Before a job runs, heavy keys of sources are known and split one by one (``heavy_keys``); keys that a function, an
aggregate or another join makes are not. Here all rows of a subpartition are spread, whatever keys they have. A subtask
is skewed when it would read more than ``skew_factor`` times the median of an input, and more than ``skew_bytes``.
Shares are dealt like water: a subtask that reads most already gets none. It is done where the largest load, bytes of
both inputs with what is read several times, becomes less by GAIN.

Right because keys of two subpartitions are never equal: each row of the cut input meets all rows of the other one with
its key, in one subtask. So rows of the cut input may come out for their own sake, with a condition, by any algorithm.
Rows of the other one must not: no subtask knows all their matches (``why_whole``).

    cut        inner, left, semi, anti: left input          inner, right: right input
    never cut  full; null-aware anti; where what follows relies on equal keys being together

Limits: both inputs must be stored, in plain hash partitions: not where one lies partitioned already, nor where heavy
keys that were known are split. A cut is between two buffers.

Source: Spark's OptimizeSkewedJoin, which cuts by map outputs; Flink's adaptive skewed join. Pure.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from engine.adaptive.graph_shape import DataSetSize, input_edge, is_plain_hash
from engine.graph.job_graph import IntermediateDataSet, JobGraph, JobVertex
from engine.graph.plan import Join
from engine.graph.run_time_decision import KeepSkew, RunTimeDecision, SplitSkew
from engine.graph.said_operators import JoinType
from engine.graph.subpartition_share import PARTS, SubpartitionShare, whole_share
from engine.ids import IntermediateDataSetId
from engine.shown_sizes import size_text

#: factor by which the largest load must become smaller
GAIN = 1.25
#: part of an equal load below which a subtask reads only its own subpartition
_ROOM_MIN = 0.125
_SIDES = ("left", "right")
#: inputs (0 left, 1 right) that may be split: unmatched rows of the other one are not in the result
_MAY_BE_CUT = {
    JoinType.INNER: (0, 1),
    JoinType.LEFT: (0,),
    JoinType.RIGHT: (1,),
    JoinType.SEMI: (0,),
    JoinType.ANTI: (0,),
}

Shares = tuple[tuple[SubpartitionShare, ...], ...]


def why_whole(join: Join, *, is_relied_on: bool, is_shuffled: bool) -> tuple[str | None, str | None]:
    """Return the reasons why subpartitions of the left and of the right input cannot be cut, "" where they can.

    Args:
        join: what is joined.
        is_relied_on: whether an operator after it needs equal keys together.
        is_shuffled: whether both inputs are repartitioned for it.
    """
    if join.how is JoinType.CROSS or not join.left_keys:
        return None, None
    if is_relied_on:
        reason = "what follows relies on rows with equal keys being together"
    elif not is_shuffled:
        reason = "the other input lies partitioned already"
    elif join.null_aware:
        reason = "the nulls of a NOT IN concern every subtask"
    else:
        left, right = ("" if side in _MAY_BE_CUT.get(join.how, ()) else _match_reason(side) for side in (0, 1))
        return left, right
    return reason, reason


def _match_reason(side: int) -> str:
    other = _SIDES[1 - side]
    return f"whether a row of {other} has a match is known where all rows with its key are"


class _Skewed(NamedTuple):
    """A subpartition of an input that is to be cut."""

    side: int
    subpartition: int
    size_bytes: int


class _Piece(NamedTuple):
    """Bytes [begin, end) of a skewed subpartition for one subtask."""

    skewed: _Skewed
    subtask: int
    begin: int
    end: int


def skew_decision(
    job_graph: JobGraph, sizes: Mapping[IntermediateDataSetId, DataSetSize], join: JobVertex
) -> RunTimeDecision | None:
    """Return the decision about a join that has not begun, by the sizes of its finished inputs.

    Args:
        job_graph: as it is now.
        sizes: of data sets that are finished.
        join: of the graph.
    """
    facts, settings = join.adaptive_join, job_graph.adaptive
    if facts is None or settings is None or settings.skew_factor == 0 or facts.why_whole == (None, None):
        return None
    skewed = [_skewed(job_graph, sizes, join, side) for side in (0, 1)]
    may_cut = [each for side in (0, 1) if facts.why_whole[side] == "" for each in skewed[side]]
    decision = _split(job_graph, sizes, join, may_cut)
    for side, why in enumerate(facts.why_whole):
        if decision is None and why and skewed[side]:
            return _kept(job_graph, sizes, join, skewed[side], why)
    return decision


def _split(
    job_graph: JobGraph, sizes: Mapping[IntermediateDataSetId, DataSetSize], join: JobVertex, may_cut: list[_Skewed]
) -> RunTimeDecision | None:
    """Return the decision to cut what is too large, None where that does not pay."""
    if not may_cut or not all(_is_portioned(job_graph, sizes, join, side) for side in (0, 1)):
        return None
    data_sets = [job_graph.data_set(input_edge(join, side).data_set) for side in (0, 1)]
    measured = [sizes[data_set.id] for data_set in data_sets]
    # the larger one of two is cut; where they are equal, the left one
    wanted = {
        each.subpartition: each
        for each in reversed(may_cut)
        if measured[1 - each.side].subpartition_bytes[each.subpartition] <= each.size_bytes
    }
    skewed = sorted(wanted.values())
    pieces = _deal(measured, skewed) if skewed else []
    if not pieces or not _pays(measured, pieces):
        return None
    change = SplitSkew(join.id, (_shares(measured, pieces, 0), _shares(measured, pieces, 1)))
    if not all(each for side in change.shares for each in side):
        return None
    return _split_decision(join, data_sets, measured, skewed, change)


def _is_portioned(
    job_graph: JobGraph, sizes: Mapping[IntermediateDataSetId, DataSetSize], join: JobVertex, side: int
) -> bool:
    """Whether every subtask of a join reads its own stored hash partition of an input."""
    edge = input_edge(join, side)
    size = sizes.get(edge.data_set)
    plain = is_plain_hash(job_graph.data_set(edge.data_set).partitioner) and not edge.ranges and not edge.shares
    return plain and size is not None and len(size.subpartition_bytes) == join.parallelism


def _skewed(
    job_graph: JobGraph, sizes: Mapping[IntermediateDataSetId, DataSetSize], join: JobVertex, side: int
) -> list[_Skewed]:
    """Return the subpartitions of an input that are too large, none where it is not finished."""
    settings = job_graph.adaptive
    assert settings is not None, "the job graph is not adaptive"
    if not _is_portioned(job_graph, sizes, join, side):
        return []
    stored = sizes[input_edge(join, side).data_set].subpartition_bytes
    limit = max(settings.skew_bytes, settings.skew_factor * _median_low(stored))
    return [_Skewed(side, index, size) for index, size in enumerate(stored) if size > limit]


def _median_low(sizes: Sequence[int]) -> int:
    # The module statistics brings fractions, and takes longer to import than a small job's planning.
    return sorted(sizes)[(len(sizes) - 1) // 2]


# ---- what each subtask reads ----


def _deal(measured: Sequence[DataSetSize], skewed: Sequence[_Skewed]) -> list[_Piece]:
    """Cut skewed subpartitions so that all subtasks read equally much; nothing when one would read nothing."""
    base = [sum(sizes) for sizes in zip(*(size.subpartition_bytes for size in measured), strict=True)]
    for each in skewed:
        base[each.subpartition] -= each.size_bytes
    homes = {each.subpartition for each in skewed}
    rooms = _rooms(base, sum(each.size_bytes for each in skewed), homes)
    own = {each: min(int(rooms[each.subpartition]), each.size_bytes) for each in skewed}
    if not all(own.values()):
        return []
    for each, size in own.items():
        rooms[each.subpartition] -= size
    takers = [index for index, room in enumerate(rooms) if room >= 1]
    return [piece for each, size in own.items() for piece in _cut(each, size, rooms, takers)]


def _cut(skewed: _Skewed, own: int, rooms: list[float], takers: list[int]) -> list[_Piece]:
    """Cut a subpartition: the first ``own`` bytes for its own subtask, the rest fills those with room."""
    pieces = [_Piece(skewed, skewed.subpartition, 0, own)]
    while pieces[-1].end < skewed.size_bytes and takers:
        taker, begin = takers[0], pieces[-1].end
        end = min(skewed.size_bytes, begin + int(rooms[taker]))
        pieces.append(_Piece(skewed, taker, begin, end))
        rooms[taker] -= end - begin
        if rooms[taker] < 1:
            takers.pop(0)
    # what rounding left
    pieces[-1] = pieces[-1]._replace(end=skewed.size_bytes)
    return pieces


def _rooms(base: Sequence[int], total: int, homes: set[int]) -> list[float]:
    """Return the amounts of ``total`` that subtasks take, so that all that take some end equally full."""
    takers = set(range(len(base)))
    level = _level(base, total)
    takers = {index for index in takers if index in homes or level - base[index] >= _ROOM_MIN * level}
    level = _level([base[index] for index in sorted(takers)], total)
    return [max(0.0, level - size) if index in takers else 0.0 for index, size in enumerate(base)]


def _level(base: Sequence[int], total: int) -> float:
    """Return the level to which ``total`` fills uneven ground."""
    ground = sorted(base)
    below = 0
    for count, size in enumerate(ground, 1):
        below += size
        level = (total + below) / count
        if count == len(ground) or level <= ground[count]:
            return level
    raise ValueError("no subtask takes anything")


def _pays(measured: Sequence[DataSetSize], pieces: Sequence[_Piece]) -> bool:
    planned = [sum(sizes) for sizes in zip(*(size.subpartition_bytes for size in measured), strict=True)]
    loads = list(planned)
    for piece in pieces:
        skewed = piece.skewed
        if piece.subtask == skewed.subpartition:
            loads[piece.subtask] -= skewed.size_bytes
        else:
            loads[piece.subtask] += measured[1 - skewed.side].subpartition_bytes[skewed.subpartition]
        loads[piece.subtask] += piece.end - piece.begin
    return bool(max(loads) * GAIN <= max(planned))


def _shares(measured: Sequence[DataSetSize], pieces: Sequence[_Piece], side: int) -> Shares:
    """Return the parts of one input that each subtask reads."""
    size = measured[side]
    producers = len(size.stored)
    cut = {piece.skewed.subpartition for piece in pieces if piece.skewed.side == side}
    shares = [
        [] if subtask in cut else [whole_share(subtask, producers)] for subtask in range(len(size.subpartition_bytes))
    ]
    for piece in pieces:
        subpartition = piece.skewed.subpartition
        if piece.skewed.side != side:
            if piece.subtask != subpartition:
                shares[piece.subtask].append(whole_share(subpartition, producers))
            continue
        stored = [each[subpartition] for each in size.stored]
        begin, end = _position(stored, piece.begin), _position(stored, piece.end)
        if begin < end:
            shares[piece.subtask].append(SubpartitionShare(subpartition, begin, end))
    return tuple(tuple(each) for each in shares)


def _position(stored: Sequence[int], offset: int) -> int:
    """Return the position of a byte of a subpartition, of which each producer stored so much."""
    ends = list(accumulate(stored))
    if offset in (0, ends[-1]):
        return 0 if offset == 0 else len(stored) * PARTS
    producer = bisect_left(ends, offset)
    into = offset - (ends[producer] - stored[producer])
    return producer * PARTS + into * PARTS // stored[producer]


# ---- what is said ----


def _split_decision(
    join: JobVertex,
    data_sets: Sequence[IntermediateDataSet],
    measured: Sequence[DataSetSize],
    skewed: Sequence[_Skewed],
    change: SplitSkew,
) -> RunTimeDecision:
    texts, reasons, expected, real = [], [], 0.0, 0
    for side in sorted({each.side for each in skewed}):
        own = [each for each in skewed if each.side == side]
        readers = sum(any(share.subpartition == own[0].subpartition for share in each) for each in change.shares[side])
        texts.append(f"{_SIDES[side]} of {_named(own)} spread over {readers} subtasks")
        reasons.append(_skew_text(measured[side], own))
        known = data_sets[side].expected
        expected = -1.0 if known is None or expected < 0 else expected + known.size_bytes
        real += measured[side].size_bytes
    return RunTimeDecision(
        "SKEWED_JOIN",
        join.id,
        join.name,
        "repartition both inputs",
        " and ".join(texts),
        expected,
        real,
        "; ".join(reasons),
        change,
    )


def _kept(
    job_graph: JobGraph,
    sizes: Mapping[IntermediateDataSetId, DataSetSize],
    join: JobVertex,
    skewed: Sequence[_Skewed],
    why: str,
) -> RunTimeDecision:
    side = skewed[0].side
    data_set = job_graph.data_set(input_edge(join, side).data_set)
    size = sizes[data_set.id]
    return RunTimeDecision(
        "SKEWED_JOIN",
        join.id,
        join.name,
        "repartition both inputs",
        f"{_SIDES[side]} stays skewed",
        -1.0 if data_set.expected is None else data_set.expected.size_bytes,
        size.size_bytes,
        f"{_skew_text(size, skewed)}: not split, {why}",
        KeepSkew(join.id, side),
    )


def _skew_text(size: DataSetSize, skewed: Sequence[_Skewed]) -> str:
    most = max(each.size_bytes for each in skewed)
    median = _median_low(size.subpartition_bytes)
    side = _SIDES[skewed[0].side]
    return f"{_named(skewed)} would read {size_text(most)} of {side}, the median {size_text(median)}"


def _named(skewed: Sequence[_Skewed]) -> str:
    if len(skewed) == 1:
        return f"subtask {skewed[0].subpartition + 1}"
    return f"{len(skewed)} subtasks"
