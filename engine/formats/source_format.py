"""SourceFormat: the answers of one format that rows are read from, in one place.

    caller                    asks the entry                            without an answer of its own
    calls that read           source, options, has_files, endings       a format is not read by name, no options, files
                              takes_schema, takes_union                 types are those of the files, which are alike
    preparation of a plan     exact_splits, rejects                     splits stay, no record is kept
                              bounds, possible                          nothing is known of splits, all are read
                              with_sample, key_statistics, sample_rows  statistics stay as they are
                              stored                                    a store is asked again about objects
                              stamps                                    a job that was planned is not kept
    optimizer                 kind, origin, layout                      its name, files, no order
                              takes_filters, takes_first                filters and limits stay operators
                              tells_runs, is_columnar                   splits are not told apart, a source is read once
    explain                   details                                   the filter
    JobMaster                 shares_splits                             each subtask reads the splits that it was given
                              state_place, held_state                   a source does not change while a job runs
    tasks                     reader_place or reader, modules           (must be said), nothing is loaded beforehand
                              names_paths                               a reader is opened for each file
    Spark                     spark_reader                              the engine's reader reads the splits

What has a default is always right, at worst slower. An entry has no state; ``registry`` holds one of each. The module
of an entry is loaded by the JobManager too: what needs Arrow is imported where it is used.

Held by: tests/formats/test_registry.py
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

from engine.errors import NotYetSupportedError
from engine.expressions.text import expression_text
from engine.graph.expression import Expression
from engine.graph.plan import Source
from engine.graph.plan_schema import PlanSchema
from engine.graph.sort_key import SortKey
from engine.graph.source_spec import ColumnStatistics, SourceSpec, SourceSplit, SourceStatistics, StoredFile

if TYPE_CHECKING:
    import pyarrow as pa

    from engine.formats.source_reader import SourceReader
    from engine.iomanager.spill_space import SpillSpace

Spec = TypeVar("Spec")
#: a source, its statistics and its schema
FoundSource: TypeAlias = "tuple[SourceSpec, SourceStatistics, pa.Schema]"


class Origin(Enum):
    """The place where the rows of a source lie."""

    #: files that every process of the cluster sees
    FILES = "files"
    #: the plan itself
    PLAN = "plan"
    #: files of the client, which go with its process
    CLIENT = "client"


class Layout(NamedTuple):
    """The order and the division of a source's rows, as far as they are proven."""

    #: columns by which the rows of all splits, read in their order, are sorted
    sorted_by: tuple[SortKey, ...] = ()
    #: columns with equal values in one file
    grouped_by: tuple[str, ...] = ()


class HeldState(NamedTuple):
    """A state of a place that is kept until it is closed (``held_states``)."""

    name: str
    close: Callable[[], None]


class Rejects(NamedTuple):
    """Records that a source leaves out, as a source, and the folder where they are to be written."""

    folder: str
    spec: SourceSpec
    statistics: SourceStatistics
    schema: pa.Schema


class ReadRequest(NamedTuple):
    """The arguments of a call that reads."""

    paths: tuple[str, ...] = ()
    #: schema of the files' own columns, if the user gave one
    schema: pa.Schema | None = None
    #: subtasks that read, at most, as far as is known
    parallelism: int = 1
    options: Mapping[str, Any] = MappingProxyType({})
    #: list that takes the schema of each file, which may have other columns then; None: all have the same
    found_schemas: list[pa.Schema] | None = None
    #: flag of files of which a filter may leave a few, so that reading all footers can wait
    may_wait: bool = False


