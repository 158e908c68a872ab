"""Outputs of jobs in a model: where a task stages, what is decided and published, and by how many decisions."""

from __future__ import annotations

from engine.commit.output_target import OutputTakenError, OutputTarget
from engine.formats.sink_format import SinkFormat
from engine.graph.deployment import Staging
from tests.cluster_model.virtual_threads import PROCESS, KilledError

FORMAT = "model"


def _outputs():
    process = PROCESS.get()
    if process.is_dead:
        raise KilledError
    return process.world.outputs


class Outputs:
    """What lies where outputs land."""

    def __init__(self):
        #: stagings that are there, and outputs: job -> the files that were decided on
        self.staged, self.published = set(), {}


class ModelTarget(OutputTarget):
    """The entry of the target."""

    name = FORMAT

    def resolved(self, spec):
        return spec.path

    def check(self, spec, output):
        if output in _outputs().published:
            raise OutputTakenError(f"{output} is there")

    def staging(self, output, job_id):
        return Staging(f"{output}/.staging", output, FORMAT)

    def prepare(self, spec, staging, job_id, cluster):
        _outputs().staged.add(staging.path)

    def publish(self, output, job_id, after_step, *, is_durable):
        outputs = _outputs()
        files = tuple(file.name for file in output.files)
        before = outputs.published.get(output.target)
        assert before in (None, files), "two decisions about one output are published"
        assert before is not None or output.staging in outputs.staged, "what was decided on is gone"
        outputs.published[output.target] = files
        return {}

    def clean(self, output, job_id, after_step):
        _outputs().staged.discard(output.staging)

    def abort(self, staging, job_id):
        _outputs().staged.discard(staging.path)

    def stagings_in(self, folder):
        return ()

    def is_there(self, staging):
        return staging.path in _outputs().staged

    def is_of_cluster(self, staging, identity):
        return True

    def extent(self, staging):
        return 0, None


class ModelSink(SinkFormat):
    """The entry of the sink."""

    name = FORMAT

    def target(self, spec):
        return ModelTarget()

    def writer(self, spec, schema, path, former=None):
        raise AssertionError("no task runs")
