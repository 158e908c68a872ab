"""A user's function over rows, batches or partitions: what it needs and makes is known by its kind alone.

    map, map_batches, map_partition   rows of the input, at the width of the declared schema
    flat_map                          FLAT_MAP_EXPANSION rows of each
    filter                            PYTHON_FILTER_SHARE of the rows, which lie as they did
    column                            rows of the input with a column behind theirs

Of a column's function its arguments are known, so unused columns are left out, the function itself too, and filters
that do not look at its result pass below it. Nothing is known of the columns of others, unless they name those that
they are called with. A function sees the order of its input. The rows of a map stay in that order, under other columns.

Held by: tests/optimizer/test_function_planning.py
Held by: tests/optimizer/test_estimates.py
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph.call_policy import ERROR_INPUT
from engine.graph.expression import Expression, columns_of
from engine.graph.operator_descriptor import PhysicalOperator, PythonOperator
from engine.graph.plan import PlanNode, PythonFunction
from engine.graph.plan_schema import PlanSchema
from engine.optimizer.candidates import Candidate
from engine.optimizer.function_planning import python_operator
from engine.optimizer.input_changes import filter_input, narrow_input
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.row_wise import RowWiseEntry
from engine.optimizer.physical_plan_builder import PhysicalPlanBuilder
from engine.optimizer.properties import RANDOM, GlobalProperties
from engine.statistics.estimates import Estimates, scaled, sized

FLAT_MAP_EXPANSION = 2.0
PYTHON_FILTER_SHARE = 0.5


class PythonFunctionEntry(RowWiseEntry[PythonFunction]):
    """The entry of functions over rows."""

    operator = PythonFunction

    def name(self, operator: PythonFunction) -> str:
        """Return the kind and the function's name."""
        arguments = f"({', '.join(operator.arguments)})" if operator.arguments else ""
        kind = "column" if _is_column(operator) else operator.kind
        return f"{kind} {operator.function_name}{arguments}"

    def details(self, operator: PhysicalOperator) -> Sequence[str]:
        """Return the place of the function in the script."""
        return function_details(operator)

    def columns_used(
        self, plan: LogicalPlan, node: PlanNode, operator: PythonFunction, input_index: int, used: set[str]
    ) -> set[str]:
        """Return all columns, but for functions that name those they are called with."""
        if input_index == 0 and _is_column(operator):
            return (used - {operator.result}) | set(operator.arguments)
        keeps_inputs = operator.policy is not None and operator.policy.is_collecting and ERROR_INPUT in used
        if input_index == 0 and operator.arguments and operator.kind != "filter" and not keeps_inputs:
            return set(operator.arguments)
        return set(plan.node(node.inputs[input_index]).schema.names)

    def prune(self, plan: LogicalPlan, node: PlanNode, operator: PythonFunction, used: set[str]) -> None:
        """Leave out what is not used; without its result a column's function is not called."""
        if not operator.arguments or operator.kind == "filter":
            return
        if _is_column(operator) and operator.result not in used:
            plan.redirect(node.id, node.inputs[0])
            return
        narrow_input(plan, node, 0, self.columns_used(plan, node, operator, 0, used))
        if _is_column(operator):
            current = plan.node(node.id)
            below = plan.node(current.inputs[0]).schema
            schema = PlanSchema((*below.columns, *node.schema.select([operator.result]).columns))
            if schema != node.schema:
                plan.replace(current, schema=schema)

    def take_filter(
        self, plan: LogicalPlan, node: PlanNode, operator: PythonFunction, parts: list[Expression]
    ) -> list[Expression]:
        """Push parts that do not use the result of a column's function."""
        passing = [part for part in parts if _is_column(operator) and operator.result not in columns_of(part)]
        filter_input(plan, node, 0, passing)
        return passing

    def estimate(self, node: PlanNode, operator: PythonFunction, inputs: Sequence[Estimates]) -> Estimates:
        """Return rows by the kind of the function."""
        source, kind = inputs[0], operator.kind
        if kind == "filter":
            return scaled(source, PYTHON_FILTER_SHARE, f"{PYTHON_FILTER_SHARE:g} of the input: default for a function")
        if _is_column(operator):
            columns = dict(source.columns)
            return sized(node.schema, source.rows, columns, "rows of the input", unset=not source.is_size_known)
        if kind == "flat_map":
            origin = f"{FLAT_MAP_EXPANSION:g} * input: default for flat_map"
            return sized(node.schema, source.rows * FLAT_MAP_EXPANSION, {}, origin)
        return sized(node.schema, source.rows, {}, f"rows of the input ({kind})")

    def origins(
        self, operator: PythonFunction, key: Expression, inputs: Sequence[PlanSchema]
    ) -> Sequence[tuple[int, Expression]]:
        """Values of a filter's rows are those of the input; what other functions return is unknown."""
        is_known = _is_column(operator) and operator.result not in columns_of(key)
        return ((0, key),) if operator.kind == "filter" or is_known else ()

    def properties(self, operator: PythonFunction, source: Candidate) -> GlobalProperties:
        """Return the order of a filter's input; which column of a map is which is unknown."""
        return source.properties if operator.kind == "filter" or _is_column(operator) else RANDOM

    def translate(self, builder: PhysicalPlanBuilder, candidate: Candidate, operator: PythonFunction) -> int:
        """Add the function."""
        return builder.add_plain(candidate, python_operator(operator))


def _is_column(operator: PythonFunction) -> bool:
    return operator.kind.startswith("column")


def function_details(operator: PhysicalOperator) -> Sequence[str]:
    """Return the place of a physical operator's function in the script, for ``details``."""
    if not isinstance(operator, PythonOperator):
        return ()
    return (f"function {operator.function_name} ({operator.file}:{operator.line})",)
