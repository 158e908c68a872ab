"""TaskManagers and the JobManager over HTTP: who they are, what they use, what they log."""

from __future__ import annotations

import pytest

from engine.ids import JobId
from engine.insight.log_folder import LogFolder
from tests.jobmaster.job_graphs import job_graph
from tests.rest.rest_world import scenario

TASKMANAGER = {
    "id",
    "path",
    "dataPort",
    "timeSinceLastHeartbeat",
    "slotsNumber",
    "freeSlots",
    "totalResource",
    "freeResource",
    "hardware",
    "memoryConfiguration",
}


@pytest.fixture
def logs(tmp_path):
    folder = tmp_path / "log"
    folder.mkdir()
    (folder / "me.log").write_text("begin\n" + "x" * (3 << 20) + "\nend")
    (folder / "me.out").write_text("printed <b>")
    (folder / "other.log").write_text("of another process")
    (tmp_path / "secret").write_text("secret")
    return LogFolder(folder / "me.log")


def test_taskmanagers_are_listed_under_flinks_names():
    async def body(world):
        executors = (await world.get("/taskmanagers"))["taskmanagers"]
        assert sorted(each["slotsNumber"] for each in executors) == [1, 3]
        assert all(set(each) >= TASKMANAGER for each in executors)
        one = await world.get(f"/taskmanagers/{executors[0]['id']}")
        assert one["id"] == executors[0]["id"] and one["metrics"]["Status.Process.Memory.Resident"] > 0
        await world.get("/taskmanagers/ffff", 404)

    scenario(body, (3, 1))


def test_a_taskmanager_of_another_process_is_not_drained_and_modes_are_named():
    async def body(world):
        (executor,) = (await world.get("/taskmanagers"))["taskmanagers"]
        path = f"/taskmanagers/{executor['id']}"
        assert executor["state"] == "RUNNING"
        status, said = await world.send("PATCH", f"{path}?mode=drain")
        assert status == 503 and "part of another process" in said["errors"][0]
        status, said = await world.send("PATCH", f"{path}?mode=restart")
        assert status == 400 and "mode=drain, mode=stop" in said["errors"][0]
        assert (await world.send("PATCH", "/taskmanagers/ffff?mode=drain"))[0] == 404

    scenario(body, (1,))


def test_metrics_are_named_and_then_asked_for():
    async def body(world):
        resource_id = world.cluster.task_executors[0].resource_id
        for path in (f"/taskmanagers/{resource_id}/metrics", "/jobmanager/metrics"):
            names = [metric["id"] for metric in await world.get(path)]
            assert "Status.Process.Threads.Count" in names
            (metric,) = await world.get(f"{path}?get=Status.Process.Threads.Count,nonsense")
            assert metric["id"] == "Status.Process.Threads.Count" and int(metric["value"]) > 0

    scenario(body)


def test_log_files_of_a_process_are_sent_whole_and_in_parts(logs):
    async def body(world):
        resource_id = world.cluster.task_executors[0].resource_id
        whole = logs.main.read_text()
        for base in (f"/taskmanagers/{resource_id}", "/jobmanager"):
            listed = (await world.get(f"{base}/logs"))["logs"]
            assert [(file["name"], file["size"]) for file in listed] == [("me.log", len(whole)), ("me.out", 11)]
            assert await world.get(f"{base}/log") == whole
            assert await world.get(f"{base}/logs/me.log?offset=-3") == "end"
            assert await world.get(f"{base}/logs/me.log?offset=2&limit=3") == "gin"
            assert await world.get(f"{base}/stdout") == "printed <b>"
            assert "errors" in await world.get(f"{base}/logs/me.log?offset=two", 400)
            for name in ("other.log", "..%2Fsecret", "%2e%2e%2fsecret", "..", "me.log%00", "%2Fetc%2Fpasswd"):
                assert "secret" not in str(await world.get(f"{base}/logs/{name}", 404))

    scenario(body, logs=logs)


def test_log_files_are_plain_text_to_a_browser(logs):
    async def body(world):
        async with world.session.get("/jobmanager/stdout") as response:
            assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
            assert response.headers["X-Content-Type-Options"] == "nosniff"

    scenario(body, logs=logs)


def test_log_files_of_a_job_are_found_wherever_it_ran(logs):
    async def body(world):
        graph = job_graph([1])
        await world.run(graph)
        folder = logs.main.parent / "jobs" / str(graph.job_id)
        folder.mkdir(parents=True)
        (folder / "v0-0-0.log").write_text("a task")
        (file,) = (await world.get(f"/jobs/{graph.job_id}/logs"))["logs"]
        ids = {str(executor.resource_id) for executor in world.cluster.task_executors}
        assert (file["name"], file["size"]) == ("v0-0-0.log", 6) and file["taskmanager-id"] in ids
        assert await world.get(f"/jobs/{graph.job_id}/logs/v0-0-0.log") == "a task"
        await world.get(f"/jobs/{graph.job_id}/logs/..%2F..%2Fme.log", 404)
        await world.get(f"/jobs/{JobId.random()}/logs", 404)

    scenario(body, (1, 1), logs=logs)


def test_a_thread_dump_shows_where_threads_are():
    async def body(world):
        resource_id = world.cluster.task_executors[0].resource_id
        for path in (f"/taskmanagers/{resource_id}/thread-dump", "/jobmanager/thread-dump"):
            threads = (await world.get(path))["threadInfos"]
            (main,) = [each for each in threads if each["threadName"] == "MainThread"]
            assert "File" in main["stringifiedThreadInfo"]

    scenario(body)


def test_secrets_are_hidden_wherever_settings_are_shown(monkeypatch):
    monkeypatch.setenv("DREY_TEST_PASSWORD", "hunter2")

    async def body(world):
        settings = {each["key"]: each["value"] for each in await world.get("/jobmanager/config")}
        assert settings["parallelism.default"] == "7" and settings["rest.port"] == "8081"
        variables = (await world.get("/jobmanager/environment"))["variables"]
        assert variables["DREY_TEST_PASSWORD"] == "******"

    scenario(body, settings={"parallelism.default": "7"})
