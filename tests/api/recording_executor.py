"""An executor that keeps the plans it is given and writes no rows; a target of its own for each test."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.api import executor as executors
from engine.api.environment import Environment
from engine.graph.plan import Sink


class RecordingExecutor:
    is_dry = False
    keeps_jobs = False
    is_in_process = False
    takes_said = False

    def __init__(self):
        self.plans = []
        self.released = []

    def release(self, configuration):
        self.released.append(configuration)

    def default_parallelism(self, configuration):
        return 2

    def execute(self, plan, configuration, kept=None):
        plan.validate()
        self.plans.append(plan)
        for sink in plan.sinks:
            operator = plan.node(sink).operator
            assert isinstance(operator, Sink)
            Path(operator.spec.path).mkdir()
        return SimpleNamespace(job_id="0" * 32, state="FINISHED", runtime_ms=1, vertices=(), bad_rows=0, notes=())


@pytest.fixture
def executor():
    """Register a RecordingExecutor as target "recording"."""
    recording = RecordingExecutor()
    executors.register_executor("recording", lambda: recording)
    yield recording
    executors._factories.pop("recording")
    executors._executors.pop("recording", None)


@pytest.fixture
def env(executor):
    with Environment(config={"parallelism.default": 2}, target="recording") as environment:
        yield environment
