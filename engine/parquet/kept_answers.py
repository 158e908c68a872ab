"""Answers of footers and page indexes about predicates, kept for the next scans of a file.

    kept_answer(footer, place, predicate, schema, find)     the kept answer for a place of the file, or what is found

A question that is asked again, and each subtask of one, examines the same bounds for the same predicate, which takes as
long as to read a small file. An answer is that of a kept footer (``footers``), which a file that has changed has not.

Held by: tests/parquet/test_kept_answers.py
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from engine.expressions.meaning import Meaning
from engine.graph.expression import Expression
from engine.memory.kept_results import KeptResults
from engine.parquet.footers import kept_number

_Answer = TypeVar("_Answer", bound=Sequence[Any] | None)
_Key = tuple[int, Hashable, Meaning]
#: limit of the bytes of all answers
BYTES_MAX: Final = 8 << 20
#: bytes in memory of an answer: at least, for each encoded byte of its predicate, and for each of its parts
_ANSWER_BYTES: Final = 2048
_BYTES_PER_ENCODED: Final = 8
_BYTES_PER_PART: Final = 128


def kept_answer(
    footer: pq.FileMetaData, place: Hashable, predicate: Expression, schema: pa.Schema, find: Callable[[], _Answer]
) -> _Answer:
    """Return the answer about a predicate for a place, which is not to be changed. Raises what ``find`` does."""
    number, meaning = kept_number(footer), Meaning((predicate,), schema)
    if number is None or not meaning.may_be_kept:
        return find()
    answer: _Answer = _answers.of((number, place, meaning), find)
    return answer


def _size_of(key: _Key, answer: Sequence[Any] | None) -> int:
    _, place, meaning = key
    parts = len(answer or ()) + (len(place) if isinstance(place, tuple) else 1)
    return _ANSWER_BYTES + _BYTES_PER_ENCODED * meaning.encoded_bytes + _BYTES_PER_PART * parts


_answers: Final = KeptResults[_Key, Any](BYTES_MAX, _size_of)
