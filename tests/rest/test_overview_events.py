"""The overview live: what has changed is sent, by few questions, to few listeners, and nothing stays when they go."""

from __future__ import annotations

import asyncio
import dataclasses
import json

from engine.errors import ResourceError
from engine.rest import overview_feed
from engine.rest.overview_feed import LISTENERS_MAX, OverviewFeed
from tests.jobmaster.job_graphs import job_graph
from tests.rest.rest_world import scenario, until


async def next_event(response):
    """Return the parts of the next event."""
    async for line in response.content:
        if line.startswith(b"data: "):
            return json.loads(line.removeprefix(b"data: "))
    raise AssertionError("the stream ended")


def test_a_listener_hears_of_a_new_job_and_of_nothing_that_stayed(monkeypatch):
    monkeypatch.setattr(overview_feed, "_PAUSE_S", 0.05)
    monkeypatch.setattr(overview_feed, "_FRESH_S", 0.0)

    async def body(world):
        async with world.session.get("/overview/events?name=second") as response:
            assert response.content_type == "text/event-stream"
            assert set(await next_event(response)) == {"cards", "jobs", "workers", "managers"}
            await world.run(job_graph([1], name="first"))
            await world.run(job_graph([1], name="second"))

            async def has_heard():
                event = await next_event(response)
                assert "first" not in event.get("jobs", "")
                return "second" in event.get("jobs", "") and "FINISHED" in event["jobs"]

            await until(has_heard)
        assert "none of" in (await world.get("/overview/events?state=lost", 400))["errors"][0]
        async with world.session.head("/overview/events") as response:
            assert (response.status, response.content_type) == (200, "text/event-stream")

    scenario(body)


def test_nothing_stays_when_browsers_go_and_as_many_listen_as_may(monkeypatch):
    monkeypatch.setattr(overview_feed, "_PAUSE_S", 0.05)
    feeds = []
    begun = OverviewFeed.__init__
    monkeypatch.setattr(OverviewFeed, "__init__", lambda self, services: (feeds.append(self), begun(self, services))[1])

    async def body(world):
        before = len(asyncio.all_tasks())
        listening = [await world.session.get("/overview/events") for _ in range(LISTENERS_MAX)]
        (feed,) = feeds
        assert feed.listener_count == LISTENERS_MAX
        assert "listen already" in (await world.get("/overview/events", 503))["errors"][0]
        for response in listening:
            response.close()
        await until(lambda: _is(feed.listener_count == 0))
        await until(lambda: _is(len(asyncio.all_tasks()) <= before + 1))
        async with world.session.get("/overview/events") as response:
            assert await next_event(response)

    async def _is(condition):
        return condition

    scenario(body)


def test_all_listeners_share_one_question_and_a_stream_ends_with_the_leadership(monkeypatch):
    monkeypatch.setattr(overview_feed, "_PAUSE_S", 0.01)
    monkeypatch.setattr(overview_feed, "_FRESH_S", 60.0)

    async def body(world):
        asked, leads = [], True

        def dispatcher():
            asked.append(1)
            if not leads:
                raise ResourceError("this JobManager does not lead")
            return world.services.dispatcher()

        feed = OverviewFeed(dataclasses.replace(world.services, dispatcher=dispatcher))
        await asyncio.gather(*(feed.snapshot() for _ in range(20)))
        assert len(asked) == 1
        response = await feed.events(lambda snapshot: {"jobs": str(snapshot.now_ms)})
        assert response.parts is not None and feed.listener_count == 1
        leads = False
        feed._known = None
        assert [part async for part in response.parts] == []
        await response.parts.aclose()
        await response.parts.aclose()
        assert feed.listener_count == 0

    scenario(body)


def test_a_stream_without_news_shows_that_it_is_there_and_ends_in_time(monkeypatch):
    monkeypatch.setattr(overview_feed, "_PAUSE_S", 0.01)
    monkeypatch.setattr(overview_feed, "_SILENCE_S", 0.05)
    monkeypatch.setattr(overview_feed, "_LIFE_S", 0.5)

    async def body(world):
        response = await OverviewFeed(world.services).events(lambda _: {"jobs": "the same"})
        parts = [part async for part in response.parts]
        await response.parts.aclose()
        assert parts[0] == b'data: {"jobs": "the same"}\n\n'
        assert len(parts) > 1 and set(parts[1:]) == {b": still here\n\n"}

    scenario(body)
