"""Messages of Substrait as trees: what is directly below one, whatever its kind.

Held by: tests/sql/test_joins.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def messages_below(message: Any) -> Iterator[Any]:
    """Yield the messages in the fields of a message, in the order of the fields' numbers."""
    for field, value in message.ListFields():
        if field.message_type is not None:
            yield from value if field.is_repeated else (value,)
