"""A log is sent part by part, and what a slow reader holds does not grow with the log."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest

from engine.insight.log_folder import LogFolder
from engine.rest.log_files import log_answer
from engine.rpc.http_messages import HttpRequest

SIZE = 3 << 20
READERS = 40


def request(query=None):
    return HttpRequest("GET", "/jobmanager/log", {}, query or {}, {})


@pytest.fixture
def read(tmp_path):
    (tmp_path / "me.log").write_bytes(bytes(range(256)) * (SIZE // 256))
    folder = LogFolder(tmp_path / "me.log")

    async def read(offset, limit):
        return folder.read("me.log", offset, limit)

    return read


@pytest.mark.parametrize(
    ("query", "begin", "end"),
    [
        ({}, 0, SIZE),
        ({"limit": "0"}, 0, 0),
        ({"limit": "10"}, 0, 10),
        ({"limit": "200001"}, 0, 200_001),
        ({"offset": "70000"}, 70_000, SIZE),
        ({"offset": "-70000"}, SIZE - 70_000, SIZE),
        ({"offset": "65536", "limit": "65536"}, 65_536, 131_072),
    ],
)
def test_a_log_comes_as_it_is_or_the_part_of_it_that_is_wanted(read, query, begin, end):
    async def body():
        answer = await log_answer(request(query), read)
        return b"".join([part async for part in answer.parts])

    assert asyncio.run(body()) == (bytes(range(256)) * (SIZE // 256))[begin:end]


def test_what_slow_readers_hold_does_not_grow_with_the_log(read):
    async def body():
        tracemalloc.start()
        try:
            parts = [aiter((await log_answer(request(), read)).parts) for _ in range(READERS)]
            for _ in range(4):
                for part in parts:
                    await anext(part)
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        for part in parts:
            await part.aclose()
        return held

    assert asyncio.run(body()) < READERS * (200 << 10)
