"""A storage folder and handles that leaders come and go over."""

from engine.commit.decision import Decision
from engine.commit.result_record import JobResultRecord
from engine.dispatcher.job_storage import StoredJobs
from engine.gateways.job_details import JobDetails
from engine.gateways.messages import JobOutcome, JobOverview
from engine.jobmaster.job_commit import JobEnd
from ha.interfaces import StateUnavailableError
from ha.memory_state import MemoryStateStore
from tests.folders import files_below


class Handles(MemoryStateStore):
    """Of which one epoch is granted, and which may not answer."""

    def __init__(self):
        self.epoch = 1
        #: calls that do not answer; ``lost``: they are carried out all the same
        self.silent = 0
        self.is_lost = False
        super().__init__(lambda epoch: epoch == self.epoch)

    def _answer(self, call, *arguments):
        if not self.silent:
            return call(*arguments)
        self.silent -= 1
        if self.is_lost:
            call(*arguments)
        raise StateUnavailableError("it does not answer")

    def names(self):
        return self._answer(super().names)

    def read(self, name):
        return self._answer(super().read, name)

    def create(self, epoch, name, content):
        return self._answer(super().create, epoch, name, content)

    def replace(self, epoch, name, content, version):
        return self._answer(super().replace, epoch, name, content, version)

    def remove(self, epoch, name):
        return self._answer(super().remove, epoch, name)


class World:
    """What leaders share."""

    def __init__(self, folder):
        self.folder = folder
        self.handles = Handles()

    def leader(self):
        """Return the jobs of the next leader; those before are refused from now on."""
        self.handles.epoch += 1
        epoch = self.handles.epoch
        jobs = StoredJobs(str(self.folder), self.handles, epoch, lambda: self.handles.epoch == epoch)
        jobs.open()
        return jobs

    def files(self):
        """Return the names of all files, but for the storage's own."""
        paths = (path.relative_to(self.folder) for path in files_below(self.folder))
        return [str(path) for path in paths if path.name != "identity"]


def end_of(graph, status="FINISHED", epoch=1):
    job_id, name = graph.job_id, graph.name
    return JobEnd(
        JobResultRecord(job_id, name, status, epoch, 5),
        JobOverview(job_id, name, status, 1, 6),
        JobOutcome(job_id, name, status, 5, ()),
        JobDetails(job_id, name, status, 1, 6, {status: 6}, ()),
    )


def decision_of(graph, epoch):
    return Decision(graph.job_id, epoch, ())
