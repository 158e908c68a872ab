"""A contender of this process and the contents that it may change; one for each kind of services."""

import threading

from ha.information import LeaderInformation
from ha.services import create_ha_services
from tests.ha.quorum import WAIT_S


class Leading:
    """Leads, or wants to."""

    def __init__(self, services, name="here"):
        self.services, self.name = services, name
        self.epoch = 0
        self.calls, self.errors = [], []
        self.granted = threading.Event()
        self.revoked = threading.Event()
        self.election = services.election()
        self.store = services.state_store()

    def start(self):
        self.election.start(self)
        return self

    def lead(self):
        """Return when it leads."""
        self.start()
        assert self.granted.wait(WAIT_S), self.errors
        return self

    def grant_leadership(self, epoch, session):
        self.epoch = epoch
        self.calls.append(epoch)
        self.election.confirm(LeaderInformation(epoch, session, self.name))
        self.granted.set()

    def revoke_leadership(self):
        self.calls.append("revoked")
        self.revoked.set()

    def handle_error(self, error):
        self.errors.append(error)

    def close(self):
        self.election.close()


def embedded():
    return create_ha_services("embedded")


def standalone():
    return create_ha_services("NONE", "host:1", 7)


def zookeeper(settings):
    return create_ha_services("ZOOKEEPER", zookeeper=settings)
