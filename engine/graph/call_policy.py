"""CallPolicy: what happens around the calls of a user's function: how many at once, how often again, what of a failure.

Held by: tests/integration/test_careful_calls.py
"""

from __future__ import annotations

from typing import Final

import msgspec

#: of a row for which the function fails, or gives what does not fit: the job fails; its result is null; it has none;
#: its result is null, and a column ERROR_COLUMN says why
ON_ERROR: Final = ("fail", "null", "skip", "collect")
ERROR_COLUMN: Final = "error"


class CallPolicy(msgspec.Struct, frozen=True):
    """How a function is called. ``concurrency``: of an async function, calls at once; 0: it is none."""

    concurrency: int = 0
    retries: int = 0
    retry_delay_s: float = 0.0
    on_error: str = "fail"
