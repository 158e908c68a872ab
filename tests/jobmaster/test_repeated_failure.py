"""A job that fails in the same way wherever it runs is given up; clients hear of each attempt."""

import asyncio

import pytest

from engine.client.job_listener import ProgressTeller, SilentListener
from engine.config.loader import configuration_from_texts
from engine.errors import ResourceError, SpillError
from engine.gateways.job_queue import WaitingJob, WaitingReason
from engine.gateways.messages import JobProgress, JobRestart, RequestJobOutcome, RequestJobProgress, SubmitJob
from engine.graph.deployment import FailureInfo
from engine.ids import JobId, ResourceId
from engine.jobmaster.job_master_settings import JobMasterSettings, job_master_settings
from engine.jobmaster.repeated_failure import ATTEMPTS_MIN, RepeatedFailure
from engine.jobmaster.restart_strategy import ExponentialDelayRestart
from engine.resourcemanager.resource_manager import RESOURCE_MANAGER_ADDRESS
from tests.dispatcher.test_cluster_components import Cluster
from tests.jobmaster.job_graphs import job_graph

HERE, THERE = ResourceId.random(), ResourceId.random()
WAIT_S = 60.0


def spill_failure(number=1, type_name="SpillError"):
    return FailureInfo(type_name, f"/tmp/drey-spill-{number}-{number}0: No such file or directory", retryable=True)


class Job:
    """Attempts of a job, ten seconds apart, on one TaskExecutor or both."""

    def __init__(self, give_up_s=30.0):
        self.repeated = RepeatedFailure(give_up_s)
        self.now_s = 0.0

    def fails(self, failure, places=(HERE,), used=(HERE,), finished=0):
        for place in places:
            self.repeated.failed(failure, place)
        self.now_s += 10
        return self.repeated.before_restart(failure, set(used), finished, self.now_s)


def test_the_same_cause_everywhere_ends_the_job_and_numbers_in_it_do_not_matter():
    job = Job()
    verdicts = [job.fails(spill_failure(number)) for number in range(4)]
    assert verdicts[:-1] == [None] * 3
    assert not verdicts[-1].retryable
    assert "No such file or directory (given up: the same cause in 4 attempts within 30 s" in verdicts[-1].message


def test_two_attempts_are_too_few_however_long_they_take():
    job = Job(5.0)
    verdicts = [job.fails(spill_failure()) for _ in range(ATTEMPTS_MIN)]
    assert verdicts[:-1] == [None] * (ATTEMPTS_MIN - 1) and verdicts[-1] is not None


@pytest.mark.parametrize("type_name", ["DiskFullError", "MachineLimitError"])
def test_a_full_disk_or_machine_is_one_cause_whatever_is_wanted_of_it(type_name):
    texts = [
        "no room for 9338864 bytes of v1.0@v1-2-0-f992e40270c0a394.shuffle.data in /tmp/a (at most 0 free)",
        "no room for 64 bytes in /tmp/a (0 free) for v1.0@v1-2-5-d7e73323d5e77e90.shuffle.data",
        "no room for 4096 bytes of sort-1 in /tmp/b (at most 12 free)",
        "no room for 4097 bytes of sort-2 in /tmp/b (at most 0 free)",
    ]
    job = Job()
    verdicts = [job.fails(FailureInfo(type_name, text, retryable=True)) for text in texts]
    assert verdicts[:-1] == [None] * 3 and verdicts[-1].message.startswith(texts[-1])


def test_a_cause_that_repeats_everywhere_says_when_it_would_be_given_up():
    job = Job()
    lefts = []
    for _ in range(3):
        job.fails(spill_failure())
        lefts.append(job.repeated.left_s(job.now_s))
    assert lefts == [None, 20.0, 10.0]
    job.fails(FailureInfo("ResourceError", "no memory", retryable=True))
    assert job.repeated.left_s(job.now_s) is None
    elsewhere = Job()
    for _ in range(3):
        elsewhere.fails(spill_failure(), used=(HERE, THERE))
    assert elsewhere.repeated.left_s(elsewhere.now_s) is None


@pytest.mark.parametrize(
    "change",
    [
        {"used": (HERE, THERE)},
        {"failure": spill_failure(type_name="PartitionConnectionError")},
        {"places": ()},
    ],
    ids=["not on every TaskManager", "a consequence of another failure", "nobody has reported it"],
)
def test_what_may_help_elsewhere_or_later_is_tried_again_for_ever(change):
    job = Job()
    assert [job.fails(**{"failure": spill_failure(), **change}) for _ in range(50)] == [None] * 50


def test_whoever_gets_on_or_fails_otherwise_begins_anew():
    getting_on = Job()
    assert [getting_on.fails(spill_failure(), finished=number) for number in range(50)] == [None] * 50
    other = Job()
    failures = [spill_failure(), FailureInfo("ResourceError", "no memory", retryable=True)]
    assert [other.fails(failures[number % 2]) for number in range(50)] == [None] * 50