class SourceFormat(Generic[Spec]):
    """An entry: the answers of one format to questions about its sources."""

    #: the word for it in calls and in explain
    name: ClassVar[str]

    # ---- capabilities of all sources of the format

    #: options of the call that reads it, and what they mean
    options: ClassVar[Mapping[str, str]] = MappingProxyType({})
    #: endings that files of the format have
    endings: ClassVar[tuple[str, ...]] = ()
    #: flag of places that are files, folders, globs or lists of those; others are passed to the entry unchanged
    has_files: ClassVar[bool] = True
    #: flag of calls that take the names and types of columns
    takes_schema: ClassVar[bool] = False
    #: flag of files that may have different columns (``schema_mode="union"``)
    takes_union: ClassVar[bool] = False
    #: flag of readers that leave out rows for which the ``predicate`` of their specification is not true
    takes_filters: ClassVar[bool] = False
    #: flag of readers that leave out rows which are not among the first of an order (``FilteringReader.keep_first``)
    takes_first: ClassVar[bool] = False
    #: flag of splits that can be read as one where they follow each other in a file, from the start of the first to the
    #: end of the last, by readers that can tell the rows of their splits apart (``RunsReader``)
    tells_runs: ClassVar[bool] = False
    #: flag of readers that wait for the answers of a server, whatever the paths say
    waits_for_server: ClassVar[bool] = False
    #: flag of columns that cost as much as their own bytes, so that reading twice may cost less than storing
    is_columnar: ClassVar[bool] = False
    #: flag of sources whose splits or files a filter may rule out before a job runs (``possible``)
    is_prunable: ClassVar[bool] = False
    #: module and class of the reader, which takes a specification and splits
    reader_place: ClassVar[tuple[str, str]]
    #: flag of readers that say by ``path`` of which file their rows are
    names_paths: ClassVar[bool] = False
    #: modules that a task needs, loaded beforehand
    modules: ClassVar[tuple[str, ...]] = ()
    #: bytes that libraries take in a process that uses them, as measured, beyond those that every process has
    library_bytes: ClassVar[int] = 0

    # ---- calls that read

    @property
    def is_read_by_name(self) -> bool:
        """Whether ``env.read`` reads it."""
        return type(self).source is not SourceFormat.source

    def source(self, request: ReadRequest) -> FoundSource:
        """Return a source: its splits, what is known of its size and values, and its schema.

        Raises: PlanError (no such place), SchemaError (columns, types), ConfigurationError (options).
        """
        raise NotYetSupportedError(f"reading {self.name} by its name")

    # ---- preparation of a plan

    def exact_splits(self, spec: Spec, subtask_count: int) -> Spec:
        """Return a source with splits for so many subtasks, of its files as they are now. Raises OSError."""
        return spec

    def rejects(self, spec: Spec, size_bytes: float) -> Rejects | None:
        """Return the records that a source of so many bytes leaves out, where they are kept."""
        return None

    def possible(
        self, source: Source, schema: PlanSchema, predicate: Expression | None, ignored: Collection[str] = ()
    ) -> Source:
        """Return a source with the splits in which a row may meet a predicate, and the statistics of those.

        ``ignored``: columns that are not read of the files, because they come from elsewhere.
        """
        from engine.formats.split_pruning import possible_splits

        return possible_splits(source, schema, predicate, self.bounds)

    def bounds(self, spec: Spec, schema: pa.Schema, names: Sequence[str]) -> pa.Table | None:
        """Return a row for each split: lowest and highest value and nulls of columns (``bounds_predicate``)."""
        return None

    def stored(self, spec: Spec) -> tuple[StoredFile, ...]:
        """Return the objects of a store that a plan has found of a source."""
        return ()

    def stamps(self, spec: Spec) -> Hashable | None:
        """Return a stamp that differs once the rows of a source do, None where none is known. Raises OSError."""
        return None

    def with_sample(
        self,
        source: Source,
        schema: PlanSchema,
        names: Collection[str],
        predicates: Sequence[Expression],
        carried: Collection[str],
    ) -> SourceStatistics:
        """Return statistics with what a sample says of columns, and of the rows that predicates keep.

        ``carried``: those of the columns that no operator looks at.
        """
        return source.statistics

    def key_statistics(self, spec: Spec, column: str, row_count: float) -> ColumnStatistics | None:
        """Return distinct count and heavy keys of a column of which more than a sample was looked at."""
        return None

    def sample_rows(self, spec: Spec, columns: Sequence[str]) -> pa.Table | None:
        """Return some columns of rows from all parts of a source. Raises what reading raises."""
        return None

    # ---- optimizer

    def kind(self, spec: Spec) -> str:
        """Return the word for a source in vertices, logs and explain."""
        return self.name

    def origin(self, spec: Spec) -> Origin:
        """Return the place where the rows lie."""
        return Origin.FILES

    def layout(self, spec: Spec) -> Layout:
        """Return the order of the rows."""
        return Layout()

    def predicate(self, spec: Spec) -> Expression | None:
        """Return the filter that the reader applies, None for none."""
        return getattr(spec, "predicate", None)

    def details(self, spec: Spec) -> list[str]:
        """Return the lines of explain about a source."""
        predicate = self.predicate(spec)
        return [] if predicate is None else [f"filter {expression_text(predicate)}"]

    # ---- JobMaster

    def state_place(self, spec: Spec) -> str:
        """Return the place that all tasks of a job have to see in one state, "" where they do anyway."""
        return ""

    def held_state(self, spec: Spec) -> HeldState | None:
        """Hold the present state of the place, if that can be."""
        return None

    # ---- tasks

    def shares_splits(self, spec: Spec) -> bool:
        """Return whether the rows of a split are the same, whichever subtask reads it, and when it is told to."""
        return False

    def is_read_by_threads(self, spec: Spec) -> bool:
        """Return whether several readers of one task may take the splits; its reader is one in runs that shares."""
        return False

    def reader(
        self, spec: Spec, splits: Sequence[SourceSplit], new_space: Callable[[], SpillSpace] | None = None
    ) -> SourceReader:
        """Return the reader of some splits; ``new_space``: where it may put aside what does not fit into memory."""
        module, name = self.reader_place
        reader: SourceReader = getattr(importlib.import_module(module), name)(spec, splits)
        return reader

    # ---- Spark

    def spark_reader(self, spec: Spec) -> str:
        """Return the name of Spark's own reader of the very rows, "" for none."""
        return ""
