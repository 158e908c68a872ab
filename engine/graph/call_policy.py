"""CallPolicy: what happens around the calls of a user's function: how many at once, how often again, what of a failure.

Held by: tests/integration/test_careful_calls.py
"""

from __future__ import annotations

from typing import Final

from engine.graph.exact import Exact

#: policies for a row for which the function fails, or whose result does not fit: the job fails; the result is null; the
#: row has no result; the result is null, and ERROR_COLUMNS hold reason, place and input
ON_ERROR: Final = ("fail", "null", "skip", "collect")
#: columns of failures: text "ValueError: ...", text "FILE, line N", struct of the input; null for successful rows
ERROR_COLUMNS: Final = ("error", "error_place", "error_input")
ERROR_INPUT: Final = ERROR_COLUMNS[-1]


class CallPolicy(Exact, frozen=True):
    """The policy of a function's calls. ``concurrency``: of an async function, calls at once; 0: not async."""

    concurrency: int = 0
    retries: int = 0
    retry_delay_s: float = 0.0
    on_error: str = "fail"

    @property
    def is_collecting(self) -> bool:
        """Whether results have ERROR_COLUMNS behind them."""
        return self.on_error == "collect"
