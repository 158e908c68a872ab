"""Drey: a batch engine for Python.

The life of a job:
    1.  a script calls methods of DataSet; each adds a node to a Plan                        api, graph
    2.  ``env.execute()`` passes the Plan to an Executor (embedded here)                       targets
    3.  the optimizer estimates sizes, compares ways to ship and join, and picks             optimizer
    4.  operators that need no exchange are chained; the result is a JobGraph                graph
    5.  the Dispatcher starts a JobMaster, which builds an ExecutionGraph                     dispatcher, jobmaster
    6.  a pipelined region is deployed when its inputs are finished and slots are free        resourcemanager
    7.  each attempt is a Task: a thread that runs a BatchTask                                taskexecutor, operators
    8.  batches become rows where they are kept or repartitioned                             records, exchange
    9.  sort, join and aggregate work on pages and spill                                     sort, join, aggregate
    10. sinks stage files; the JobMaster decides and publishes them                          commit
    11. the client gets a JobResult, or an error whose first line is the root cause          client

A room imports only from layers below its own: ``tests/tidy/layers.py`` has the table. Beside the rooms are modules
without a room: errors, versions, choices, near_names, selectors, closing, ids, clock, fault_points, machine_limits;
private_folder, process_folder, python_command, network_address; log_format, log_output, task_log, user_warnings,
shown_html, shown_pages, shown_quantities, shown_sizes, shown_text.

Where to start reading: ``graph/plan.py``, then ``operators/batch_task.py``, then ``records/layout.py``.

Names are loaded when they are first used (PEP 562), so that importing one room does not pull in all.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

# Early: a script's folder may come to the module search path later, with an ha.py in it.
import ha

if TYPE_CHECKING:
    from engine.api.data_set import DataSet
    from engine.api.environment import Environment
    from engine.client.job_result import JobResult
    from engine.column_expressions.expressions import (
        all_,
        any_,
        approx_count_distinct,
        approx_quantile,
        array,
        avg,
        bit_and,
        bit_or,
        bit_xor,
        coalesce,
        col,
        collect_list,
        collect_set,
        corr,
        count,
        count_distinct,
        count_if,
        covar,
        covar_pop,
        current_date,
        element,
        expr,
        first,
        format_,
        greatest,
        hash64,
        histogram,
        interval,
        kurtosis,
        last,
        least,
        lit,
        make_date,
        make_time,
        make_timestamp,
        map_from,
        map_from_entries,
        max_,
        max_by,
        median,
        min_,
        min_by,
        mode,
        now,
        product,
        quantile,
        rand,
        sequence,
        skewness,
        stddev,
        stddev_pop,
        string_agg,
        struct,
        sum_,
        uuid,
        variance,
        variance_pop,
        when,
    )
    from engine.column_expressions.running_functions import (
        backward_fill,
        cum_count,
        cum_max,
        cum_min,
        cum_prod,
        cum_sum,
        cut,
        diff,
        ewm_mean,
        forward_fill,
        interpolate,
        is_duplicated,
        is_first_distinct,
        is_last_distinct,
        is_unique,
        pct_change,
        qcut,
        rolling_max,
        rolling_mean,
        rolling_median,
        rolling_min,
        rolling_quantile,
        rolling_std,
        rolling_sum,
        rolling_var,
    )
    from engine.column_expressions.udfs import udf
    from engine.column_expressions.windows import (
        cume_dist,
        dense_rank,
        first_value,
        lag,
        last_value,
        lead,
        nth_value,
        ntile,
        percent_rank,
        rank,
        row_number,
    )
    from engine.errors import (
        ConfigurationError,
        DataError,
        DreyWarning,
        EngineError,
        JobCancelledError,
        JobExecutionError,
        MemoryBudgetError,
        NotYetSupportedError,
        PlanError,
        SchemaError,
    )
    from engine.functions.row import Row
    from engine.graph.said_operators import JoinHint
    from engine.outputs.table_targets import delta, iceberg

#: the version of everything: packages, processes, documentation
__version__ = "0.2.0"

_WINDOW_FUNCTIONS = (
    "cume_dist",
    "dense_rank",
    "first_value",
    "lag",
    "last_value",
    "lead",
    "nth_value",
    "ntile",
    "percent_rank",
    "rank",
    "row_number",
)
_RUNNING_FUNCTIONS = (
    "backward_fill",
    "cum_count",
    "cum_max",
    "cum_min",
    "cum_prod",
    "cum_sum",
    "cut",
    "diff",
    "ewm_mean",
    "forward_fill",
    "interpolate",
    "is_duplicated",
    "is_first_distinct",
    "is_last_distinct",
    "is_unique",
    "pct_change",
    "qcut",
    "rolling_max",
    "rolling_mean",
    "rolling_median",
    "rolling_min",
    "rolling_quantile",
    "rolling_std",
    "rolling_sum",
    "rolling_var",
)
_HOMES = {
    "Environment": "engine.api.environment",
    "DataSet": "engine.api.data_set",
    "JobResult": "engine.client.job_result",
    "JoinHint": "engine.graph.plan",
    "delta": "engine.outputs.table_targets",
    "iceberg": "engine.outputs.table_targets",
    "Row": "engine.functions.row",
    "udf": "engine.column_expressions.udfs",
    **dict.fromkeys(_WINDOW_FUNCTIONS, "engine.column_expressions.windows"),
    **dict.fromkeys(_RUNNING_FUNCTIONS, "engine.column_expressions.running_functions"),
}
_EXPRESSIONS_HOME = "engine.column_expressions.expressions"
_ERRORS_HOME = "engine.errors"

__all__ = [
    "ConfigurationError",
    "DataError",
    "DataSet",
    "DreyWarning",
    "EngineError",
    "Environment",
    "JobCancelledError",
    "JobExecutionError",
    "JobResult",
    "JoinHint",
    "MemoryBudgetError",
    "NotYetSupportedError",
    "PlanError",
    "Row",
    "SchemaError",
    "all_",
    "any_",
    "approx_count_distinct",
    "approx_quantile",
    "array",
    "avg",
    "backward_fill",
    "bit_and",
    "bit_or",
    "bit_xor",
    "coalesce",
    "col",
    "collect_list",
    "collect_set",
    "corr",
    "count",
    "count_distinct",
    "count_if",
    "covar",
    "covar_pop",
    "cum_count",
    "cum_max",
    "cum_min",
    "cum_prod",
    "cum_sum",
    "cume_dist",
    "current_date",
    "cut",
    "delta",
    "dense_rank",
    "diff",
    "element",
    "ewm_mean",
    "expr",
    "first",
    "first_value",
    "format_",
    "forward_fill",
    "greatest",
    "hash64",
    "histogram",
    "iceberg",
    "interpolate",
    "interval",
    "is_duplicated",
    "is_first_distinct",
    "is_last_distinct",
    "is_unique",
    "kurtosis",
    "lag",
    "last",
    "last_value",
    "lead",
    "least",
    "lit",
    "make_date",
    "make_time",
    "make_timestamp",
    "map_from",
    "map_from_entries",
    "max_",
    "max_by",
    "median",
    "min_",
    "min_by",
    "mode",
    "now",
    "nth_value",
    "ntile",
    "pct_change",
    "percent_rank",
    "product",
    "qcut",
    "quantile",
    "rand",
    "rank",
    "rolling_max",
    "rolling_mean",
    "rolling_median",
    "rolling_min",
    "rolling_quantile",
    "rolling_std",
    "rolling_sum",
    "rolling_var",
    "row_number",
    "row_place",
    "sequence",
    "skewness",
    "stddev",
    "stddev_pop",
    "string_agg",
    "struct",
    "sum_",
    "udf",
    "uuid",
    "variance",
    "variance_pop",
    "when",
]


_HA = Path(__file__).parents[1] / "ha" / "__init__.py"
if ha.__file__ is None or not _HA.samefile(ha.__file__):
    raise ImportError(f"{ha.__file__ or 'a folder called ha'} hides the package ha of Drey: rename it")


def __getattr__(name: str) -> Any:
    """Load a public name from its room."""
    if name not in __all__:
        raise AttributeError(f"module 'drey' has no attribute {name!r}{_advice(name)}")
    home = _HOMES.get(name) or (_ERRORS_HOME if name.endswith(("Error", "Warning")) else _EXPRESSIONS_HOME)
    import_quickly = importlib.import_module("engine.memory.heap").import_quickly
    if name == "Environment":
        # The targets register themselves as executors: the API below them does not know them.
        import_quickly("engine.targets")
    value = getattr(importlib.import_module(home) if home == _ERRORS_HOME else import_quickly(home), name)
    globals()[name] = value
    return value


def _advice(name: str) -> str:
    """Return the end of an error: the counterpart of a name of another library, "" for none."""
    is_room = name not in ROOMS_OF_WORDS and PathFinder.find_spec(f"{__name__}.{name}", __path__)
    if name.startswith("_") or is_room:
        return ""
    found: str = importlib.import_module("engine.column_expressions.other_names").package_advice(name, __all__)
    return found


#: rooms that have the name of a function, or of a module of functions, in other libraries
ROOMS_OF_WORDS = frozenset({"aggregate", "expressions", "functions", "sort", "sql", "window"})


def room_advice(name: str) -> str:
    """Return the end of an error: where a name is that a room has not, "" where it is nowhere."""
    return f": write drey.{name}" if name in __all__ else _advice(name)


class _Module(ModuleType):
    """A module of a class of its own, which functions that travel to workers name."""

    def __reduce__(self) -> tuple[Any, ...]:
        return importlib.import_module, (self.__name__,)


class _Room(_Module):
    """A room that a user takes for a function, or for a module of functions: its errors say what to write."""

    def __getattr__(self, name: str) -> NoReturn:
        is_own = name.startswith("_") or PathFinder.find_spec(f"{self.__name__}.{name}", self.__path__)
        advice = "" if is_own else f"{room_advice(name)}; functions are in drey itself"
        raise AttributeError(f"{self._said()} has no attribute {name!r}{advice}", name=name, obj=self)

    def __call__(self, *_given: object, **_named: object) -> NoReturn:
        names = importlib.import_module("engine.column_expressions.other_names")
        advice = names.package_advice(self.__name__.rpartition(".")[2], __all__)
        raise TypeError(f"{self._said()} is a part of the engine, and no function{advice}")

    def _said(self) -> str:
        return f"module {self.__name__.replace(__name__, 'drey', 1)!r}"


class _Package(_Module):
    """The package, in which a room is put when it is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in ROOMS_OF_WORDS and type(value) is ModuleType:
            value.__class__ = _Room
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return sorted({*__all__, "selectors", *(name for name in globals() if name.startswith("__"))})
