"""Closing several things: every step runs, whatever the ones before it raise; then the first error is raised.

    close_all([a.close, b.close, c.close])         a raises, b closes, c raises  ─►  a's error, c's as a note on it
    await close_all_async([server.stop, pool.shutdown])

The notes hold the tracebacks of the later errors, so that none is lost. Where steps are awaited a later one may wait
for long: each error is logged when it comes, and cancelling the caller breaks off.

Source: ``contextlib.ExitStack``, which hides all errors but the last.
"""

from __future__ import annotations

import inspect
import logging
import traceback
from collections.abc import Awaitable, Callable, Iterable

_log = logging.getLogger(__name__)


def close_all(steps: Iterable[Callable[[], object]]) -> None:
    """Run every step in order, then raise the first error with the others as notes; an interrupt stops no step."""
    first_error: BaseException | None = None
    for step in steps:
        try:
            step()
        except BaseException as error:
            first_error = _joined(first_error, error)
    if first_error is not None:
        raise first_error


async def close_all_async(steps: Iterable[Callable[[], Awaitable[None] | None]]) -> None:
    """Run every step in order, awaiting what it returns, then raise the first error with the others as notes."""
    first_error: BaseException | None = None
    for step in steps:
        try:
            ending = step()
            if inspect.isawaitable(ending):
                await ending
        except Exception as error:
            _log.exception("a part did not stop cleanly; the rest is stopped as well")
            first_error = _joined(first_error, error)
    if first_error is not None:
        raise first_error


def _joined(first: BaseException | None, error: BaseException) -> BaseException:
    if first is None or first is error:
        return error
    first.add_note("closing went on and met: " + "".join(traceback.format_exception(error)).rstrip())
    return first
