"""DataSet: an immutable handle on one node of a program under construction. Every method gives a new one.

    relational   select filter with_columns drop rename distinct union limit sort top (relational_calls.py)
                 group_by (group_calls.py)    join asof_join intersect except_ (join_calls.py)
    shapes       explode unnest unpivot pivot describe (shape_calls.py)
    rows         head tail sample drop_nulls fill_null drop_duplicates with_row_index pipe transform (row_calls.py)
    functional   map flat_map filter map_batches map_partition co_group with_broadcast (functional.py)
    placement    name set_parallelism    shuffle rebalance rescale broadcast global_ forward key_by
                 partition_by_range partition_custom    replicated (partitioning.py)
    results      write_csv write_parquet write_records write_text write_json write_ipc write_orc, run by env.execute()
                 (output_calls.py)
                 collect to_arrow to_pandas to_polars to_batches iter_rows count show, run at once; explain
                 (result_calls.py)
    looking      schema columns (calls.py)

Nothing runs before a result is asked for; names and types are checked at once, so that an error points at the line
that made it.
"""

from __future__ import annotations

from typing import Self

from msgspec.structs import replace

from engine.api.functional import FunctionalCalls
from engine.api.join_calls import JoinCalls
from engine.api.merge_calls import MergeCalls
from engine.api.output_calls import OutputCalls
from engine.api.partitioning import PartitioningCalls
from engine.api.result_calls import ResultCalls
from engine.api.row_calls import RowCalls
from engine.api.shape_calls import ShapeCalls
from engine.errors import EngineError, PlanError


class DataSet(
    RowCalls,
    ShapeCalls,
    JoinCalls,
    MergeCalls,
    FunctionalCalls,
    PartitioningCalls,
    OutputCalls,
    ResultCalls,
):
    """Rows that an operator makes."""

    def __repr__(self) -> str:
        return f"<DataSet {', '.join(f'{field.name}: {field.type}' for field in self.schema)}>"

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows: columns, and the plan when it is unfolded; nothing runs."""
        from engine.shown_html import folded_html, headed_html, table_html

        try:
            plan = self.explain()
        except EngineError as error:
            plan = str(error)
        fields = table_html(("column", "type"), [(field.name, field.type) for field in self.schema])
        return headed_html("DataSet", fields, folded_html("plan", plan))

    def name(self, name: str) -> Self:
        """Return this data set under a name, by which its operator is shown."""
        return self._with(replace(self._node, name=str(name)))

    def set_parallelism(self, parallelism: int) -> Self:
        """Return this data set, computed by that number of subtasks."""
        if isinstance(parallelism, bool) or not isinstance(parallelism, int) or parallelism < 1:
            raise PlanError(f"set_parallelism({parallelism!r}): a number of subtasks, 1 or more")
        return self._with(replace(self._node, parallelism=parallelism))
