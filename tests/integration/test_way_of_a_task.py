"""From a plan to an operator: ExecutionVertex, descriptor, Task, BatchTask, driver and chain of one attempt belong
together, for each attempt of a job."""

from collections import defaultdict

import pyarrow as pa
import pytest

from engine import col, count
from engine.jobmaster import job_scheduling
from engine.operators import batch_task
from engine.taskexecutor import task, task_resources


@pytest.fixture
def trace(monkeypatch):
    """What was made for each attempt: lists of (kind, object), in order."""
    made = defaultdict(list)

    def note(module, name, kind, attempt_of):
        original = getattr(module, name)

        def noting(*arguments, **named):
            result = original(*arguments, **named)
            made[str(attempt_of(arguments, result))].append((kind, result))
            return result

        monkeypatch.setattr(module, name, noting)

    build = job_scheduling.build_descriptor

    def describe(vertex, *rest):
        descriptor = build(vertex, *rest)
        made[str(vertex.current.attempt)] += [("ExecutionVertex", vertex), ("TaskDeploymentDescriptor", descriptor)]
        return descriptor

    monkeypatch.setattr(job_scheduling, "build_descriptor", describe)
    run = task.Task._invoke

    def invoke(self):
        made[str(self.descriptor.attempt)].append(("Task", self))
        run(self)

    monkeypatch.setattr(task.Task, "_invoke", invoke)
    note(task_resources, "BatchTask", "BatchTask", lambda arguments, _: arguments[0].attempt)
    open_chain = batch_task.BatchTask._open_chain

    def open_and_note(self):
        open_chain(self)
        attempt = made[str(self._descriptor.attempt)]
        attempt.append(("Driver", self._driver))
        attempt += [("operator", operator) for operator in self._operators]

    monkeypatch.setattr(batch_task.BatchTask, "_open_chain", open_and_note)
    return made


@pytest.mark.quick
def test_each_attempt_goes_from_its_vertex_through_six_objects_to_its_operators(environment, trace, tmp_path):
    rows = environment.from_arrow(pa.table({"k": [1, 2, 3] * 100, "v": list(range(300))}))
    plan = rows.filter(col("v") >= 10).shuffle().group_by("k").agg(n=count()).filter(col("n") > 0)
    plan.write_parquet(tmp_path / "out")
    result = environment.execute("trace")
    assert sum(len(vertex.subtasks) for vertex in result.vertices) == len(trace)
    for made in trace.values():
        kinds = [kind for kind, _ in made]
        assert kinds[:5] == ["ExecutionVertex", "TaskDeploymentDescriptor", "Task", "BatchTask", "Driver"]
        vertex, descriptor, running, invokable, driver = (thing for _, thing in made[:5])
        operators = [thing for _, thing in made[5:]]
        assert running.descriptor == descriptor, "what the JobMaster described is what the TaskExecutor runs"
        assert (vertex.job_vertex.name, vertex.subtask_index) == (
            running.descriptor.vertex_name,
            descriptor.subtask_index,
        )
        assert invokable._descriptor is running.descriptor
        assert invokable._driver is driver
        assert invokable._operators == operators
        assert len(descriptor.chain) - len(operators) in (0, 1), "one descriptor an operator, the head may be a driver"
        assert vertex.current.state.is_terminal
        assert vertex.current.counters.rows_out == invokable.counters().rows_out
    assert any(made[5:] for made in trace.values()), "some vertices chain operators behind their driver"
