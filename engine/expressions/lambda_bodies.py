"""Bodies of functions of elements: expressions over columns of their own, as an option of the call that evaluates them.

    body_text(body) -> text        body_of(text) -> body

``element`` is the element, ``place`` its place in the list from 1, ``total`` what reduce has so far, ``captured0`` and
so on are the arguments of the call behind the list.

Held by: tests/sql/test_lambdas.py
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from functools import cache

import msgspec

from engine.graph.expression import JOB_MOMENT, Call, ColumnRef, Expression

ELEMENT, PLACE, TOTAL = "element", "place", "total"
#: name of the element in an expression of ``element()``, before it is a body
ELEMENT_ITSELF = "element()"


def captured(number: int) -> str:
    """Return the name of a captured value in a body."""
    return f"captured{number}"


def captured_part(part: Expression, seen: list[Expression]) -> ColumnRef | None:
    """Return the name in a body of what it takes from around it, a column or the job's moment, and keep it in seen."""
    if not isinstance(part, ColumnRef) and not (isinstance(part, Call) and part.function == JOB_MOMENT):
        return None
    if part not in seen:
        seen.append(part)
    return ColumnRef(captured(seen.index(part)))


def body_text(body: Expression) -> str:
    """Return a body as the option that a call has of it."""
    return b64encode(msgspec.msgpack.encode(body)).decode()


@cache
def _decoder() -> msgspec.msgpack.Decoder[Expression]:
    return msgspec.msgpack.Decoder(Expression)


def body_of(text: str) -> Expression:
    """Return the body that an option has."""
    return _decoder().decode(b64decode(text))
