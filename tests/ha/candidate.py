"""A process that wants to lead: ``python -m tests.ha.candidate HOSTS CLUSTER NAME`` says what happens to it.

``granted EPOCH``, ``revoked``, ``failed``; ``acted EPOCH`` every few milliseconds in which it may act.
"""

import sys
import time

from ha.information import LeaderInformation
from ha.services import create_ha_services
from ha.zookeeper_settings import ZooKeeperSettings

SECRET = b"a secret for tests"
#: long enough for a loaded machine to keep it, short enough to wait for its end
SESSION_S = 3.0


def settings_of(hosts, cluster, **changes):
    return ZooKeeperSettings(hosts, SECRET, cluster_id=cluster, **({"session_timeout_s": SESSION_S} | changes))


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def say(text, at_s=None):
    sys.stdout.write(f"{at_s or now():.3f} {text}\n")
    sys.stdout.flush()


class Candidate:
    def __init__(self, name, election):
        self.name, self.election, self.epoch = name, election, 0

    def grant_leadership(self, epoch, session):
        self.epoch = epoch
        say(f"granted {epoch}")
        self.election.confirm(LeaderInformation(epoch, session, self.name))

    def revoke_leadership(self):
        say("revoked")

    def handle_error(self, error):
        say(f"failed {error}")


def main():
    hosts, cluster, name = sys.argv[1:]
    election = create_ha_services("ZOOKEEPER", zookeeper=settings_of(hosts, cluster)).election()
    candidate = Candidate(name, election)
    election.start(candidate)
    while True:
        at_s = now()  # before the question: the process may be stopped after any line
        if election.has_leadership(candidate.epoch):
            say(f"acted {candidate.epoch}", at_s)
        time.sleep(0.01)


if __name__ == "__main__":
    main()
