"""The details of a job as the REST API names things: a vertex by 32 hexadecimal digits, as Flink's clients expect.

Held by: tests/rest/test_job_detail_routes.py
"""

from __future__ import annotations

from msgspec.structs import replace

from engine.gateways.job_details import JobDetails, RequestJobDetails
from engine.rest.services import RestServices, job_id_of
from engine.rpc.http_messages import HttpRequest


async def job_details(services: RestServices, request: HttpRequest) -> JobDetails:
    """Return the job that the path names."""
    return with_vertex_ids(await services.ask_dispatcher(RequestJobDetails(job_id_of(request))))


def with_vertex_ids(job: JobDetails) -> JobDetails:
    """Return a job with the position of each vertex as its id, in 32 digits."""
    ids = {vertex.id: f"{position:032x}" for position, vertex in enumerate(job.vertices)}
    return replace(
        job,
        vertices=tuple(
            replace(
                vertex,
                id=ids[vertex.id],
                inputs=tuple(replace(each, vertex=ids[each.vertex]) for each in vertex.inputs),
            )
            for vertex in job.vertices
        ),
    )
