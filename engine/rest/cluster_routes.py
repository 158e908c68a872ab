"""The cluster as a whole.

GET    /overview   slots, and jobs by how they ended
GET    /config     what a user interface needs to know
GET    /datasets   results that outlive their jobs: there are none
DELETE /cluster    ends all TaskManagers and this JobManager, the leader: 200. As in Flink, standbys stay, and one of
                   them leads next: the answer says so

Held by: tests/rest/test_job_routes.py
Held by: tests/entrypoint/test_cluster_over_rest.py
"""

from __future__ import annotations

import time
from collections import Counter

from engine import __version__
from engine.config.options import HA_TYPE
from engine.gateways.messages import EndTaskExecutors, JobList, ListJobs
from engine.gateways.protocol import protocol
from engine.gateways.task_executors import ListTaskExecutors, TaskExecutorHardware, TaskExecutorList
from engine.rest.services import RestServices, answer
from engine.rpc.http_messages import Access, HttpError, HttpRequest, HttpResponse, Route

_STANDBYS_STAY = (
    "all TaskManagers and the JobManager that leads end; JobManagers that stand by stay, and one of them leads next,"
    " with the jobs that had not ended: bin/stop-cluster.sh ends all of them"
)
#: states that ``/overview`` counts separately; all others count as running
_ENDED = ("FINISHED", "CANCELED", "FAILED", "SUSPENDED")


def cluster_routes(services: RestServices) -> tuple[Route, ...]:
    """Return the routes of this module."""

    async def overview(_: HttpRequest) -> HttpResponse:
        jobs = await services.ask_dispatcher(ListJobs())
        return answer(overview_document(await services.ask_resource_manager(ListTaskExecutors()), jobs))

    async def config(_: HttpRequest) -> HttpResponse:
        return answer(
            {
                "refresh-interval": 3000,
                "timezone-name": time.tzname[0],
                "timezone-offset": -time.timezone * 1000,
                "flink-version": __version__,
                "flink-revision": "",
                "features": {"web-submit": False, "web-cancel": False, "web-rescale": False, "web-history": False},
            }
        )

    async def data_sets(_: HttpRequest) -> HttpResponse:
        return answer({"dataSets": []})

    async def shut_down(_: HttpRequest) -> HttpResponse:
        if services.shut_down is None:
            raise HttpError(501, "a request cannot end this JobManager: use bin/stop-cluster.sh")
        await services.ask_resource_manager(EndTaskExecutors("the cluster was shut down by a request"))
        services.shut_down()
        has_standbys = services.configuration.get(HA_TYPE) == "ZOOKEEPER"
        return answer({"message": _STANDBYS_STAY} if has_standbys else {})

    return (
        Route("GET", "/overview", overview, Access.OPEN_GET),
        Route("GET", "/config", config, Access.OPEN_GET),
        Route("GET", "/datasets", data_sets, Access.OPEN_GET),
        Route("DELETE", "/cluster", shut_down),
    )


def overview_document(registered: TaskExecutorList, jobs: JobList) -> dict[str, object]:
    """Return ``/overview``: Flink's fields, and what a plan must fit into."""
    executors = registered.task_executors
    states = Counter(job.status for job in jobs.jobs)
    hardware = [(each.hardware, each.slot_count) for each in executors if each.slot_count]
    return {
        "taskmanagers": len(executors),
        "slots-total": sum(each.slot_count for each in executors),
        "slots-available": sum(each.free_slot_count for each in executors),
        "jobs-running": sum(count for state, count in states.items() if state not in _ENDED),
        "jobs-waiting": sum(job.waiting is not None for job in jobs.jobs),
        "jobs-finished": states["FINISHED"],
        "jobs-cancelled": states["CANCELED"],
        "jobs-failed": states["FAILED"],
        "flink-version": __version__,
        "flink-commit": "",
        "protocol": protocol(),
        "managed-bytes-per-slot": min((each.managed_memory // slots for each, slots in hardware), default=0),
        "lent-bytes-per-slot": min((_spare_bytes(each, slots) for each, slots in hardware), default=0),
        "page-bytes": min((each.page_bytes for each, _ in hardware), default=0),
    }


def _spare_bytes(hardware: TaskExecutorHardware, slots: int) -> int:
    """Return the bytes that a slot has more in a job without Python functions: so that the sum is what it has there."""
    return (hardware.managed_memory + hardware.spare_memory) // slots - hardware.managed_memory // slots