def test_some_progress_delays_the_end_by_few_attempts_and_no_pauses():
    job = Job()
    verdicts = [job.fails(spill_failure(), finished=finished) for finished in (0, 0, 1, 1, 2)]
    assert verdicts == [None] * 5 and job.repeated.left_s(job.now_s) == 0
    assert job.fails(spill_failure(), finished=2) is None and job.repeated.left_s(job.now_s) == 0
    verdict = job.fails(spill_failure(), finished=2)
    assert "the same cause in 7 attempts within 1 min on its TaskManager, and nothing was finished in the last 3" in (
        verdict.message
    )


def test_a_time_of_zero_never_gives_up_and_a_short_trouble_is_waited_for():
    assert [Job(0).fails(spill_failure()) for _ in range(50)] == [None] * 50
    assert [Job(1000).fails(spill_failure()) for _ in range(50)] == [None] * 50


@pytest.mark.parametrize(
    ("texts", "give_up_s"),
    [
        ({}, 30.0),
        ({"restart-strategy.give-up-after": "5 s"}, 5.0),
        ({"restart-strategy.type": "fixed-delay"}, 0.0),
        ({"restart-strategy.exponential-delay.attempts-before-reset-backoff": "9"}, 0.0),
        ({"restart-strategy.type": "failure-rate"}, 30.0),
    ],
)
def test_only_a_strategy_without_end_gives_up(texts, give_up_s):
    settings = job_master_settings(configuration_from_texts(texts), RESOURCE_MANAGER_ADDRESS, "exponential-delay")
    assert settings.give_up_s(job_graph([1], [], ["map"])) == give_up_s


class RestartingCluster(Cluster):
    def settings(self):
        return JobMasterSettings(
            WAIT_S,
            self.heartbeat_s,
            4 * self.heartbeat_s,
            RESOURCE_MANAGER_ADDRESS,
            restart_strategy=lambda _: ExponentialDelayRestart(0.02, 0.02, 1.1, WAIT_S),
            give_up_s=lambda _: 0.1,
        )


def test_a_job_tries_every_task_manager_and_ends_with_its_cause():
    async def run():
        async with RestartingCluster([1, 1]) as cluster:

            def body(task):
                raise SpillError("the folder 4711 is not there")

            for resources in cluster.resources:
                resources.bodies["map"] = body
            outcome = await cluster.run(job_graph([1], [], ["map"]))
            assert outcome.status == "FAILED"
            assert outcome.failure.message.startswith("the folder 4711 is not there (given up")
            assert all(resources.descriptors for resources in cluster.resources)
            assert cluster.faults == []

    asyncio.run(asyncio.wait_for(run(), 2 * WAIT_S))


def test_a_client_is_told_of_each_attempt_and_its_cause():
    async def run():
        async with RestartingCluster([1]) as cluster:
            asked = asyncio.Event()
            loop = asyncio.get_running_loop()

            def body(task):
                number = task.descriptor.attempt.attempt_number
                if number < 2:
                    raise ResourceError(f"cause {number}")
                loop.call_soon_threadsafe(asked.set)

            cluster.resources[0].bodies["map"] = body
            graph = job_graph([1], [], ["map"])
            await cluster.gateway.ask(SubmitJob(graph))
            await asked.wait()
            progress = await cluster.gateway.ask(RequestJobProgress(graph.job_id))
            assert [(each.number, each.cause) for each in progress.restarts] == [
                (1, "ResourceError: cause 0"),
                (2, "ResourceError: cause 1"),
            ]
            await cluster.gateway.ask(RequestJobOutcome(graph.job_id), None)

    asyncio.run(asyncio.wait_for(run(), 2 * WAIT_S))


def test_a_listener_is_told_of_a_restart_once(caplog):
    tell = ProgressTeller(SilentListener())
    restarts = tuple(JobRestart(number, f"cause {number}", 1500) for number in (1, 2))
    for count in (1, 2, 2):
        tell(JobProgress(JobId.random(), "job", "RUNNING", 1, (), restarts=restarts[:count]))
    assert caplog.messages == [
        f"Attempt {number} failed, the next one begins in 1.5 s: cause {number}" for number in (1, 2)
    ]


def test_a_listener_is_told_once_of_a_storage_that_does_not_answer(caplog):
    tell = ProgressTeller(SilentListener())
    for trouble in ("", "/a: full", "/b: full", "", "/a: full"):
        tell(JobProgress(JobId.random(), "job", "FAILING", 1, (), trouble=trouble))
    assert caplog.messages == ["The job waits for its storage: /a: full"] * 2


def test_a_listener_is_told_of_a_long_wait_for_slots_and_again_when_something_changes(caplog):
    tell = ProgressTeller(SilentListener())
    none, others = (WaitingJob(1, 1, 2, total, WaitingReason.CLUSTER) for total in (0, 1))
    times = [(0, none), (4900, none), (5000, none), (9000, none), (9100, others), (9200, None), (9300, none)]
    for runtime_ms, waiting in times:
        tell(JobProgress(JobId.random(), "job", "RUNNING", runtime_ms, (), waiting=waiting))
    assert caplog.messages == [
        f"Waiting for slots: place 1 of 1 in the queue: 2 slots needed, the cluster has {count}" for count in (0, 1)
    ]
