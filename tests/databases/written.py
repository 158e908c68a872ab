"""Parts of a job that writes a table, one by one: for tests of what happens between them."""

from engine.commit.targets import target_named
from engine.databases.database_connection import connected
from engine.databases.write_call import database_sink
from engine.formats.registry import sink_format_of
from engine.graph.deployment import StagedFile
from engine.ids import JobId


class WrittenJob:
    """A job with attempts, of which each writes a table of rows."""

    def __init__(self, schema, uri, table, mode="error", on=(), number=1):
        self.spec = database_sink(schema, table, uri, mode, on)
        self.job_id = JobId(f"{number:032x}")
        self.target = sink_format_of(self.spec).target(self.spec)
        self.staging = self.target.staging(self.target.resolved(self.spec), self.job_id)
        self.staged = []

    def prepare(self, cluster="", is_over=lambda job_id: False):
        self.target.check(self.spec, self.staging.output)
        self.target.sweep(self.staging.output, cluster, is_over)
        self.target.prepare(self.spec, self.staging, self.job_id, cluster)
        return self

    def attempt(self, rows, nonce="n0", *, is_decided=True):
        """Write rows as an attempt does."""
        subtask = len(self.staged)
        name = self.target.attempt_name(f"0-{subtask:05d}-{nonce}-00000", "arrow", "")
        writer = sink_format_of(self.spec).writer(self.spec, rows.schema, f"{self.staging.path}/{name}")
        for batch in rows.to_batches():
            writer.write(batch)
        row_count, size, _ = writer.finish()
        if is_decided:
            self.staged.append(StagedFile(0, subtask, name, row_count, size))
        return self

    def decide(self):
        return self.target.decided(self.spec, 0, self.staging, self.staged, self.job_id)

    def publish(self, output, after_step=lambda step: None):
        facts = target_named(output.kind).publish(output, self.job_id, after_step, is_durable=True)
        target_named(output.kind).clean(output, self.job_id, after_step)
        return facts


def rows_of(uri, statement):
    with connected(uri, in_transaction=True) as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.rows()


def do(uri, *statements):
    with connected(uri, in_transaction=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        connection.commit()
