"""What a TaskManager is told where it finds no leader."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from engine.entrypoint.leader_endpoint import ElectedLeaderFinder
from engine.errors import ResourceError
from ha.information import LeaderInformation


class Retrieval:
    trouble = ""

    def start(self, listener):
        """Do nothing."""

    def close(self):
        """Do nothing."""


def test_the_trouble_of_the_watch_is_why_no_leader_is_known():
    async def run():
        retrieval = Retrieval()
        finder = ElectedLeaderFinder(lambda: None, retrieval)
        with pytest.raises(ResourceError, match="knows no leading JobManager"):
            await finder.find()
        retrieval.trouble = "ZooKeeper's node /drey/c belongs to processes with another cluster secret"
        with pytest.raises(ResourceError, match="another cluster secret"):
            await finder.find()
        finder.notify_leader(LeaderInformation(7, uuid.uuid4(), "host:1"))
        await asyncio.sleep(0)
        assert (await finder.find()).epoch == 7

    asyncio.run(run())
