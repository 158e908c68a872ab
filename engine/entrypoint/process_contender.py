"""ProcessContender: the leaderships of one process, one after the other, and what it knows of the leader.

    epoch ─► components are made and started ─► the address is published ─► ... ─► revoke ─► they stop
    notify ─► the leader, for those that ask this process; nothing while it leads itself

A leadership ends by being cancelled, whatever it is doing then; the next one begins once the components of the one
before have stopped. Calls of the leader services may come in any thread, all else happens on the event loop.

Invariant: ``components`` is set only while this process leads, and after everything of it can be reached.

Held by: tests/cluster_model/test_cluster_schedules.py
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable

from engine.dispatcher.dispatcher import Dispatcher
from engine.dispatcher.leading_components import LeadingComponents
from engine.entrypoint.leader_endpoint import LeaderEndpoint
from engine.errors import FencedError
from ha.information import LeaderInformation
from ha.interfaces import LeaderElection

_log = logging.getLogger(__name__)


class ProcessContender:
    """A LeaderContender and LeaderRetrievalListener; made on the event loop.

    Args:
        endpoint: tells others which process leads.
        address_of_process: where this process is reached; asked once the servers have started.
        make_components: for an epoch of this process.
        on_ready: called when this process leads, or knows which one does.
        on_fatal: called with an error after which the process cannot go on.
        on_leading: called with the Dispatcher of a new leadership, before it is published.
    """

    def __init__(
        self,
        endpoint: LeaderEndpoint,
        address_of_process: Callable[[], str],
        make_components: Callable[[int], LeadingComponents],
        on_ready: Callable[[], None],
        on_fatal: Callable[[BaseException], None],
        on_leading: Callable[[Dispatcher], None] = lambda dispatcher: None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._endpoint = endpoint
        self._address_of_process = address_of_process
        self._make_components = make_components
        self._on_ready = on_ready
        self._on_fatal = on_fatal
        self._on_leading = on_leading
        self._election: LeaderElection | None = None
        #: components of the current leadership, once they can be reached; None: this process does not lead
        self.components: LeadingComponents | None = None
        #: number of times at which this process was made the leader
        self.election_count = 0
        self.is_stopping = False
        #: leaderships that have not ended, with the current one
        self._leaderships: set[asyncio.Task[None]] = set()
        self._leadership: asyncio.Task[None] | None = None

    def enter(self, election: LeaderElection) -> None:
        """Enter the election."""
        self._election = election
        election.start(self)

    @property
    def leader(self) -> LeaderInformation | None:
        """The leader as this process knows it."""
        return self._endpoint.leader

    def leader_elsewhere(self) -> str | None:
        """Return the address of another process that leads: "" without a leader, None when this one leads."""
        if self.components is not None:
            return None
        leader = self.leader
        return leader.address if leader is not None and leader.address != self._address_of_process() else ""

    async def leave(self) -> None:
        """Stop the leading components."""
        self._follow()
        if self._leaderships:
            await asyncio.wait(self._leaderships)

    # ---- LeaderContender and LeaderRetrievalListener: calls may come in any thread ----

    def grant_leadership(self, epoch: int, session: uuid.UUID) -> None:
        """Start the leading components under the epoch and say where they are."""
        self._loop.call_soon_threadsafe(self._lead, epoch, session)

    def revoke_leadership(self) -> None:
        """Stop the leading components at once."""
        self._loop.call_soon_threadsafe(self._follow)

    def handle_error(self, error: Exception) -> None:
        """Give the process up."""
        self._loop.call_soon_threadsafe(self._on_fatal, error)

    def notify_leader(self, information: LeaderInformation | None) -> None:
        """Record the leader; a standby is ready when it knows its address."""
        self._loop.call_soon_threadsafe(self._know, information)

    # ---- on the event loop ----

    def _know(self, information: LeaderInformation | None) -> None:
        if self.components is None and not self.is_stopping:
            self._endpoint.leader = information
            if information is not None:
                self._on_ready()

    def _lead(self, epoch: int, session: uuid.UUID) -> None:
        if not self.is_stopping:
            self.election_count += 1
            self._leadership = self._loop.create_task(self._lead_until_revoked(epoch, session))
            self._leaderships.add(self._leadership)
            self._leadership.add_done_callback(self._leaderships.discard)

    async def _lead_until_revoked(self, epoch: int, session: uuid.UUID) -> None:
        """One leadership: it ends by being cancelled, whatever it is doing then."""
        earlier = self._leaderships - {asyncio.current_task()}
        if earlier:  # its components are still stopping
            await asyncio.wait(earlier)
        election = self._election
        if election is None or not election.has_leadership(epoch):
            return
        try:
            await self._run_components(self._make_components(epoch), epoch, session, election)
        except FencedError:
            _log.info("leads no more (epoch %d), before it was ready", epoch)
        except Exception as error:
            self._on_fatal(error)

    async def _run_components(
        self, components: LeadingComponents, epoch: int, session: uuid.UUID, election: LeaderElection
    ) -> None:
        try:
            dispatcher = await components.start()
            self._on_leading(dispatcher)
            self.components = components
            information = LeaderInformation(epoch, session, self._address_of_process())
            self._endpoint.leader = information
            election.confirm(information)
            _log.info("leads at %s under epoch %d", information.address, epoch)
            self._on_ready()
            await self._loop.create_future()
        finally:
            await components.stop()

    def _follow(self) -> None:
        leadership, self._leadership = self._leadership, None
        components, self.components = self.components, None
        if components is not None:
            self._endpoint.leader = None
            _log.info("leads no more (epoch %d)", components.epoch)
        if leadership is not None:
            leadership.cancel()
