"""What holds in a model cluster at each step, whatever happens: see ``world``."""

from __future__ import annotations

from engine.clock import SystemClock
from engine.errors import EngineError, ResourceError
from engine.jobmaster.execution_state import ExecutionState
from engine.jobmaster.job_facts import JobFacts
from engine.jobmaster.job_status import JobStatus
from engine.jobmaster.journal_files import read_journal
from engine.jobmaster.restart_strategy import FixedDelayRestart
from tests.cluster_model.quorum_model import parent_of

_JOBS = "/drey/default/jobs/"


class Invariants:
    """Checks of a World."""

    def __init__(self):
        #: errors that no cluster may meet
        self.faults = []
        #: statuses that clients were told, by job
        self.ends = {}
        self.submitted, self.read = [], {}
        #: epoch -> session that has written under it
        self.writers = {}
        self.last_epoch = 0
        self.writes = 0

    # ---- at each write ----

    def check_write(self, session_id, changes, tree):
        """A handle is changed by the one leader there is, under an epoch of its own."""
        if not any(each.kind != "check" and each.path.startswith(_JOBS) for each in changes):
            return
        self.writes += 1
        latches = [each.path for each in changes if each.kind == "check" and each.version == 0]
        self.hold(latches, f"a write that no latch fences: {changes}")
        if not latches:
            return
        (latch,) = latches
        epoch = tree[latch].czxid
        self.hold(tree[latch].owner == session_id, "a write behind the latch of another session")
        self.hold(self.writers.setdefault(epoch, session_id) == session_id, f"two sessions write under epoch {epoch}")
        self.hold(epoch >= self.last_epoch, f"a write under epoch {epoch} after one under {self.last_epoch}")
        line = sorted((path[-10:], path) for path in tree if path != latch and parent_of(path) == parent_of(latch))
        self.hold(not line or line[0][0] > latch[-10:], f"a write of one that is not the first in line: {latch}")
        self.last_epoch = max(self.last_epoch, epoch)

    def hold(self, is_so, why):
        if not is_so:
            self.faults.append(AssertionError(why))

    # ---- at each leadership ----

    def check_leaders(self):
        """One process leads at a time."""
        leading = [
            each.host
            for each in self.job_managers.values()
            if not each.is_dead and each.election is not None and each.election.has_leadership(each.election._epoch)
        ]
        self.hold(len(leading) < 2, f"{leading} lead at the same time")

    def check_fatal(self, process, error):
        """A process gives up for want of its quorum or its storage alone."""
        if not isinstance(error, (ConnectionError, ResourceError, OSError)):
            error.add_note(f"in {process.name}")
            self.faults.append(error)

    # ---- at the death of a leader ----

    def check_journals(self, process):
        """What a leader knew is what the next one reads."""
        for job_master in process.job_masters:
            journal, facts = job_master._journal, job_master.state.facts
            if not getattr(journal, "is_written", False) or journal._is_given_up or journal._is_closed:
                continue
            try:
                events = read_journal(journal._path).events
            except (OSError, EngineError):
                continue  # it was ended, or removed with its job
            if len(events) < journal._appended:
                continue
            rebuilt = JobFacts.rebuild(
                facts.graph.job_graph, lambda: FixedDelayRestart(10_000, 0.01), SystemClock(), events
            )
            known, found = finished(facts), finished(rebuilt)
            is_quiet = not facts.failover.subtasks
            self.hold(found == known if is_quiet else found <= known | found, f"journal: {found}, known: {known}")
            is_cancelling = job_master.status is JobStatus.CANCELLING
            self.hold(rebuilt.is_cancelling or not is_cancelling, "the journal does not say that the job is cancelled")
            self.hold(rebuilt.staging == facts.staging, "the journal has other staging")

    # ---- the end ----

    def note_end(self, overview):
        """No job ends twice in two ways."""
        status = self.ends.setdefault(overview.job_id, overview.status)
        self.hold(status == overview.status, f"job {overview.job_id} has ended {status}, and {overview.status}")

    def left(self):
        """Return what is left of jobs beside their history."""
        stored = [path for path in self.store.files if "/jobs/" in path or "/results/" in path]
        return [*stored, *(path for path in self.quorum.tree if path.startswith(_JOBS)), *self.outputs.staged]

    def check_end(self):
        """Everything has come to the end that it was to come to."""
        for client in self.clients:
            job_id = client.graph.job_id
            if client.outcome is None:
                continue
            status = client.outcome.status
            self.hold(
                self.ends.get(job_id) == status, f"{client.name} was told {status}, it is {self.ends.get(job_id)}"
            )
            output = next(iter(client.graph.vertices[-1].chain[-1:])).operator.spec.path
            is_published = output in self.outputs.published
            self.hold(is_published == (status == "FINISHED"), f"{client.name}: {status}, published: {is_published}")
            self.hold(
                status != "CANCELED" or client.cancel_after_s is not None,
                f"{client.name} was cancelled without a call that asked for it",
            )
            may_fail = self.bug_rate or self.settings.has_store_faults or self.settings.has_disk_faults
            self.hold(status != "FAILED" or may_fail, f"{client.name} has failed: {client.outcome.failure}")
        if not self.settings.has_losses and not self.settings.has_store_faults and not self.failure_rate:
            for subtask, attempts in self.attempts().items():
                self.hold(len(attempts) == 1, f"{subtask} has run {len(attempts)} times")
        if self.faults:
            raise self.faults[0]

    def attempts(self):
        """Return the attempts that were ever begun, by subtask."""
        begun = {}
        for descriptor in self.submitted:
            attempt = descriptor.attempt
            begun.setdefault((descriptor.job_id, attempt.vertex.index, attempt.subtask_index), set()).add(attempt)
        return begun

    def told(self):
        """Return how far clients are, for the error of a run that hangs."""
        states = [(each.name, each.is_accepted, each.outcome and each.outcome.status) for each in self.clients]
        leading = [each.host for each in self.job_managers.values() if each.contender.components is not None]
        return f"{states}, left: {self.left()}, leading: {leading}"


def finished(facts):
    """Return the attempts that have finished."""
    return {vertex.current.attempt for vertex in facts.graph if vertex.current.state is ExecutionState.FINISHED}
