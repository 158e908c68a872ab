"""ClusterClient: what a client asks of a JobManager, over its REST API and nothing else.

    client = ClusterClient("localhost:8081", credentials)      or a LeaderSource, which knows where the leader is
    client.submit(job_graph)                 the same job again changes nothing, so a lost answer is asked for again
    client.outcome(job_id, wait_s)           None while the job runs; the server answers as soon as it has ended
    client.progress(job_id)  cancel(job_id)  overview()  jobs()
    client.upload(job_id, content) -> key    what ships with a job

Blocking, on one connection that is kept open; for one thread at a time. What changes something, and everything off
loopback, is signed with the cluster secret. Standard library only: a command that lists jobs should not load an event
loop.

Every question may be asked twice. So a client whose JobManager is gone asks the next leader, wherever that is, until
its patience ends. JobNotFoundError can be believed: a JobManager leads only after it has recovered all jobs.

Errors: ClusterUnreachableError when no leader answers; JobNotFoundError; VersionMismatchError when the JobManager has
another version, whatever was asked; EngineError with the JobManager's own words when it refuses.

Held by: tests/client/test_following_the_leader.py
"""

from __future__ import annotations

import hashlib
import http.client
import select
import socket
import ssl
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import msgspec

from engine.client.leader_answers import NOT_LEADING, NOT_RECOVERED
from engine.client.leader_source import FixedAddresses, LeaderSource
from engine.errors import EngineError, JobNotFoundError, ResourceError, VersionMismatchError
from engine.gateways.messages import JobOutcome, JobProgress, SubmitJob
from engine.graph.job_graph import JobGraph
from engine.ids import JobId
from engine.network_address import split_address
from engine.rpc.credentials import AUTHORIZATION, Credentials
from engine.rpc.program import PROGRAM_HEADER, Program

if TYPE_CHECKING:
    from engine.profile.job_profile import JobProfile

T = TypeVar("T")

#: time limit of an answer, seconds, where no wait was requested
_ANSWER_S = 30.0
_FIRST_PAUSE_S = 0.05
_START = "start one with bin/start-cluster.sh, or name another with -m host:port"
_LAST_PAUSE_S = 1.0
#: seconds between two checks which JobManager leads, while the client waits for an answer
_LOOK_S = 0.5
#: messages of a process that leads no more, or not yet
_PASSING = (NOT_LEADING, NOT_RECOVERED, "fenced: ", " has stopped")
#: seconds without a leader after which the user is told
_SILENCE_S = 0.5


class ClusterUnreachableError(ResourceError, ConnectionError):
    """No JobManager answers, or none that leads.

    What to do: start the cluster, or correct ``-m`` or ``jobmanager.rpc.address``.
    """


class _NoLeaderError(Exception):
    """One try has found no leader; ``str()`` is why."""

    def __init__(self, why: str, remedy: str = _START) -> None:
        super().__init__(why)
        self.remedy = remedy


class Overview(msgspec.Struct, frozen=True, rename="kebab"):
    """The state of a cluster; the names of Flink's ``/overview``."""

    taskmanagers: int
    slots_total: int
    slots_available: int
    jobs_running: int
    jobs_finished: int
    jobs_cancelled: int
    jobs_failed: int
    #: bytes of the smallest slot, and of a page; 0: there is no TaskManager
    managed_bytes_per_slot: int = 0
    page_bytes: int = 0
    #: additional bytes for jobs without Python functions
    spare_bytes_per_slot: int = msgspec.field(default=0, name="lent-bytes-per-slot")


class WaitingLine(msgspec.Struct, frozen=True):
    """The place of a job in the queue for slots."""

    place: int
    text: str


class JobLine(msgspec.Struct, frozen=True, rename={"job_id": "jid", "start_ms": "start-time", "end_ms": "end-time"}):
    """A job in ``/jobs/overview``."""

    job_id: str
    name: str
    state: str
    start_ms: int
    end_ms: int
    duration: int
    waiting: WaitingLine | None = None
    #: user that the job belongs to; "": none by name
    user: str = ""


class _JobLines(msgspec.Struct, frozen=True):
    jobs: tuple[JobLine, ...]


class _Errors(msgspec.Struct, frozen=True):
    errors: tuple[str, ...]


