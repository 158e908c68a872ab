"""PassingStorage: the first decision and the first end stay."""

from engine.commit.decision import Decision
from engine.commit.result_record import JobResultRecord
from engine.dispatcher.passing_storage import PassingStorage
from engine.ids import JobId
from engine.jobmaster.job_commit import JobEnd
from tests.dispatcher.test_job_store import ended

JOB = JobId("a" * 32)


def test_the_first_decision_and_the_first_end_stay():
    storage = PassingStorage()
    assert storage.ended() is None
    first, second = Decision(JOB, 1, ()), Decision(JOB, 2, ())
    assert storage.decide(first) is storage.decide(second) is first
    job = ended("a")
    for status in ("FINISHED", "FAILED"):
        storage.record(JobEnd(JobResultRecord(JOB, "", status, 1, 0), job.overview, job.outcome, job.details))
    assert storage.ended().status == "FINISHED"
    assert not storage.takes_time and not storage.cluster
