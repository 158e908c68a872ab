"""Record: what clients of a server ask for, as entries of an audit file and as counts for metrics.

    login(caller, address)                     a session begins
    refused(header, method, address, why)      a caller without a good token: logged, and recorded as seldom
    statement(asker, text, error)              one that has run, was refused, has failed, or was abandoned

    {"what": "statement", "outcome": "done", "address": "10.0.0.7", "credential": "user-token", "caller": "ada",
     "details": {"statement": "SELECT ...", "session": "5f..."}}

The text of a statement is recorded without values that look like secrets: passwords in addresses, and literals after
words such as ``secret_key``. Thread: any.

Held by: tests/flight_sql/test_record.py
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Final, NamedTuple

from engine.errors import EngineError, JobCancelledError, JobExecutionError
from engine.flight_sql.access import Caller
from engine.flight_sql.admission import GoneError
from engine.rpc.audit import AuditEntry
from engine.rpc.refusals import REFUSALS, Reason

#: beginning of the names of metrics
STATEMENTS: Final = "Status.FlightSql.Statements."
_TEXT_MAX: Final = 2000
_REASON_MAX: Final = 300
_PASSWORD: Final = re.compile(r"(://[^/\s:@']*:)[^@/\s']+@")
_SECRET: Final = re.compile(
    r"((?:password|passwd|secret|token|access_?key|account_?key|credential)\w*['\"]?\s*(?:=>|:=|[=:(,]|\s)\s*)"
    r"'(?:[^']|'')*'",
    re.IGNORECASE,
)


class Asker(NamedTuple):
    """The caller of a statement, and its address."""

    caller: Caller
    address: str


class Record:
    """The record of one server. ``note``: takes entries; None: they are counted alone."""

    def __init__(self, note: Callable[[AuditEntry], None] | None = None) -> None:
        self._note = note or (lambda entry: None)
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}  # guarded by: self._lock

    def metrics(self) -> dict[str, float]:
        """Return the number of statements by outcome."""
        with self._lock:
            return {f"{STATEMENTS}{outcome}": float(count) for outcome, count in self._counts.items()}

    def login(self, caller: Caller, address: str) -> None:
        """Note that a session has begun."""
        self._note(_entry("connect", "done", Asker(caller, address)))

    def refused(self, header: str, method: str, address: str, why: str) -> None:
        """Note a caller that was not let in. Any client can cause that at will, so the record has what the log has."""
        reason = Reason.WRONG_SECRET if header else Reason.MISSING_SECRET
        if REFUSALS.note(reason, address, f"flight sql, {method}", why):
            self._note(AuditEntry("connect", "refused", address, reason=why))

    def statement(self, asker: Asker, text: str, error: BaseException | None = None) -> None:
        """Note the end of a statement."""
        outcome = outcome_of(error)
        with self._lock:
            self._counts[outcome] = self._counts.get(outcome, 0) + 1
        said = error.shown() if isinstance(error, EngineError) else str(error or "")
        reason = said.partition("\n")[0][:_REASON_MAX]
        self._note(_entry("statement", outcome, asker, reason, {"statement": shown_statement(text)}))


def _entry(
    what: str, outcome: str, asker: Asker, reason: str = "", details: dict[str, str] | None = None
) -> AuditEntry:
    caller = asker.caller
    name = caller.user.name if caller.user is not None else ""
    credential = "user-token" if name else "none" if caller.owner == "anonymous" else "server-token"
    told = {**(details or {}), "session": caller.owner}
    return AuditEntry(what, outcome, asker.address, credential, name, reason=reason, details=told)


def outcome_of(error: BaseException | None) -> str:
    """Return the word for how a statement has ended."""
    if error is None:
        return "done"
    if isinstance(error, GoneError | JobCancelledError | GeneratorExit):
        return "abandoned"
    return "refused" if isinstance(error, EngineError) and not isinstance(error, JobExecutionError) else "failed"


def shown_statement(text: str) -> str:
    """Return the text of a statement on one line, without secrets."""
    shown = _SECRET.sub(r"\1'...'", _PASSWORD.sub(r"\1...@", " ".join(text.split())))
    return shown if len(shown) <= _TEXT_MAX else f"{shown[: _TEXT_MAX - 1]}…"


def address_of(peer: str) -> str:
    """Return the address of a peer as the library names it: ``ipv4:127.0.0.1:5000``, ``ipv6:%5B::1%5D:5000``."""
    rest = peer.partition(":")[2].rpartition(":")[0]
    return rest.replace("%5B", "").replace("%5D", "").strip("[]").removeprefix("::ffff:")
