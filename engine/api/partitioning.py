"""The partitioning calls of DataSet: how rows are spread over the subtasks of what comes next.

    call                        a row goes to                                            shown as
    shuffle()                   a random subtask                                         SHUFFLE
    rebalance()                 the next subtask, from a random one on                   REBALANCE
    rescale()                   the next one of the subtasks nearby                      RESCALE
    broadcast()                 every subtask                                            BROADCAST
    global_()                   subtask 0                                                GLOBAL
    forward()                   the subtask of its own number                            FORWARD
    key_by(*keys)               the subtask of its key's key group, as in Flink          KEYGROUP
    partition_by_range(*keys)   the subtask of its range of keys                         RANGE
    partition_custom(fn, *keys) the subtask that fn says                                 CUSTOM

A partitioning is followed, never optimised away, and of two in a row the last one counts. The number of subtasks is
that of ``set_parallelism`` behind it, or of the operator it leads into, or the default. No call given: rows stay in
their subtask where both sides have the same number of them, and go in turn where they have not.

Only ``broadcast`` changes which rows there are: what reads it sees each row once in each of its subtasks.

Held by: tests/api/test_data_set.py
Held by: tests/integration/test_partitioning.py
"""

from __future__ import annotations

from typing import Any, Self

import pyarrow as pa
from msgspec.structs import replace

from engine.api.calls import Calls
from engine.api.projections import column_names
from engine.errors import PlanError, SchemaError
from engine.expressions.schema_bridge import to_column_info
from engine.graph.plan import Partition, Source
from engine.lowering.projections import check_columns
from engine.records.key_types import is_key_type, key_remedy


def checked_rate(rate_limit: Any) -> float | None:
    """Return a source's limit in rows per second, more than 0, or None; anything else is a PlanError."""
    if rate_limit is None:
        return None
    is_number = isinstance(rate_limit, int | float) and not isinstance(rate_limit, bool)
    if not is_number or not 0 < rate_limit < float("inf"):
        raise PlanError(f"rate_limit={rate_limit!r}: rows per second, more than 0")
    return float(rate_limit)


class PartitioningCalls(Calls):
    """Base of DataSet with the calls that say where rows go."""

    def shuffle(self) -> Self:
        """Send each row to a random subtask: uniform, independent, different at each run."""
        return self._same_rows(Partition("SHUFFLE"))

    def rebalance(self) -> Self:
        """Distribute rows in turn: from each producer, subtasks get equally many, give or take one."""
        return self._same_rows(Partition("REBALANCE"))

    def rescale(self) -> Self:
        """Distribute rows in turn among the subtasks nearby: less traffic than ``rebalance``.

        From 2 to 4 subtasks each producer feeds two of its own, from 4 to 2 two producers feed one.
        """
        return self._same_rows(Partition("RESCALE"))

    def broadcast(self) -> Self:
        """Return every row once in each subtask: with p subtasks what follows sees p copies of each row.

        Made for ``map_partition`` and its like, each subtask of which then has all rows. A join needs none of this: it
        broadcasts a small side by itself.
        """
        return self._same_rows(Partition("BROADCAST"))

    def global_(self) -> Self:
        """Send all rows to subtask 0; the other subtasks have none."""
        return self._same_rows(Partition("GLOBAL"))

    def forward(self) -> Self:
        """Keep each row in the subtask of the number that it came from.

        Raises: PlanError, when the plan is made, if what follows has another parallelism.
        """
        return self._same_rows(Partition("FORWARD"))

    def key_by(self, *keys: Any) -> Self:
        """Send equal keys to one subtask, by Flink's key groups (128 of them up to 85 subtasks).

        Args:
            keys: names of columns, one or more; a ``group_by`` of them that follows needs no exchange of its own.

        Raises: SchemaError for a column that is not there or cannot be a key; the job fails with DataError for a row
        with a null key.
        """
        return self._same_rows(Partition("KEYGROUP", self._partition_keys(keys, "key_by")))

    def partition_by_range(self, *keys: Any) -> Self:
        """Partition by ranges: subtask i has smaller keys than subtask i + 1, equal ones in one; nulls come first.

        The bounds come from samples of all rows, so subtasks get about equally many. It is done by a sort: inside a
        subtask rows are in order, too.

        Args:
            keys: names of columns, one or more, compared in this order.

        Raises: SchemaError for a column that is not there or has no order.
        """
        return self._same_rows(Partition("RANGE", self._partition_keys(keys, "partition_by_range")))

    def partition_custom(self, fn: Any, *keys: Any) -> Self:
        """Send each row to the subtask that a Python function returns.

        Args:
            fn: called for each row as ``fn(key, ..., count)`` with the values of the keys (None for null) and the
                number of subtasks; returns an int, 0 <= subtask < count. It runs in a worker process.
            keys: names of columns, one or more, of any type.

        Raises: SchemaError for a column that is not there; the job fails with the function's name, file and line for
        an exception in it or for what is no subtask.
        """
        from engine.api.python_functions import python_function

        names = tuple(column_names(list(keys), "partition_custom"))
        check_columns(names, self._node.schema)
        if not names:
            raise SchemaError("partition_custom: no key; name the columns that the function is to see")
        from engine.functions.function_body import CHANNEL_COLUMN

        if CHANNEL_COLUMN in self._node.schema.names:
            raise SchemaError(f"partition_custom: a column is called {CHANNEL_COLUMN!r}, a name in use; rename it")
        channel = to_column_info(pa.field(CHANNEL_COLUMN, pa.int32()))
        return self._same_rows(Partition("CUSTOM", names, python_function("partition", fn), channel))

    def replicated(self) -> Self:
        """Allow each subtask of a join to read all of these rows by itself.

        A hint for a small side that is read from outside (behind it only ``select``, ``filter`` and their like): such
        a join needs no exchange. It never changes the result: whatever else reads the rows reads them once.

        Raises: PlanError when this is not a source.
        """
        operator = self._node.operator
        if not isinstance(operator, Source):
            raise PlanError("replicated() is for a source: call it right behind read_csv, from_arrow and so on")
        source = Source(operator.spec, operator.statistics, is_replicated=True, rate_limit=operator.rate_limit)
        return self._with(replace(self._node, operator=source))

    def _partition_keys(self, keys: tuple[Any, ...], what: str) -> tuple[str, ...]:
        names = tuple(column_names(list(keys), what))
        check_columns(names, self._node.schema)
        if not names or len(set(names)) < len(names):
            raise SchemaError(f"{what}: no key, or one given twice: {', '.join(names)}")
        for name in names:
            data_type = self._node.schema.field(name).type
            if not is_key_type(data_type):
                raise SchemaError(f"{what}: column {name!r} is {data_type}, which is no key: {key_remedy(data_type)}")
        return names
