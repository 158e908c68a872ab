"""Drey: a batch engine for Python.

The life of a job:
    1.  a script calls methods of DataSet; each adds a node to a Plan                        api, graph
    2.  ``env.execute()`` hands the Plan to an Executor (embedded here)                       targets
    3.  the optimizer estimates sizes, compares ways to ship and join, and picks             optimizer
    4.  operators that need no exchange are chained; the result is a JobGraph                graph
    5.  the Dispatcher starts a JobMaster, which builds an ExecutionGraph                     dispatcher, jobmaster
    6.  a pipelined region is deployed when its inputs are finished and slots are free        resourcemanager
    7.  each attempt is a Task: a thread that runs a BatchTask                                taskexecutor, operators
    8.  batches become rows where they are kept or repartitioned                             records, exchange
    9.  sort, join and aggregate work on pages and spill                                     sort, join, aggregate
    10. sinks stage files; the JobMaster decides and publishes them                          commit
    11. the client gets a JobResult, or an error whose first line is the root cause          client

Layers, lowest first: errors closing | private_folder | ids clock config fault_points log_output python_command
shown_sizes shown_text user_warnings | log_format | process_folder task_log | memory | graph | records iomanager rpc |
exchange gateways blob sort join aggregate expressions commit | files statistics | csv parquet |
transport connectors functions insight adaptive | operators | optimizer taskexecutor jobmaster resourcemanager client |
dispatcher api rest | spark | entrypoint minicluster | targets | cli.

Where to start reading: ``graph/plan.py``, then ``operators/batch_task.py``, then ``records/layout.py``.

Names are loaded when they are first used (PEP 562), so that importing one room does not pull in all.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Early: a script's folder may come to the module search path later, with an ha.py in it.
import ha

if TYPE_CHECKING:
    from engine.api.data_set import DataSet
    from engine.api.environment import Environment
    from engine.api.expressions import (
        avg,
        col,
        count,
        count_distinct,
        first,
        last,
        lit,
        max_,
        min_,
        stddev,
        sum_,
        variance,
        when,
    )
    from engine.client.job_result import JobResult
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
    from engine.graph.plan import JoinHint

__version__ = "0.1.0"

_HOMES = {
    "Environment": "engine.api.environment",
    "DataSet": "engine.api.data_set",
    "JobResult": "engine.client.job_result",
    "JoinHint": "engine.graph.plan",
    "Row": "engine.functions.row",
}
_EXPRESSIONS_HOME = "engine.api.expressions"
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
    "avg",
    "col",
    "count",
    "count_distinct",
    "first",
    "last",
    "lit",
    "max_",
    "min_",
    "stddev",
    "sum_",
    "variance",
    "when",
]


_HA = Path(__file__).parents[1] / "ha" / "__init__.py"
if ha.__file__ is None or not _HA.samefile(ha.__file__):
    raise ImportError(f"{ha.__file__ or 'a folder called ha'} hides the package ha of Drey: rename it")

if "pyarrow" not in sys.modules and sys.platform == "linux":
    # Arrow's C++ side chooses its allocator when it is loaded, once for all. jemalloc gives back what is no longer
    # used within a second; the default keeps half as much again. A script that loaded pyarrow first has half of it
    # (engine.taskexecutor.task_resources).
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "jemalloc")
    # What is as large as a very wide row goes back at once: warm, it would be in memory several times.
    os.environ.setdefault("JE_ARROW_MALLOC_CONF", "oversize_threshold:16777216")
# pyarrow brings numpy, whose linear algebra starts a thread for each processor. Such a thread spins for 2**26 cycles
# before it sleeps, at its start too; 2**20 still bridge the pauses between operations.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")

#: a process that had more objects before the engine was imported has work of its own in memory
_OBJECTS_BEFORE_MAX = 200_000
#: what the engine is written on
_OWN_LIBRARIES = frozenset({"engine", "numpy", "pyarrow", "msgspec", "lz4"})


def __getattr__(name: str) -> Any:
    """Load a public name from its room."""
    if name not in __all__:
        raise AttributeError(f"module 'engine' has no attribute {name!r}")
    if name == "Environment":
        # The targets register themselves as executors: the API below them does not know them.
        _import_quickly("engine.targets")
    home = _HOMES.get(name) or (_ERRORS_HOME if name.endswith(("Error", "Warning")) else _EXPRESSIONS_HOME)
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def _import_quickly(module: str) -> None:
    """Import a module that brings most others, and keep Python's garbage collector from looking at what it brings.

    Modules live as long as the process, and there are tens of thousands of objects in them: too many to look at again
    and again while they are made, in each full collection later, and twice when the interpreter ends, which took longer
    than a small job. What a script had before is left alone with them, unless it is much.
    """
    is_collecting, is_ours = gc.isenabled(), gc.get_freeze_count() == 0
    is_early = is_ours and _is_early()
    gc.disable()
    try:
        importlib.import_module(module)
        if is_early:
            importlib.import_module("engine.taskexecutor.frozen_heap").FROZEN_HEAP.stays_frozen()
    finally:
        if is_ours:
            gc.freeze()
            if is_early:
                atexit.register(_thaw_for_others)
            else:
                # as old as can be, so that at least the next collections, of young objects, pass over it
                gc.unfreeze()
        if is_collecting:
            gc.enable()


def _is_early() -> bool:
    """Whether nobody minds that the objects there are now are never looked at again: a script that has just begun.

    Libraries in C may mind: some count their objects when the interpreter ends, and complain about those still there.
    """
    return len(gc.get_objects()) <= _OBJECTS_BEFORE_MAX and not _has_other_libraries()


def _thaw_for_others() -> None:
    """Let the last collections look at everything, for libraries that came later: what is frozen would hold them."""
    if _has_other_libraries():
        gc.unfreeze()


def _has_other_libraries() -> bool:
    """Whether libraries in C are loaded that are not the engine's."""
    known = sys.stdlib_module_names | _OWN_LIBRARIES
    suffixes = tuple(EXTENSION_SUFFIXES)
    return any(
        (getattr(module, "__file__", None) or "").endswith(suffixes)
        for name, module in tuple(sys.modules.items())
        if name.partition(".")[0] not in known
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
