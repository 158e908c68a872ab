"""SplitHands: subtasks of a source in one process; who has read its own splits takes over those of another.

    hand = hands.enter(key, splits)                      a subtask's run of splits, in order
    while (split := hand.take()) is not None: ...        its own from the front, then others' from the back
    hand.leave()                                         nobody takes what is left over

    hand 0    1 2 3 4 │ 5 6 7 8 9 ──┐ from who has most left
    hand 1    all read ◄────────────┘ 9, then 8

Splits are dealt by bytes when the job begins, and equal bytes do not take equal time: filters leave more of some rows,
other threads want the processor. So the last subtask would read alone at the end.

Only who has entered can be taken from, and a split is in one hand at a time: each is read once, whoever comes late or
leaves early. Attempts have hands of their own (the key names them). Which sources may do so is said by
``jobmaster.shared_splits``.

Thread: any. Source: Blumofe and Leiserson, Scheduling Multithreaded Computations by Work Stealing, 1994.
Held by: tests/operators/test_split_hands.py
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Hashable, Sequence

from engine.graph.source_spec import SourceSplit


class SplitHands:
    """The hands of one process, by what they share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hands: dict[Hashable, list[SplitHand]] = {}  # guarded by: self._lock

    @property
    def hand_count(self) -> int:
        """Subtasks that have entered and not left, of all sources."""
        with self._lock:
            return sum(map(len, self._hands.values()))

    def enter(self, key: Hashable, splits: Sequence[SourceSplit]) -> SplitHand:
        """Return the hand of a subtask, with the splits that it was assigned."""
        hand = SplitHand(self, key, splits)
        with self._lock:
            self._hands.setdefault(key, []).append(hand)
        return hand

    def take(self, hand: SplitHand) -> SourceSplit | None:
        """Return the next split for a hand; see ``SplitHand.take``."""
        with self._lock:
            if hand.left:
                hand.left_bytes -= hand.left[0].size_bytes
                return hand.left.popleft()
            others = [other for other in self._hands.get(hand.key, ()) if other.left]
            if not others or hand.has_left:
                return None
            fullest = max(others, key=lambda other: other.left_bytes)
            split = fullest.left.pop()
            fullest.left_bytes -= split.size_bytes
            return split

    def leave(self, hand: SplitHand) -> None:
        """Forget a hand; see ``SplitHand.leave``."""
        with self._lock:
            if hand.has_left:
                return
            hand.has_left = True
            hand.left.clear()
            hands = self._hands[hand.key]
            hands.remove(hand)
            if not hands:
                del self._hands[hand.key]


class SplitHand:
    """One subtask's splits. The fields are guarded by the lock of all hands."""

    def __init__(self, hands: SplitHands, key: Hashable, splits: Sequence[SourceSplit]) -> None:
        self.key = key
        self.left = deque(splits)
        self.left_bytes = sum(split.size_bytes for split in splits)
        self.has_left = False
        self._hands = hands

    def take(self) -> SourceSplit | None:
        """Return the next split to read, None when nobody has one left."""
        return self._hands.take(self)

    def leave(self) -> None:
        """Read nothing more: what is left needs nobody to read it. Idempotent."""
        self._hands.leave(self)
