"""Routes of Flink's API for streams and for programs in Java archives, which a batch engine has not: refused by name.

Held by: tests/rest/test_job_detail_routes.py
"""

from __future__ import annotations

from engine.rpc.http_messages import Access, Handler, HttpError, HttpRequest, HttpResponse, Route

_BATCH = "this engine runs batch jobs: there are no {what}; finished stages are what a restart begins from"
_SCRIPTS = "programs are Python scripts, not Java archives: run them with bin/flink-run job submit -t cluster JOB.py"

_JOB = "/jobs/{job_id}"
_REFUSED: tuple[tuple[str, str, str], ...] = (
    ("POST", f"{_JOB}/savepoints", _BATCH.format(what="savepoints")),
    ("GET", f"{_JOB}/savepoints/{{trigger_id}}", _BATCH.format(what="savepoints")),
    ("POST", f"{_JOB}/stop", "a batch job ends by itself or is cancelled (PATCH ?mode=cancel); it has no savepoint"),
    ("POST", "/savepoint-disposal", _BATCH.format(what="savepoints")),
    ("GET", f"{_JOB}/checkpoints", _BATCH.format(what="checkpoints")),
    ("POST", f"{_JOB}/checkpoints", _BATCH.format(what="checkpoints")),
    ("GET", f"{_JOB}/checkpoints/config", _BATCH.format(what="checkpoints")),
    ("GET", f"{_JOB}/vertices/{{vertex_id}}/watermarks", _BATCH.format(what="watermarks")),
    ("GET", f"{_JOB}/vertices/{{vertex_id}}/flamegraph", "use /taskmanagers/{taskmanager_id}/flame-graph"),
    ("PUT", f"{_JOB}/resource-requirements", "the parallelism of a job is decided by its plan and by the data"),
    ("GET", f"{_JOB}/resource-requirements", "the parallelism of a job is decided by its plan and by the data"),
    ("GET", "/jars", _SCRIPTS),
    ("POST", "/jars/upload", _SCRIPTS),
    ("POST", "/jars/{jar_id}/run", _SCRIPTS),
    ("POST", "/jars/{jar_id}/run-application", _SCRIPTS),
    ("DELETE", "/jars/{jar_id}", _SCRIPTS),
)
#: refusals by method and path, with their reasons
REFUSALS = {(method, path): f"not supported: {reason}" for method, path, reason in _REFUSED}


def streaming_routes() -> tuple[Route, ...]:
    """Return routes that answer 501 and why."""
    return tuple(
        Route(method, path, _refusal(text), Access.OPEN_GET if method == "GET" else Access.SECRET)
        for (method, path), text in REFUSALS.items()
    )


def _refusal(text: str) -> Handler:
    async def refuse(_: HttpRequest) -> HttpResponse:
        raise HttpError(501, text)

    return refuse
