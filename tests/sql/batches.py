"""Many expressions in one query: a job for each takes most of its time for what all of them have in common.

in_batches(expressions)                  parameters of a test, each of which is a tuple of expressions
differences(expressions, rows, wanted)   {expression: values of both} of those that are the last columns of rows
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import pytest

Rows = list[tuple[Any, ...]]


def in_batches(expressions: Iterable[str], many: int = 24) -> list[Any]:
    remaining = iter(expressions)
    batches = iter(lambda: tuple(islice(remaining, many)), ())
    return [pytest.param(batch, id=f"{batch[0]} to {batch[-1]}") for batch in batches]


def columns_of(expressions: Iterable[str]) -> str:
    """Return the list of a SELECT."""
    return ", ".join(f"{expression} AS value{at}" for at, expression in enumerate(expressions))


def differences(expressions: tuple[str, ...], found: Rows, wanted: Rows) -> dict[str, tuple[Any, Any]]:
    assert len(found) == len(wanted) > 0
    columns = ([*zip(*rows, strict=True)][-len(expressions) :] for rows in (found, wanted))
    both = zip(expressions, *columns, strict=True)
    return {expression: (values, right) for expression, values, right in both if values != right}
