"""Jobs over HTTP: submit, list, follow, cancel; what is malformed, unknown or too late."""

from __future__ import annotations

import asyncio
import threading

import msgspec

from engine.gateways.messages import RequestJobOutcome, SubmitJob
from engine.ids import JobId
from tests.jobmaster.job_graphs import BLOCKING, Edge, job_graph
from tests.rest.rest_world import scenario, until

OVERVIEW = {
    "taskmanagers",
    "slots-total",
    "slots-available",
    "jobs-running",
    "jobs-finished",
    "jobs-cancelled",
    "jobs-failed",
    "flink-version",
    "flink-commit",
}


def test_the_overview_counts_slots_and_jobs_under_flinks_names():
    async def body(world):
        await world.run(job_graph([1]))
        overview = await world.get("/overview")
        assert set(overview) >= OVERVIEW
        assert (overview["taskmanagers"], overview["slots-total"], overview["slots-available"]) == (2, 3, 3)
        assert (overview["jobs-finished"], overview["jobs-running"], overview["jobs-failed"]) == (1, 0, 0)
        assert await world.get("/v1/overview") == overview

    scenario(body, (2, 1))


def test_jobs_are_listed_with_state_times_and_tasks():
    async def body(world):
        graph = job_graph([2, 1], [Edge(0, 1, result_type=BLOCKING)], name="prices")
        await world.run(graph)
        assert await world.get("/jobs") == {"jobs": [{"id": graph.job_id.value, "status": "FINISHED"}]}
        (line,) = (await world.get("/jobs/overview"))["jobs"]
        assert set(line) == {
            "jid",
            "name",
            "user",
            "state",
            "start-time",
            "end-time",
            "duration",
            "last-modification",
            "tasks",
            "waiting",
        }
        assert line["waiting"] is None
        assert (line["jid"], line["name"], line["state"]) == (graph.job_id.value, "prices", "FINISHED")
        assert (line["tasks"]["total"], line["tasks"]["finished"]) == (3, 3) and len(line["tasks"]) == 11
        assert line["end-time"] - line["start-time"] == line["duration"]

    scenario(body)


def test_a_job_whose_slots_another_one_has_waits_at_a_place_everywhere():
    async def body(world):
        release, resources = threading.Event(), world.cluster.resources[0]
        resources.bodies["hold"] = lambda task: release.wait(60)
        holding, waiting = job_graph([1], names=["hold"]), job_graph([1])
        gateway = world.cluster.gateway
        try:
            await gateway.ask(SubmitJob(holding))
            while not resources.descriptors:
                await asyncio.sleep(0.01)
            await gateway.ask(SubmitJob(waiting))
            while (await world.get("/overview"))["jobs-waiting"] == 0:
                await asyncio.sleep(0.01)
            lines = {line["jid"]: line["waiting"] for line in (await world.get("/jobs/overview"))["jobs"]}
            assert lines[holding.job_id.value] is None
            place = lines[waiting.job_id.value]
            assert (place["place"], place["slots-needed"], place["slots-total"], place["reason"]) == (1, 1, 1, "SLOTS")
            assert (await world.get(f"/jobs/{waiting.job_id}"))["waiting"] == place
            assert (await world.get(f"/jobs/{waiting.job_id}/progress"))["waiting"]["place"] == 1
            assert place["text"] in await world.get("/") and place["text"] in await world.get(
                f"/jobs/{waiting.job_id}/page"
            )
        finally:
            release.set()
        assert (await gateway.ask(RequestJobOutcome(waiting.job_id), None)).status == "FINISHED"
        assert (await world.get(f"/jobs/{waiting.job_id}"))["waiting"] is None

    scenario(body, (1,))


def test_a_job_is_submitted_once_however_often_it_is_sent():
    async def body(world):
        graph = job_graph([1])
        content = msgspec.msgpack.encode(SubmitJob(graph))
        assert await world.send("POST", "/jobs", content) == (202, {"jobid": graph.job_id.value, "is-new": True})
        assert await world.send("POST", "/jobs", content) == (202, {"jobid": graph.job_id.value, "is-new": False})
        outcome = await world.get(f"/jobs/{graph.job_id}/outcome?wait=30")
        assert outcome["status"] == "FINISHED"

    scenario(body)


def test_what_is_malformed_is_refused_with_400_and_what_is_unknown_with_404():
    async def body(world):
        status, answer = await world.send("POST", "/jobs", b"\x93not a job")
        assert status == 400 and "errors" in answer
        assert "errors" in await world.get("/jobs/no-job-id/progress", 400)
        assert "errors" in await world.get(f"/jobs/{JobId.random()}/progress", 404)
        assert (await world.send("PATCH", f"/jobs/{JobId.random()}"))[0] == 404

    scenario(body)


def test_a_job_is_cancelled_once_and_a_job_that_has_ended_not_at_all():
    async def body(world):
        world.cluster.resources[0].bodies["wait"] = lambda task: task.wait_cancelled()
        graph = job_graph([1], names=["wait"])
        await world.submit(graph)

        async def runs():
            progress = await world.get(f"/jobs/{graph.job_id}/progress")
            return progress["vertices"][0]["subtasks"] == {"RUNNING": 1}

        await until(runs)
        assert (await world.get("/overview"))["jobs-running"] == 1
        assert (await world.send("PATCH", f"/jobs/{graph.job_id}?mode=stop"))[0] == 400
        assert await world.send("PATCH", f"/jobs/{graph.job_id}?mode=cancel") == (202, {})
        assert (await world.get(f"/jobs/{graph.job_id}/outcome?wait=30"))["status"] == "CANCELED"
        status, answer = await world.send("PATCH", f"/jobs/{graph.job_id}?mode=cancel")
        assert status == 409 and "CANCELED" in answer["errors"][0]

    scenario(body)


def test_only_holders_of_the_secret_end_the_cluster():
    async def body(world):
        async with world.session.delete("/cluster") as response:
            assert response.status == 401
        assert not world.is_shut_down
        assert await world.send("DELETE", "/cluster") == (200, {})
        assert world.is_shut_down

    scenario(body)


def test_who_ends_one_of_several_job_managers_is_told_that_the_others_stay():
    async def body(world):
        status, answer = await world.send("DELETE", "/cluster")
        assert (status, world.is_shut_down) == (200, True)
        assert "JobManagers that stand by stay, and one of them leads next" in answer["message"]
        assert "bin/stop-cluster.sh" in answer["message"]

    scenario(body, settings={"high-availability.type": "ZOOKEEPER"})
