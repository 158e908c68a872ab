"""The page of a job: who may cancel it there, the end of a log on it, and what it says of a job that is cancelled."""

from __future__ import annotations

import msgspec
import pytest

from engine.graph.job_graph import USER_KEY
from engine.insight.log_folder import LogFolder
from engine.profile.cancel_script import CANCEL_HASH, CANCEL_SCRIPT
from engine.rpc.credentials import AUTHORIZATION
from engine.rpc.principal import Role
from engine.rpc.user_tokens import UserTokens, add_user
from tests.jobmaster.job_graphs import job_graph
from tests.rest.browser import browser_page, needs_browser
from tests.rest.rest_world import scenario, until


@pytest.fixture
def logs(tmp_path):
    (tmp_path / "me.log").write_text("begin")
    return LogFolder(tmp_path / "me.log")


async def going_on(world):
    """Submit a job for which there is no slot, and return its path."""
    graph = job_graph([2])
    graph = msgspec.structs.replace(graph, configuration={USER_KEY: "submits"})
    await world.submit(graph)
    return f"/jobs/{graph.job_id}"


async def page_of(world, path, token=""):
    headers = {AUTHORIZATION: f"Bearer {token}"} if token else {}
    async with world.session.get(f"{path}/page", headers=headers) as response:
        assert response.status == 200
        return await response.text(), response.headers["Content-Security-Policy"]


@pytest.mark.parametrize("readers_cancel", [False, True])
def test_the_button_is_there_for_those_who_may_cancel(tmp_path, readers_cancel):
    async def body(world):
        users = tmp_path / "users.tokens"
        roles = {"reads": Role.READ, "submits": Role.SUBMIT, "leads": Role.ADMIN}
        tokens = {name: add_user(users, name, role) for name, role in roles.items()}
        world.server.users = UserTokens(users)
        path = await going_on(world)
        found = {name: await page_of(world, path, token) for name, token in {**tokens, "": ""}.items()}
        allowed = {"leads", "submits", ""} if readers_cancel else {"leads", "submits"}
        for name, (page, policy) in found.items():
            assert ('id="cancel"' in page) is (name in allowed), name
            assert ("<script>" in page) is (name in allowed)
            assert (CANCEL_HASH in policy) is (name in allowed) and "unsafe-inline'; base" in policy
            assert ("flink-run job cancel" in page) is (name not in allowed)

    scenario(body, (), settings={"web.cancel.enable": str(readers_cancel).lower()})


def test_the_end_of_a_log_is_on_the_page_and_no_other_file(logs):
    async def body(world):
        graph = job_graph([1])
        await world.run(graph)
        path = f"/jobs/{graph.job_id}/page"
        folder = logs.main.parent / "jobs" / str(graph.job_id)
        folder.mkdir(parents=True)
        (folder / "v0-0-0.log").write_text("first line\n" + "x" * 20_000 + "\n<the> last line")
        shown = await world.get(f"{path}?log=v0-0-0.log")
        assert "&lt;the&gt; last line" in shown and "first line" not in shown
        assert f'href="/jobs/{graph.job_id}/logs/v0-0-0.log"' in shown
        assert "no TaskManager has the log file v9-0-0.log" in await world.get(f"{path}?log=v9-0-0.log")
        for wrong in ("../me.log", "me.log", "v0-0-0.log/..", "%00"):
            await world.get(f"{path}?log={wrong}", 400)
        assert "log=v0-0-0.log#log" in await world.get(f"{path}?vertex=0")

    scenario(body, (1,), logs=logs)


@needs_browser
def test_a_job_is_cancelled_by_a_key_on_its_page_which_then_says_so():
    async def body(world):
        path = await going_on(world)
        world.server._readers_cancel = True
        async with browser_page() as page:
            address = f"http://{world.server.address}{path}/page?refresh=off"
            await page.go(address)
            await page.value("window.confirm = () => true; document.getElementById('cancel').focus()")
            await page.value("document.activeElement.click()")
            await page.until("!document.getElementById('cancel')")

            async def is_over():  # at the very moment of its end nothing answers for the job
                await page.go(address)
                return await page.value("!!document.querySelector('h1 .CANCELED')")

            await until(is_over)
            assert "cancelled" in (await page.value("document.querySelector('.found').innerText")).lower()

    scenario(body, (), settings={"web.cancel.enable": "true"})


def test_the_script_makes_no_html():
    assert "innerHTML" not in CANCEL_SCRIPT and "eval" not in CANCEL_SCRIPT
