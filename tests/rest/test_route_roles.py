"""Every route has a row that says which role it needs, and every role may do that and nothing more."""

from __future__ import annotations

import asyncio
import re
from types import SimpleNamespace

import pytest

from engine.config.loader import configuration_from_texts
from engine.entrypoint.jobmanager import JobManager
from engine.entrypoint.places import Places
from engine.entrypoint.readiness import Readiness
from engine.gateways.messages import RequestJobOutcome, SubmitJob
from engine.graph.job_graph import USER_KEY
from engine.rest.route_roles import ROLES
from engine.rpc.credentials import AUTHORIZATION, Credentials
from engine.rpc.http_messages import Access
from engine.rpc.principal import Role
from engine.rpc.user_tokens import UserTokens, add_user, remove_user
from tests.jobmaster.job_graphs import job_graph
from tests.rest.rest_world import scenario


@pytest.fixture
def routes(tmp_path, monkeypatch):
    """All routes of a JobManager's process."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    Credentials.load_or_create(tmp_path / "cluster.secret")
    settings = {"rest.port": "0", "security.secret-file": str(tmp_path / "cluster.secret")}

    async def listed():
        daemon = JobManager(
            SimpleNamespace(
                configuration=configuration_from_texts(settings, "test"),
                places=Places(tmp_path, tmp_path, tmp_path, "tester", "host"),
                readiness=Readiness(None),
                log_file=None,
                log_folder=None,
                on_fatal=lambda error: pytest.fail(f"fatal: {error}"),
            )
        )
        try:
            return daemon._server.http.routes
        finally:
            await daemon._server.stop()
            daemon._blocking_work.shutdown()
            daemon._own_folder.close()

    return asyncio.run(listed())


def test_every_route_of_a_job_manager_has_a_row_and_every_row_a_route(routes):
    routes = [route for route in routes if route.access is not Access.ANYONE]
    keys = {(route.method, route.path.removeprefix("/v1")) for route in routes}
    assert keys == set(ROLES)
    for route in routes:
        assert route.role is ROLES[route.method, route.path.removeprefix("/v1")], "the server has what the table says"
        if route.path in ("/rpc", "/rpc/{name}"):
            assert route.role is None, "components are no users"
        elif route.access is Access.SECRET and route.role is not None:
            assert route.role >= Role.SUBMIT and route.method != "GET", "what changes something is more than to read"


TOKENS = ("read", "submit", "admin")


def with_users(body, tmp_path):
    """Run a scenario in a world with a user of each role, whose tokens it gets."""

    async def run(world):
        path = tmp_path / "users.tokens"
        tokens = {name: add_user(path, name, Role[name.upper()]) for name in TOKENS}
        world.server.users = UserTokens(path)

        async def ask(name, method, target, data=None, headers=()):
            sent = {AUTHORIZATION: f"Bearer {tokens.get(name, name)}", **dict(headers)}
            async with world.session.request(method, target, data=data, headers=sent) as response:
                return response.status, await response.text()

        await body(world, ask, path)

    scenario(run)


def test_a_role_opens_the_routes_of_its_rows_and_no_others(tmp_path):
    async def body(world, ask, path):
        for method, target in [key for key in ROLES if not key[1].startswith("/rpc") and "blobs" not in key[1]]:
            role = ROLES[method, target]
            place = re.sub(r"{(\w+)}", lambda found: "0" * (32 if found[1].endswith("_id") else 1), target)
            place += "?seconds=0.1" if target.endswith("/flame-graph") else ""
            for name in TOKENS:
                if (method, target, name) == ("DELETE", "/cluster", "admin"):
                    continue  # it is the last one
                # The answer to a GET of events has no end.
                status, text = await ask(name, "HEAD" if place == "/overview/events" else method, place)
                is_open = Role[name.upper()] >= role
                assert (status != 403) is is_open, (name, method, target, text)
                assert status != 401
        status, text = await ask("submit", "PATCH", "/taskmanagers/" + "f" * 32 + "?mode=drain")
        assert (status, "submit has the role submit: this needs the role admin" in text) == (403, True)
        assert (await ask("admin", "DELETE", "/cluster"))[0] == 200 and world.is_shut_down

    with_users(body, tmp_path)


def test_a_token_that_is_wrong_shortened_or_removed_opens_nothing(tmp_path):
    async def body(world, ask, path):
        good = add_user(path, "eve", Role.ADMIN)
        target = "/jobs/" + "0" * 32
        assert (await ask(good, "PATCH", target))[0] == 404
        for wrong in (good[:-1], good + "x", "", "eve", path.read_text().split()[2]):
            assert (await ask(wrong, "PATCH", target))[0] == 401, "the hash of a token is no token"
        assert remove_user(path, "eve")
        assert (await ask(good, "PATCH", target))[0] == 401, "from the next request on"
        path.write_text(path.read_text() + "mallory admin\n")
        assert (await ask("admin", "PATCH", target))[0] == 401, "a file that is not understood lets nobody in"
        path.chmod(0o644)
        assert (await ask("admin", "PATCH", target))[0] == 401

    with_users(body, tmp_path)


def test_a_job_belongs_to_the_user_of_the_token_and_only_that_one_and_admins_cancel_it(tmp_path):
    async def body(world, ask, path):
        import msgspec

        submitted = job_graph([1], name="of submit")
        for claimed in ("admin", "somebody else"):
            named = msgspec.structs.replace(submitted, configuration={USER_KEY: claimed})
            status, text = await ask("submit", "POST", "/jobs", msgspec.msgpack.encode(SubmitJob(named)))
            assert status == 400 and f"names the user {claimed} (job.user), and the token is that of submit" in text
        submitted = msgspec.structs.replace(submitted, configuration={USER_KEY: "submit"})
        data = msgspec.msgpack.encode(SubmitJob(submitted))
        status, text = await ask("submit", "POST", "/jobs", data)
        assert status == 202, text
        await world.cluster.rpc.connect("dispatcher", 7).ask(RequestJobOutcome(submitted.job_id), 30.0)
        (line,) = (await world.get("/jobs/overview?user=submit"))["jobs"]
        assert line["user"] == "submit" and line["jid"] == submitted.job_id.value
        assert (await world.get("/jobs/overview?user=else"))["jobs"] == []
        assert (await world.get(f"/jobs/{submitted.job_id}"))["user"] == "submit"
        other = add_user(path, "other", Role.SUBMIT)
        target = f"/jobs/{submitted.job_id}?mode=cancel"
        status, text = await ask(other, "PATCH", target)
        assert status == 403 and "belongs to submit" in text
        assert (await ask("submit", "PATCH", target))[0] == 409, "it has ended, which its owner is told"
        assert (await ask("admin", "PATCH", target))[0] == 409

    with_users(body, tmp_path)


def test_the_list_is_filtered_by_name_state_and_time():
    async def body(world):
        for name in ("Daily sales", "hourly"):
            await world.run(job_graph([1], name=name))

        async def names(query):
            return [each["name"] for each in (await world.get(f"/jobs/overview?{query}"))["jobs"]]

        assert await names("name=SALES") == ["Daily sales"]
        assert await names("state=finished,failed") == ["Daily sales", "hourly"]
        assert await names("state=RUNNING") == []
        ended = (await world.get("/jobs/overview"))["jobs"][1]["end-time"]
        assert "hourly" in await names(f"since={ended}")
        assert await names(f"since={ended + 1}") == []
        assert "is none of" in str(await world.get("/jobs/overview?state=SLEEPING", 400))

    scenario(body)


def test_the_folder_of_the_users_is_not_opened_to_others(tmp_path):
    add_user(tmp_path / "users.tokens", "ada", Role.READ)
    assert (tmp_path / "users.tokens").stat().st_mode & 0o077 == 0
