"""Splits that follow one another, joined, so that a reader can read them together.

    joined_splits(splits, threads)      0-1 1-2 2-3 ... 20-21  ─►  0-10 │ 10-15 │ 15-18 │ ... │ 20-21

A reader of row groups reads several of them at once where a filter leaves few rows of each. A run has at most
``_PIECES_MAX``, and of what is left one part in ``_PARTS`` for each thread: the last runs are single splits, so that
all threads end together.

Source: Polychronopoulos and Kuck, Guided Self-Scheduling, 1987.
Held by: tests/operators/test_joined_splits.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from engine.graph.source_spec import SourceSplit, joined_split

_PARTS: Final = 2
_PIECES_MAX: Final = 24


def joined_splits(splits: Sequence[SourceSplit], threads: int) -> Sequence[SourceSplit]:
    """Return the splits of some threads, those joined that follow one another in a file."""
    parts = _PARTS * threads
    return splits if len(splits) < 2 * parts else list(map(joined_split, _runs(splits, parts)))


def _runs(splits: Sequence[SourceSplit], parts: int) -> Iterator[list[SourceSplit]]:
    run: list[SourceSplit] = []
    pieces_max = 0
    for number, split in enumerate(splits):
        if not run or len(run) == pieces_max or (split.path, split.start) != (run[-1].path, run[-1].end):
            if run:
                yield run
            run = []
            pieces_max = max(1, min(_PIECES_MAX, (len(splits) - number) // parts))
        run.append(split)
    yield run
