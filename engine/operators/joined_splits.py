"""Splits that follow one another, joined, so that a reader can read them together.

    joined_splits(splits, threads)      0-1 1-2 2-3 │ 5-6 ...  ─►  0-3 │ 5-6 ...

A reader of row groups reads several of them at once where a filter leaves few rows of each. How many are joined leaves
each thread ``_TAKES`` splits to take: a thread that is last has little to read while the others have ended.

Held by: tests/operators/test_joined_splits.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from engine.graph.source_spec import SourceSplit, joined_split

_TAKES: Final = 8
_PIECES_MAX: Final = 8


def joined_splits(splits: Sequence[SourceSplit], threads: int) -> Sequence[SourceSplit]:
    """Return the splits of some threads, those joined that follow one another in a file."""
    pieces_max = min(_PIECES_MAX, len(splits) // (_TAKES * threads))
    return splits if pieces_max < 2 else list(map(joined_split, _runs(splits, pieces_max)))


def _runs(splits: Sequence[SourceSplit], pieces_max: int) -> Iterator[list[SourceSplit]]:
    run: list[SourceSplit] = []
    for split in splits:
        if run and (len(run) == pieces_max or (split.path, split.start) != (run[-1].path, run[-1].end)):
            yield run
            run = []
        run.append(split)
    yield run
