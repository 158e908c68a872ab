"""A leader in one thread, to be killed anywhere: ``python -m tests.dispatcher.crash_leader FOLDER ACTION [SETTINGS]``.

SETTINGS are those of an object store, as JSON, with the prefix in which FOLDER/storage and FOLDER/history are instead.

    FOLDER/storage        what StoredJobs keeps       FOLDER/handles/<job id>     handles, each replaced in one step
    FOLDER/history        JobArchive                  FOLDER/acknowledged         one line for each answer to a client
    FOLDER/target/out     the output                  FOLDER/epoch                of the latest leader

    finish   submit the job and run it to its end          cancel   submit it, prepare it, cancel it
    recover  go on with what is stored, to the end

It does what Dispatcher, JobMaster and JobCommit do, in their order and with their code, without their loop.
"""

import json
import sys
from pathlib import Path

from engine.commit.staging import staging_path
from engine.dispatcher.job_archive import EndedJob, JobArchive
from engine.dispatcher.job_handle import StoredEnd
from engine.dispatcher.job_storage import StoredJobs
from engine.graph.deployment import StagedFile
from engine.graph.source_spec import SinkSpec
from engine.ids import JobId
from engine.jobmaster.job_commit import JobCommit
from engine.jobmaster.job_event import Led, Prepared
from engine.jobmaster.job_journal import NoJournal
from engine.storage.store_client import use_store_settings
from ha.interfaces import StaleEpochError, StoredState
from tests.dispatcher.stored import end_of
from tests.jobmaster.job_graphs import job_graph

JOB = JobId("a" * 32)
CONTENT = "1,2\n"


def close(journal):
    if not isinstance(journal, NoJournal):
        journal._place.close()


class FileHandles:
    """Each handle a file: "<version> <content>", replaced by a rename."""

    def __init__(self, folder):
        self.folder = folder / "handles"
        self.epoch_file = folder / "epoch"
        self.folder.mkdir(parents=True, exist_ok=True)

    @property
    def epoch(self):
        return int(self.epoch_file.read_text()) if self.epoch_file.exists() else 0

    def names(self):
        return tuple(sorted(path.name for path in self.folder.iterdir() if not path.name.startswith(".")))

    def read(self, name):
        try:
            version, _, content = (self.folder / name).read_bytes().partition(b" ")
        except FileNotFoundError:
            return None
        return StoredState(content, int(version))

    def _put(self, epoch, name, version, content):
        if epoch != self.epoch:
            raise StaleEpochError(str(epoch))
        temporary = self.folder / f".{name}"
        temporary.write_bytes(b"%d " % version + content)
        temporary.replace(self.folder / name)

    def create(self, epoch, name, content):
        if self.read(name) is not None:
            return False
        self._put(epoch, name, 0, content)
        return True

    def replace(self, epoch, name, content, version):
        now = self.read(name)
        if now is None or now.version != version:
            return False
        self._put(epoch, name, version + 1, content)
        return True

    def remove(self, epoch, name):
        if epoch != self.epoch:
            raise StaleEpochError(str(epoch))
        (self.folder / name).unlink(missing_ok=True)


class Leader:
    """One leadership, under the next epoch."""

    def __init__(self, folder, storage=None):
        self.folder = folder
        storage = storage or str(folder)
        self.handles = FileHandles(folder)
        self.epoch = self.handles.epoch + 1
        temporary = folder / ".epoch"
        temporary.write_text(str(self.epoch))
        temporary.replace(self.handles.epoch_file)
        self.jobs = StoredJobs(f"{storage}/storage", self.handles, self.epoch)
        self.jobs.open()
        self.archive = JobArchive(f"{storage}/history")
        target = folder / "target" / "out"
        # A graph is the same in every process.
        self.graph = job_graph([1], sinks={0: SinkSpec("csv", str(target))})
        self.graph = self.graph.__class__(JOB, "crash", self.graph.vertices, b"", {})
        self.commit = JobCommit(self.graph, self.epoch, lambda: True, self.jobs.of(JOB))
        self.staging = staging_path(target, JOB)

    def acknowledge(self, text):
        with (self.folder / "acknowledged").open("a") as file:
            file.write(f"{text}\n")

    # ---- what a client asks for ----

    def submit(self):
        if not self.jobs.put(self.graph):
            return None
        journal = self.jobs.new_journal(JOB, [Led(self.epoch, 0)])
        self.acknowledge("accepted")
        return journal

    def finish(self):
        journal = self.submit()
        self.prepare(journal, ())
        self.run()
        self.end("FINISHED")

    def cancel(self):
        journal = self.submit()
        self.prepare(journal, ())
        self.jobs.cancel(JOB)
        self.acknowledge("cancelling")
        self.end("CANCELED")

    # ---- what the next leader does ----

    def recover(self):
        for job_id in self.jobs.job_ids():
            found = self.jobs.load(job_id)
            if isinstance(found, StoredEnd):
                self.forget(found.job, found.journal)
                continue
            events = self.jobs.events(job_id, found.journal)
            journal = self.jobs.new_journal(job_id, events)
            self.jobs.take_over(found)
            if found.decision is not None:
                close(journal)
                self.commit.publish_again(found.decision)
                self.end("FINISHED")
            elif found.handle.is_cancelled:
                close(journal)
                self.end("CANCELED")
            else:
                self.prepare(journal, events)
                self.run()
                self.end("FINISHED")

    # ---- the way of a job ----

    def prepare(self, journal, events):
        staging = next((event.places for event in events if isinstance(event, Prepared)), None)
        if staging is None:
            prepared = Prepared(self.commit.prepare())
            close(journal)
            close(self.jobs.new_journal(JOB, (*events, prepared)))
        else:
            self.commit.adopt(staging)
            close(journal)

    def run(self):
        name = f"0-0-{self.epoch}.csv"
        (self.staging / name).write_text(CONTENT)
        self.commit.commit([StagedFile(0, 0, name, 1, len(CONTENT))])

    def end(self, status):
        end = end_of(self.graph, status, self.epoch)
        self.commit.record(end)
        if status != "FINISHED":
            self.commit.abort()
        self.forget(EndedJob(end.overview, end.outcome, end.details), None)

    def forget(self, job, journal):
        self.archive.write(job)
        self.jobs.clean(job.overview.job_id, journal)
        self.acknowledge(job.outcome.status)


def main():
    folder, action, settings = Path(sys.argv[1]), sys.argv[2], json.loads((*sys.argv, "{}")[3])
    (folder / "target").mkdir(exist_ok=True)
    storage = settings.pop("prefix", None)
    use_store_settings(settings)
    getattr(Leader(folder, storage), action)()


if __name__ == "__main__":
    main()
