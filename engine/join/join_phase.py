"""The phases of a hash join, which follows which, and which call is for which.

    BUILDING ──end_build──► COMPLETE ──fill_table──► PROBING ──finish_probe──► NEXT_PAIR ──no pair is left──► DONE
        └──borrow_build─────────────────────────────►│                         │  ▲  │  ▲
                                                     └─to others─► BORROWED    │  │  │  │   a pair of spilled files:
                                                                               ▼  │  ▼  │
                                                                    REPARTITIONING   BLOCK_WISE
    every phase ──close──► CLOSED

    COMPLETE         all build rows are there: their keys may be asked for (``build_keys``), not yet looked for
    REPARTITIONING   both files are scattered again, the partitions that fit are joined; those that do not are new pairs
    BLOCK_WISE       build rows as they fit, the probe file streamed over them
    BORROWED         other joins of the process probe its table; it does not probe itself (``borrowed_build``)

A call in another phase than its own raises RuntimeError and changes nothing. What is not a phase: which side is built
(``join_roles``), which partitions are spilled (``hash_partition``).
"""

from __future__ import annotations

from enum import Enum


class JoinPhase(Enum):
    """The phases of a hash join."""

    __hash__ = object.__hash__  # Enum's is a function of Python's, called at each look into the table

    BUILDING = "building"
    COMPLETE = "complete"
    PROBING = "probing"
    BORROWED = "borrowed"
    NEXT_PAIR = "next pair"
    REPARTITIONING = "repartitioning"
    BLOCK_WISE = "block-wise"
    DONE = "done"
    CLOSED = "closed"


#: the phases that may follow each
TRANSITIONS: dict[JoinPhase, frozenset[JoinPhase]] = {
    JoinPhase.BUILDING: frozenset({JoinPhase.COMPLETE, JoinPhase.PROBING, JoinPhase.CLOSED}),
    JoinPhase.COMPLETE: frozenset({JoinPhase.PROBING, JoinPhase.CLOSED}),
    JoinPhase.PROBING: frozenset({JoinPhase.BORROWED, JoinPhase.NEXT_PAIR, JoinPhase.CLOSED}),
    JoinPhase.BORROWED: frozenset({JoinPhase.BORROWED, JoinPhase.NEXT_PAIR, JoinPhase.CLOSED}),
    JoinPhase.NEXT_PAIR: frozenset({JoinPhase.REPARTITIONING, JoinPhase.BLOCK_WISE, JoinPhase.DONE, JoinPhase.CLOSED}),
    JoinPhase.REPARTITIONING: frozenset({JoinPhase.NEXT_PAIR, JoinPhase.CLOSED}),
    JoinPhase.BLOCK_WISE: frozenset({JoinPhase.NEXT_PAIR, JoinPhase.CLOSED}),
    JoinPhase.DONE: frozenset({JoinPhase.CLOSED}),
    JoinPhase.CLOSED: frozenset({JoinPhase.CLOSED}),
}

_MEANING = {
    JoinPhase.BUILDING: "it takes build rows until finish_build()",
    JoinPhase.COMPLETE: "it has all build rows, and no table of them until fill_table()",
    JoinPhase.PROBING: "it takes probe rows until finish_probe()",
    JoinPhase.BORROWED: "other joins probe its table",
    JoinPhase.NEXT_PAIR: "it joins what was spilled",
    JoinPhase.REPARTITIONING: "it joins what was spilled",
    JoinPhase.BLOCK_WISE: "it joins what was spilled",
    JoinPhase.DONE: "all of its output is out",
    JoinPhase.CLOSED: "it has given its memory back",
}


def refusal(call: str, now: JoinPhase, wanted: JoinPhase) -> RuntimeError:
    """Return the error of a call that is for another phase."""
    return RuntimeError(f"{call} is for a hash join that is {wanted.value}; this one is {now.value}: {_MEANING[now]}")


def advanced(now: JoinPhase, following: JoinPhase) -> JoinPhase:
    """Return the phase that follows, RuntimeError where it must not."""
    if following not in TRANSITIONS[now]:
        raise RuntimeError(f"a hash join that is {now.value} cannot be {following.value}: {_MEANING[now]}")
    return following