class ClusterClient:
    """One JobManager, seen from a client.

    Args:
        leader: ``host:port`` of its server, or a LeaderSource.
        credentials: the cluster secret; None: only what is open can be asked.
        tls: client context when the server speaks TLS.
        patience_s: how long to go on asking when the leader no longer answers.
        first_patience_s: the same when no leader has answered yet.
        on_waiting: told once, with a reason, that there is no leader to ask at present.
        token: of a user, sent in place of a signature.
        program: what this process says of itself, and the JobManager has to be; None: any.
    """

    def __init__(
        self,
        leader: LeaderSource | str,
        credentials: Credentials | None = None,
        tls: ssl.SSLContext | None = None,
        patience_s: float = 0.0,
        first_patience_s: float = 0.0,
        on_waiting: Callable[[str], None] = lambda reason: None,
        program: Program | None = None,
        token: str | None = None,
    ) -> None:
        self._program = program
        self._token = token
        self._leader = FixedAddresses(leader) if isinstance(leader, str) else leader
        self._credentials = credentials
        self._tls = tls
        self._patience_s = patience_s
        self._first_patience_s = first_patience_s
        self._on_waiting = on_waiting
        self._connection: http.client.HTTPConnection | None = None
        #: address that the connection goes to
        self._address = ""
        self._has_answered = False

    # ---- jobs ----

    def submit(self, job_graph: JobGraph) -> None:
        """Submit a job; one of that id that exists already stays as it is."""
        body = msgspec.msgpack.encode(SubmitJob(job_graph))
        self._ask("POST", "/jobs", body, content_type="application/msgpack")

    def outcome(self, job_id: JobId, wait_s: float) -> JobOutcome | None:
        """Return the outcome of a job, after waiting at most ``wait_s``; None while it runs."""
        status, answer = self._ask("GET", f"/jobs/{job_id}/outcome?wait={wait_s:.3f}", answer_s=wait_s + _ANSWER_S)
        return None if status == http.client.ACCEPTED else msgspec.json.decode(answer, type=JobOutcome)

    def progress(self, job_id: JobId) -> JobProgress:
        """Return a job's live numbers."""
        return self._get(f"/jobs/{job_id}/progress", JobProgress)

    def cancel(self, job_id: JobId) -> None:
        """Begin to cancel a job; one that has ended is refused with EngineError."""
        self._ask("PATCH", f"/jobs/{job_id}?mode=cancel")

    def change(self, target: str) -> None:
        """Send a PATCH that may be sent twice."""
        self._ask("PATCH", target)

    def jobs(self, query: str = "") -> tuple[JobLine, ...]:
        """Return all jobs, or those of a query, oldest first."""
        return self._get(f"/jobs/overview{query}", _JobLines).jobs

    def overview(self) -> Overview:
        """Return slots and counts of jobs."""
        return self._get("/overview", Overview)

    def document(self, path: str) -> Any:
        """Return the JSON of any GET."""
        return msgspec.json.decode(self._ask("GET", path)[1])

    def profile(self, job_id: JobId) -> JobProfile:
        """Return everything about a job's run in one document."""
        from engine.profile.job_profile import JobProfile

        return self._get(f"/jobs/{job_id}/profile", JobProfile)

    def text(self, path: str) -> str:
        """Return the text of any GET."""
        return self._ask("GET", path)[1].decode(errors="replace")

    # ---- what ships with a job ----

    def upload(self, job_id: JobId, content: bytes) -> str:
        """Store content among a job's blobs and return its key, the SHA-256 in hex."""
        key = hashlib.sha256(content).hexdigest()
        self._ask("PUT", f"/jobs/{job_id}/blobs/{key}", content, content_type="application/octet-stream")
        return key

    # ---- transport ----

    def limit_patience(self, seconds: float) -> None:
        """Wait no longer than that from now on."""
        self._patience_s, self._first_patience_s = min(self._patience_s, seconds), min(self._first_patience_s, seconds)

    def disconnect(self) -> None:
        """Close the connection; the next question opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Ask nothing more; idempotent."""
        self.disconnect()
        self._leader.close()

    def _get(self, path: str, reply: type[T]) -> T:
        return msgspec.json.decode(self._ask("GET", path)[1], type=reply)

    def _ask(
        self, method: str, target: str, body: bytes = b"", content_type: str = "", answer_s: float = _ANSWER_S
    ) -> tuple[int, bytes]:
        """Ask until a leader answers or patience ends; every question here may be asked twice."""
        began_s = time.monotonic()
        tries, pause_s, is_told = 0, _FIRST_PAUSE_S, False
        while True:
            tries += 1
            try:
                status, answer = self._ask_leader(
                    method, quote(target, safe="/?&=:.,-_%"), body, content_type, answer_s
                )
            except _NoLeaderError as no_leader:
                self.disconnect()
                waited_s = time.monotonic() - began_s
                patience_s = self._patience_s if self._has_answered else self._first_patience_s
                if waited_s >= patience_s and tries >= self._leader.count:
                    waited = f" for {waited_s:.0f} s" if waited_s > 1 else ""
                    raise ClusterUnreachableError(
                        f"no leading JobManager has answered{waited} ({no_leader}): {no_leader.remedy}"
                    ) from no_leader
                if waited_s > _SILENCE_S and not is_told:
                    is_told = True
                    self._on_waiting(str(no_leader))
                if tries >= self._leader.count:
                    self._leader.wait(min(pause_s, patience_s - waited_s))
                    pause_s = min(2 * pause_s, _LAST_PAUSE_S)
                continue
            if status < http.client.BAD_REQUEST:
                return status, answer
            raise self._refusal(status, answer, target)

    def _ask_leader(
        self, method: str, target: str, body: bytes, content_type: str, answer_s: float
    ) -> tuple[int, bytes]:
        """Ask once; _NoLeaderError when that found no leader."""
        address = self._leader.address()
        if address is None:
            raise _NoLeaderError("no JobManager leads at present")
        if address != self._address:
            self.disconnect()
            self._address = address
        try:
            status, answer = self._ask_once(method, target, body, content_type, answer_s)
        except (OSError, http.client.HTTPException) as error:
            self._leader.failed(address)
            raise _NoLeaderError(f"{address}: {_reason(error)}", self._remedy(error)) from error
        self._has_answered = True
        if status == http.client.SERVICE_UNAVAILABLE or (
            status == http.client.GATEWAY_TIMEOUT and "/logs" not in target
        ):
            text = _error_text(status, answer)
            if status == http.client.GATEWAY_TIMEOUT or any(sign in text for sign in _PASSING):
                self._leader.failed(address)
                raise _NoLeaderError(f"{address}: {text}")
        return status, answer

    def _remedy(self, error: Exception) -> str:
        """Return the remedy: of TLS on one side alone, or of two authorities, and else the usual one."""
        if isinstance(error, ssl.SSLCertVerificationError):
            return "security.ssl.ca has to be the authority of the cluster's certificate, which has to name this host"
        if isinstance(error, ssl.SSLError):
            return "it may have no TLS: security.ssl.enabled is set here"
        if not isinstance(error, http.client.RemoteDisconnected | ConnectionResetError):
            return _START
        if self._tls is None:
            return f"{_START}; if it has TLS, set security.ssl.enabled here"
        return f"{_START}; it may refuse security.ssl.certificate, which has to be of its authority"

    def _ask_once(self, method: str, target: str, body: bytes, content_type: str, answer_s: float) -> tuple[int, bytes]:
        is_reused = self._connection is not None
        try:
            return self._exchange(method, target, body, content_type, answer_s)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            self.disconnect()
            if not is_reused:
                raise
        # A kept connection may have been closed by the server meanwhile: that says nothing about the server.
        return self._exchange(method, target, body, content_type, answer_s)

    def _exchange(self, method: str, target: str, body: bytes, content_type: str, answer_s: float) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = self._connect(answer_s)
        connection = self._connection
        connection.timeout = answer_s
        if connection.sock is not None:
            connection.sock.settimeout(answer_s)
        headers = {"Content-Type": content_type} if content_type else {}
        if self._program is not None:
            headers[PROGRAM_HEADER] = self._program.header
        if self._token is not None:
            headers[AUTHORIZATION] = f"Bearer {self._token}"
        elif self._credentials is not None:
            digest = hashlib.sha256(body).hexdigest()
            headers[AUTHORIZATION] = self._credentials.sign(method, target, digest)
        connection.request(method, target, body or None, headers)
        self._await_answer(connection.sock, answer_s)
        response = connection.getresponse()
        answer = response.read()
        self._check_program(response, answer)
        return response.status, answer

    def _check_program(self, response: http.client.HTTPResponse, answer: bytes) -> None:
        """Raise VersionMismatchError where either side finds that the other one is another program."""
        if response.status == http.client.PRECONDITION_FAILED:
            raise VersionMismatchError(_error_text(response.status, answer))
        if self._program is not None and response.status < http.client.BAD_REQUEST:
            self._program.check(response.getheader(PROGRAM_HEADER), self._address)

    def _await_answer(self, connection: socket.socket, answer_s: float) -> None:
        """Wait for the first bytes, unless another JobManager leads meanwhile: one that hangs may never answer."""
        deadline_s = time.monotonic() + answer_s
        looking = select.poll()  # which takes descriptors of any number
        looking.register(connection, select.POLLIN)
        while not looking.poll(_LOOK_S * 1000):
            if self._leader.address() not in (None, self._address):
                raise ConnectionError("another JobManager leads")
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"no answer in {answer_s:g} s")

    def _connect(self, answer_s: float) -> http.client.HTTPConnection:
        host, port = split_address(self._address)
        if self._tls is not None:
            return http.client.HTTPSConnection(host, port, timeout=answer_s, context=self._tls)
        return http.client.HTTPConnection(host, port, timeout=answer_s)

    def _refusal(self, status: int, answer: bytes, target: str) -> EngineError:
        text = _error_text(status, answer)
        if status == http.client.NOT_FOUND and target.startswith("/jobs/") and "job" in text:
            return JobNotFoundError(text)
        return EngineError(f"the JobManager at {self._address} refuses: {text}")


def _reason(error: BaseException) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


def _error_text(status: int, answer: bytes) -> str:
    try:
        return "; ".join(msgspec.json.decode(answer, type=_Errors).errors)
    except msgspec.MsgspecError:
        return f"{status} {http.client.responses.get(status, '')}"
