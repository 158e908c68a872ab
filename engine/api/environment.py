"""Environment: where a script begins. It reads sources, holds the sinks that wait, and runs jobs.

    with Environment(config={"parallelism.default": 2}) as env:
        orders = env.read_csv("orders/", schema=...)
        orders.filter(col("price") > 100).write_parquet("out/")
        result = env.execute("large orders")

Each ``execute`` is one job of all sinks declared since the last one; ``collect`` and its siblings run what they need
and nothing else. Settings: this ``config`` beats the command line, which beats ``DREY_*`` variables, which beat
``conf/config.yaml``. ``close`` (or leaving ``with``, or the end of the process) removes the temporary folder.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa
from msgspec.structs import replace

from engine.api.bad_rows import bad_row_sinks, warn_of_bad_rows, warn_of_notes
from engine.api.cached_rows import above_cached, first_to_cache, with_cached
from engine.api.data_set import DataSet
from engine.api.executor import check_target, executor_of
from engine.api.file_calls import FileCalls
from engine.api.job_names import job_name
from engine.api.kept_jobs import KeptJob, KeptJobs
from engine.api.kept_statements import KeptStatements
from engine.api.planning import analyzed_plan, as_files_are_now, explain_plan
from engine.api.query_language import query_reader
from engine.api.result_stream import ResultStream, beside_streams
from engine.api.results import check_visible, handed_table, is_sorted, read_parts
from engine.api.uncaught_errors import report_uncaught
from engine.api.unwritten_outputs import UNWRITTEN
from engine.client.job_result import JobResult
from engine.client.termination import uninterrupted
from engine.column_expressions.other_names import ON_ENVIRONMENTS, HasOtherNames
from engine.column_expressions.udfs import Udf, udf
from engine.column_expressions.written_places import placed_errors
from engine.commit.handed_target import HandedResult
from engine.config.command_line import current_command_line
from engine.config.loader import Configuration, load_configuration
from engine.config.options import PARALLELISM_DEFAULT, WHOLE_TRACEBACKS
from engine.connectors.passing_format import STREAM_FOLDER
from engine.errors import NotYetSupportedError, PlanError, SchemaError
from engine.files.store_access import GivenOptions, StoreAccess
from engine.formats.output_check import check_outputs
from engine.formats.registry import sink_format_of
from engine.graph.plan import Operator, Plan, Sink, Source
from engine.graph.source_spec import SinkSpec
from engine.lineage.events import observed
from engine.lowering.logical_node import LogicalNode, build_plan, reachable, said_plan
from engine.private_folder import scratch_folder
from engine.process_folder import FolderPrefix, ProcessFolder, sweep
from engine.sources.prepared_plan import prepared, with_exact_splits
from engine.storage.store_client import use_store_settings
from engine.storage.store_counters import StoreTraffic, counted
from engine.user_warnings import calling_place

if TYPE_CHECKING:
    from engine.choices import SqlDialect, Target
    from engine.formats.table_target import TableTarget
    from engine.outputs.small_files import OptimizeResult
    from engine.storage.store_options import StorageOptions

#: numbers of data sets in expressions, in all environments
_NUMBERS: Final = itertools.count()


class Environment(FileCalls, HasOtherNames):
    """Sources, settings and declared outputs of a script.

    ``collect`` and its siblings may be called in several threads at once; outputs are declared and executed in one.
    """

    _kind = "an environment"
    _other_names = ON_ENVIRONMENTS

    def __init__(self, config: Mapping[str, object] | None = None, target: Target | None = None) -> None:
        """Take settings by key and the target: local (default), cluster or spark."""
        self._configuration = load_configuration(config)
        self._target = target or current_command_line().target or "local"
        check_target(self._target)
        if not self._configuration.get(WHOLE_TRACEBACKS):
            report_uncaught()
        self._sinks: list[LogicalNode] = []
        self._tables: dict[str, DataSet] = {}
        self._functions: dict[str, Udf] = {}
        #: macros of SQL, by name in lower case
        self.macros: dict[str, Any] = {}
        #: queries of SQL that were bound to the names of this environment
        self.statements = KeptStatements()
        self._catalogs: dict[str, Any] = {}
        self._catalog_options: dict[str, GivenOptions] = {}
        self._bad_row_paths: set[str] = set()
        self._folder: ProcessFolder | None = None
        self._remove_folder: weakref.finalize[Any, Environment] | None = None
        self._folder_numbers = itertools.count(1)
        self._folder_lock = threading.Lock()
        self._in_expressions: dict[int, LogicalNode] = {}
        #: streams of jobs whose rows are being read
        self._streams: weakref.WeakSet[ResultStream] = weakref.WeakSet()
        self._is_closed = False
        self._has_run = False
        self._kept_jobs = KeptJobs()
        #: requests to stores that make plans
        self._asked = StoreTraffic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[type[_Elsewhere], tuple[()]]:
        """Travel with a Python function, alone or in a data set, as what says that it is not there."""
        return _Elsewhere, ()

    def __repr__(self) -> str:
        waiting = len(self._sinks)
        outputs = f", {waiting} output{'s' * (waiting != 1)} to be written by execute()" if waiting else ""
        return f"<Environment {self._target}{outputs}>"

    def close(self) -> None:
        """Remove temporary data and end what ran its jobs; its data sets can no longer run. Idempotent."""
        with uninterrupted():
            self._is_closed = True
            self._sinks.clear()
            self.statements.clear()
            self._kept_jobs.clear()
            for stream in list(self._streams):
                stream.close_with_environment()
            if self._has_run:
                self._has_run = False
                executor_of(self._target).release(self._configuration)
            if self._remove_folder is not None:
                self._remove_folder()

    def _data_set(self, node: LogicalNode) -> DataSet:
        return DataSet(self, node)

    @property
    def configuration(self) -> Configuration:
        """Effective settings."""
        return self._configuration

    @property
    def target(self) -> str:
        """The target of jobs: local, cluster or spark."""
        return self._target

    @property
    def parallelism(self) -> int:
        """Default number of subtasks: ``parallelism.default``, else the processors here, or the cluster's slots."""
        chosen = self._configuration.get(PARALLELISM_DEFAULT)
        return int(chosen) if chosen is not None else executor_of(self._target).default_parallelism(self._configuration)

    # tables ----------------------------------------------------------------------------------------------------

    def register(self, name: str, data_set: DataSet) -> None:
        """Give a data set a name for SQL; a name that is taken gets the new one."""
        if not isinstance(name, str) or not name:
            raise SchemaError(f"register({name!r}): expected a name")
        if not isinstance(data_set, DataSet):
            raise SchemaError(f"register({name!r}, {data_set!r}): expected a data set of this Environment")
        self._tables[name] = data_set
        self.statements.clear()

    def unregister(self, name: str) -> None:
        """Remove the name of a data set; data sets that were made of it stay."""
        if name not in self._tables:
            raise SchemaError(f"unregister({name!r}): there is no such name")
        del self._tables[name]
        self.statements.clear()

    @property
    def tables(self) -> Mapping[str, DataSet]:
        """Data sets that are registered, by name."""
        return self._tables

    def register_function(self, name: str, function: Any) -> None:
        """Give a Python function a name for SQL: one made with ``udf``, or one whose return type is hinted.

        The name is found in any case. It has priority over a function of SQL with the name.
        """
        if not isinstance(name, str) or not name.isidentifier():
            raise SchemaError(f"register_function({name!r}): expected a name of letters, digits and _")
        if not callable(function):
            raise SchemaError(f"register_function({name!r}, {function!r}): expected a function, or udf(...)(function)")
        self._functions[name.lower()] = function if isinstance(function, Udf) else udf(function)
        self.statements.clear()

    @property
    def functions(self) -> Mapping[str, Udf]:
        """Functions that are registered for SQL, by name in lower case."""
        return self._functions

    def attach(self, name: str, catalog: Any, storage_options: StorageOptions = None) -> None:
        """Give a catalog of Iceberg a name for SQL: ``FROM name.db.table``.

        ``catalog`` and ``storage_options``: as of ``read_iceberg``.
        """
        from engine.iceberg_tables.tables import load_catalog

        if not isinstance(name, str) or not name.isidentifier():
            raise SchemaError(f"attach({name!r}): expected a name of letters, digits and _")
        given = self._catalog_options[name.lower()] = GivenOptions(storage_options)
        self._catalogs[name.lower()] = load_catalog(catalog, StoreAccess(self._configuration, given, "attach"))

    def storage_options_of(self, catalog: str) -> StorageOptions:
        """Return the options that a catalog was attached with."""
        return self._catalog_options[catalog].value

    @property
    def catalogs(self) -> Mapping[str, Any]:
        """Catalogs that are attached, by name."""
        return self._catalogs

    def sql(
        self, query: str, params: Sequence[Any] | Mapping[str, Any] | None = None, dialect: SqlDialect | None = None
    ) -> DataSet:
        """Return the data set of a query over registered data sets; it runs when it is used.

        params: values of ``$1`` and so on (a list), or of ``:name`` (a dict). dialect: of the query, "duckdb",
        "postgres", "spark", "snowflake", "bigquery" or "trino"; None is Drey's own.
        """
        use_store_settings(self._configuration.storage_texts())
        return query_reader()(query, self, params, dialect)

    # execution -------------------------------------------------------------------------------------------------

    def add_sink(self, sink: LogicalNode) -> None:
        """Add a sink to the next ``execute`` (DataSet.write_* calls this)."""
        self._sinks.append(sink)
        if isinstance(sink.operator, Sink):
            UNWRITTEN.add(sink.operator.spec, calling_place())

    def execute(self, name: str | None = None) -> JobResult:
        """Run all sinks declared since the last call as one job, and wait for it.

        Raises: PlanError (no sink, or an output that exists: nothing was started), JobExecutionError.
        """
        sinks, self._sinks = self._sinks, []
        for sink in sinks:
            if isinstance(sink.operator, Sink):
                UNWRITTEN.take(sink.operator.spec)
        chosen = current_command_line().job_name or name or job_name()
        if not sinks:
            raise PlanError("there is nothing to execute: call write_csv, write_parquet or another write_* first")
        with counted(self._asked):
            sinks = self._with_bad_rows([as_files_are_now(sink) for sink in sinks])
            if not executor_of(self._target).is_dry:
                use_store_settings(self._configuration.storage_texts())
                check_outputs([sink.operator.spec for sink in sinks if isinstance(sink.operator, Sink)])
        with observed(sinks, chosen, self._configuration) as run:
            run.result = self._run(sinks, chosen)
        return run.result

    def _run(self, sinks: Sequence[LogicalNode], name: str) -> JobResult:
        return self._planned_and_run(sinks, name)[1]

    def _planned_and_run(
        self, sinks: Sequence[LogicalNode], name: str, kept: KeptJob | None = None
    ) -> tuple[Plan, JobResult]:
        with counted(self._asked):
            plan = self._planned(sinks, name)
        plan = replace(plan, stores=self._asked.taken())
        with beside_streams(), placed_errors(each.operator for each in reachable(sinks)):
            result = executor_of(self._target).execute(plan, self._configuration, kept)
        warn_of_notes(result)
        return plan, result

    def _planned(self, sinks: Sequence[LogicalNode], name: str) -> Plan:
        """Return the plan of a job, of files as they are now."""
        if self._is_closed:
            raise PlanError("the environment is closed")
        use_store_settings(self._configuration.storage_texts())
        executor = executor_of(self._target)
        self._has_run = True
        if executor.is_dry:
            return prepared(build_plan(sinks, name))
        sinks = self._with_cached(sinks)
        return prepared(build_plan(sinks, name, self._exact, has_said=executor.takes_said))

    def _exact(self, node: LogicalNode) -> Operator:
        return with_exact_splits(node.operator, node.parallelism or self.parallelism)

    def _with_cached(self, sinks: Sequence[LogicalNode]) -> list[LogicalNode]:
        """Return sinks that read what is cached; what is not there yet is computed now, each in a job."""
        while (node := first_to_cache(current := with_cached(sinks))) is not None:
            if current_command_line().is_detached:
                raise PlanError(
                    "a detached job cannot read cache() or WITH RECURSIVE: the rows would be gone with this process"
                )
            assert node.cached is not None, "nothing to cache"
            folder = self.new_folder("cache")
            try:
                node.cached.source = (node.cached.compute or self._computed(node))(folder)
            except BaseException:
                with uninterrupted():
                    shutil.rmtree(folder, ignore_errors=True)
                raise
        return current

    def _computed(self, node: LogicalNode) -> Callable[[Path], LogicalNode]:
        """Return the function that runs the job of a node which is to be cached, and returns the source of its rows."""

        def compute(folder: Path) -> LogicalNode:
            from engine.connectors.arrow_files import arrow_files_source

            sink = LogicalNode(Sink(SinkSpec("arrow", os.fspath(folder))), (replace(node, cached=None),), node.schema)
            warn_of_bad_rows(self._run(self._with_bad_rows([sink]), f"{job_name()} (cache)"))
            check_visible(folder, "cache()")
            spec, statistics = arrow_files_source(folder, node.schema, "cached rows")
            return LogicalNode(Source(spec, statistics), (), node.schema, node.name, node.parallelism)

        return compute

    def run_to_table(self, node: LogicalNode) -> pa.Table:
        """Run what a node needs and return its rows (DataSet.collect and its siblings call this)."""
        folder = self.new_folder("result")
        place = os.fspath(folder)
        try:
            if executor_of(self._target).is_in_process:
                with HandedResult(place) as handed:
                    self.run_to_sink(node, SinkSpec("handed", place), "collect")
                    return handed_table(handed, node.schema)
            self.run_to_sink(node, SinkSpec("arrow", place), "collect")
            check_visible(folder, "a result")
            return read_parts(folder, node.schema)
        finally:
            with uninterrupted():
                shutil.rmtree(folder, ignore_errors=True)

    def optimize(
        self,
        target: TableTarget,
        sort_by: str | Sequence[str] | None = None,
        target_file_size: int | str | None = None,
    ) -> OptimizeResult:
        """Write small files of a table together into larger ones, at once, by one commit.

        ``target``: ``delta("folder")`` or ``iceberg("db.name", catalog)``. ``sort_by``: all files are written, each
        partition in that order; ``target_file_size``: "128mb" without it.
        """
        from engine.outputs.small_files import optimized

        if self._target == "spark":
            raise NotYetSupportedError("optimize on target spark; run it on local or cluster")
        return optimized(self, target, sort_by, target_file_size)

    def run_to_sink(self, node: LogicalNode, spec: SinkSpec, what: str) -> JobResult:
        """Run what a node needs, into one output and no other; ``what`` is said of the job."""
        sinks = self._with_bad_rows([LogicalNode(Sink(spec), (node,), node.schema)])
        kept = None
        is_result = len(sinks) == 1 and sink_format_of(spec).is_of_client
        if is_result and not self._is_closed and executor_of(self._target).keeps_jobs:
            kept = self._kept_jobs.of(node, what, self.parallelism)
        result = None if kept is None else self._run_again(kept, spec, node)
        if result is None:
            result = self._planned_and_run(sinks, f"{job_name()} ({what})", kept)[1]
        warn_of_bad_rows(result)
        return result

    def _run_again(self, kept: KeptJob, spec: SinkSpec, node: LogicalNode) -> JobResult | None:
        """Run a job that is kept into another output; None where there is none."""
        if kept.job is None:
            return None
        use_store_settings(self._configuration.storage_texts())
        with beside_streams(), placed_errors(each.operator for each in reachable([node])):
            result = executor_of(self._target).execute_again(kept, spec, self._configuration)
        if result is not None:
            warn_of_notes(result)
        return result

    def stream(self, node: LogicalNode) -> ResultStream:
        """Begin a job of what a node needs, and return its rows as they come (DataSet.to_batches calls this)."""
        target = self.new_folder("result")
        folder = Path(f"{target}{STREAM_FOLDER}")
        sink = LogicalNode(Sink(SinkSpec("stream", os.fspath(target))), (node,), node.schema)
        plan = self._planned(self._with_bad_rows([sink]), f"{job_name()} (stream)")
        executor = executor_of(self._target)

        def run() -> JobResult:
            try:
                with placed_errors(each.operator for each in reachable([sink])):
                    result = executor.execute(plan, self._configuration)
                warn_of_bad_rows(result)
                warn_of_notes(result)
                return result
            finally:
                shutil.rmtree(target, ignore_errors=True)

        folder.mkdir()
        stream = ResultStream(node.schema, folder, run, is_ordered=is_sorted(node))
        self._streams.add(stream)
        return stream

    def _with_bad_rows(self, sinks: list[LogicalNode]) -> list[LogicalNode]:
        """Return sinks and those of malformed records that sources beneath them are to keep.

        A folder that was there before this environment wrote it is an error, as with every output.
        """
        kept = bad_row_sinks(above_cached(sinks), self._bad_row_paths)
        self._bad_row_paths.update(sink.operator.spec.path for sink in kept if isinstance(sink.operator, Sink))
        return [*sinks, *kept]

    def number_of(self, node: LogicalNode) -> int:
        """Return the number under which expressions speak of a node (DataSet.scalar and is_in call this)."""
        number = next(_NUMBERS)
        self._in_expressions[number] = node
        return number

    def node_of(self, number: int) -> LogicalNode:
        """Return the node of a number; PlanError for one of another environment."""
        if number not in self._in_expressions:
            raise PlanError("an expression has a data set of another environment; read its data in this one too")
        return self._in_expressions[number]

    def sample(self, node: LogicalNode) -> pa.Table:
        """Run what a node needs while a program is being written, and return its rows."""
        if executor_of(self._target).is_dry:
            raise PlanError("a schema cannot be inferred from rows where nothing is run; pass schema=")
        return self.run_to_table(node)

    def explain_said(self, node: LogicalNode) -> str:
        """Return the plan of a node as the program says it."""
        from engine.lowering.said_text import said_text

        return said_text(said_plan([node], job_name()))

    def explain_node(self, node: LogicalNode) -> str:
        """Return the explained plan of a node: of its declared sinks, or as it would be collected."""
        sinks = [sink for sink in self._sinks if any(each is node for each in (*sink.inputs, *sink.inputs[0].inputs))]
        if not sinks:
            sinks = [LogicalNode(Sink(SinkSpec("arrow", "(client)")), (node,), node.schema)]
        plan = prepared(build_plan(with_cached(sinks), job_name()))
        return explain_plan(plan, self._target, self._configuration, self.parallelism)

    def analyze_node(self, node: LogicalNode, *, form: str) -> str:
        """Run what a node needs, keep nothing of it, and return its plan beside what its operators did."""
        folder = self.new_folder("result")
        sinks = [LogicalNode(Sink(SinkSpec("discard", os.fspath(folder))), (node,), node.schema)]
        name = f"{job_name()} (analyze)"
        try:
            plan, result = self._planned_and_run(sinks, name)
            return analyzed_plan(plan, result, self._target, self._configuration, self.parallelism, form=form)
        finally:
            with uninterrupted():
                shutil.rmtree(folder, ignore_errors=True)

    def temporary_folder(self) -> Path:
        """Return a folder that lives as long as this environment."""
        if self._is_closed:
            raise PlanError("the environment is closed")
        with self._folder_lock:
            if self._folder is None:
                scratch = scratch_folder()
                sweep(scratch, FolderPrefix.CLIENT)
                with uninterrupted():
                    own = ProcessFolder.create(scratch, FolderPrefix.CLIENT)
                    self._folder = own
                    self._remove_folder = weakref.finalize(self, _remove, own)
            self._folder.ensure()
            return self._folder.path

    def new_folder(self, kind: str) -> Path:
        """Return a new path in the temporary folder, another one for each call in any thread."""
        return self.temporary_folder() / f"{kind}-{next(self._folder_numbers)}"


def _remove(folder: ProcessFolder) -> None:
    # What a finalizer raises goes nowhere but to standard error: an interrupt that comes in its milliseconds is lost.
    with contextlib.suppress(KeyboardInterrupt), uninterrupted():
        folder.close()


class _Elsewhere:
    """A stand-in for an Environment inside a Python function, where its jobs could not run."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise PlanError(
            "a data set or Environment cannot be used inside a function; use .with_broadcast(name=data_set)"
        )
