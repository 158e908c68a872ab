"""What a TaskExecutor knows of jobs: last reports, and what goes on under the next leader."""

from engine.graph.deployment import TaskReport
from engine.ids import ExecutionAttemptId, JobId, JobVertexId
from engine.taskexecutor.job_table import JobTable


def attempts(count):
    return [ExecutionAttemptId.create(JobVertexId(0), index, 0) for index in range(count)]


def table(job_id, known):
    jobs = JobTable()
    for attempt in known:
        jobs.add(job_id, attempt)
    return jobs


def test_the_last_report_of_each_attempt_is_kept_until_its_job_is_forgotten():
    job_id, (first, second) = JobId.random(), attempts(2)
    jobs = table(job_id, [first, second])
    jobs.note(job_id, TaskReport(first, "RUNNING"))
    jobs.note(job_id, TaskReport(first, "FINISHED"))
    assert [report.state for report in jobs.reports(job_id, [first, second])] == ["FINISHED", "DEPLOYING"]
    assert jobs.forget(job_id) == (first, second)
    jobs.note(job_id, TaskReport(first, "FINISHED"))
    assert jobs.reports(job_id, [first]) == () and job_id not in jobs


def test_attempts_that_the_next_leader_does_not_name_go_and_those_that_run_are_cancelled():
    job_id = JobId.random()
    runs, ended, unnamed_runs, unnamed_ended = known = attempts(4)
    sorted_out = table(job_id, known).sorted_out(job_id, {runs, ended}, {runs, unnamed_runs})
    assert sorted_out.ended == (ended,)
    assert sorted_out.unnamed == (unnamed_runs, unnamed_ended)
    assert sorted_out.to_cancel == (unnamed_runs,)


def test_a_job_is_attached_by_the_leader_that_goes_on_with_it_or_a_later_one():
    job_id, jobs = JobId.random(), JobTable()
    jobs.attach(job_id, 3)
    assert [jobs.is_attached(job_id, epoch) for epoch in (2, 3, 4)] == [True, True, False]
    jobs.forget(job_id)
    assert not jobs.is_attached(job_id, 2)
