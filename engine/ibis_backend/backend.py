"""Backend: a connection of Ibis to an Environment, embedded or of a cluster.

    con = ibis.drey.connect()                          an Environment of its own: target="cluster", config={...}
    con = ibis.drey.connect(environment)               the tables of a program; disconnect() leaves it open
    con.read_parquet("orders/").group_by("k").agg(...).to_pandas()

Registered data sets are tables of the catalog ``drey`` and its database ``main``; those of attached catalogs have their
own. Rows come as the job makes them, and have the types that Ibis expects: a value that does not fit is an error.

Held by: tests/ibis_backend/test_backend.py
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import ibis
import ibis.common.exceptions as com
import ibis.expr.operations as ops
import ibis.expr.schema as sch
import ibis.expr.types as ir
import pyarrow as pa
import sqlglot.expressions as sge
from ibis.backends import DirectPyArrowExampleLoader, HasCurrentCatalog, HasCurrentDatabase, NoUrl, SupportsTempTables
from ibis.backends.sql import SQLBackend
from ibis.expr.operations.udf import InputType
from ibis.formats.pandas import PandasData
from ibis.formats.pyarrow import PyArrowData, PyArrowSchema, PyArrowType
from ibis.util import gen_name, normalize_filenames

from engine import __version__
from engine.column_expressions.udfs import udf
from engine.errors import PlanError
from engine.ibis_backend.compiler import compiler
from engine.statements import statements as kinds
from engine.statements.information_schema import listed_tables
from engine.statements.session import StatementSession

if TYPE_CHECKING:
    from engine.api.data_set import DataSet
    from engine.api.environment import Environment
    from engine.choices import Target, UdfKind
    from engine.client.job_result import JobResult

_CATALOG, _DATABASE = "drey", "main"
#: kinds of functions of Ibis as those of ``udf``
_FUNCTIONS: dict[InputType, UdfKind] = {
    InputType.PYTHON: "scalar",
    InputType.PYARROW: "arrow",
    InputType.PANDAS: "pandas",
}


class Backend(SupportsTempTables, SQLBackend, HasCurrentCatalog, HasCurrentDatabase, NoUrl, DirectPyArrowExampleLoader):
    """A connection."""

    name = "drey"
    compiler = compiler
    supports_create_or_replace: ClassVar[bool] = True

    # connection ------------------------------------------------------------------------------------------------

    def do_connect(
        self,
        environment: Environment | None = None,
        *,
        target: Target | None = None,
        config: Mapping[str, object] | None = None,
    ) -> None:
        """Take an Environment, or make one with a target and settings by key."""
        from engine import Environment

        if environment is not None and (target is not None or config is not None):
            raise PlanError("ibis.drey.connect: an environment has its target and its config; pass either of them")
        self._is_own = environment is None
        #: Environment that runs the queries
        self.environment = Environment(config, target) if environment is None else environment
        self._session = StatementSession(self.environment)

    @property
    def con(self) -> Environment:
        """The Environment, by the name that Ibis has for what a connection is made of."""
        return self.environment

    @classmethod
    def from_connection(cls, con: Environment, /) -> Backend:
        """Return a connection to an Environment."""
        return cls().connect(con)

    def disconnect(self) -> None:
        """Close an Environment that ``connect`` made."""
        if self._is_own:
            self.environment.close()

    @property
    def version(self) -> str:
        """Version of the engine."""
        return __version__

    # names -----------------------------------------------------------------------------------------------------

    @property
    def current_catalog(self) -> str:
        """Catalog of the registered tables."""
        return _CATALOG

    @property
    def current_database(self) -> str:
        """Database of the registered tables."""
        return _DATABASE

    def list_catalogs(self, *, like: str | None = None) -> list[str]:
        """Return the names of catalogs."""
        return self._filter_with_like(sorted({_CATALOG, *self.environment.catalogs}), like)

    def list_databases(self, *, like: str | None = None, catalog: str | None = None) -> list[str]:
        """Return the names of a catalog's databases."""
        catalog = catalog or _CATALOG
        found = {one.schema for one in listed_tables(self.environment) if one.catalog == catalog}
        return self._filter_with_like(sorted(found | {_DATABASE} if catalog == _CATALOG else found), like)

    def list_tables(self, *, like: str | None = None, database: tuple[str, str] | str | None = None) -> list[str]:
        """Return the names of a database's tables; those that Ibis gives to its tables in memory are left out."""
        place, own = self._place(database), {one.name for one in self._memtables}
        found = [one.name for one in listed_tables(self.environment) if one[:2] == place and one.name not in own]
        return self._filter_with_like(found, like)

    def get_schema(self, table_name: str, *, catalog: str | None = None, database: str | None = None) -> sch.Schema:
        """Return the columns of a table."""
        place = (catalog or _CATALOG, database or _DATABASE)
        for one in listed_tables(self.environment):
            if (one.catalog, one.schema, one.name) == (*place, table_name):
                return PyArrowSchema.to_ibis(one.columns(self.environment))
        raise com.TableNotFound(table_name)

    def _place(self, database: tuple[str, str] | str | None) -> tuple[str, str]:
        found = self._to_sqlglot_table(database)
        return found.catalog or _CATALOG, found.db or _DATABASE

    def _own_name(self, name: str, database: tuple[str, str] | str | None, call: str) -> str:
        """Return the name of a table that is ours. Raises: UnsupportedOperationError for another database."""
        if self._place(database) != (_CATALOG, _DATABASE):
            place = ".".join(self._place(database))
            raise com.UnsupportedOperationError(f"{call} in {place}: tables are made in {_CATALOG}.{_DATABASE} alone")
        return name

    # queries ---------------------------------------------------------------------------------------------------

    def raw_sql(self, query: str | sge.Expr, **_: Any) -> DataSet | JobResult | None:
        """Run a statement: return the data set of a query, the job of a change, None for one that took none."""
        text = query if isinstance(query, str) else query.sql(dialect=self.dialect)
        self._log(text)
        found = kinds.split(text)
        if len(found) != 1:
            raise PlanError(f"raw_sql runs one statement, and this text has {len(found)}")
        statement = kinds.statement(found[0])
        rows = self._session.rows(statement)
        return self._session.change(statement) if rows is None else rows

    @contextlib.contextmanager
    def _safe_raw_sql(self, query: str | sge.Expr, **_: Any) -> Iterator[Any]:
        yield self.raw_sql(query)

    def _get_schema_using_query(self, query: str) -> sch.Schema:
        return PyArrowSchema.to_ibis(self.environment.sql(query).schema)

    def to_pyarrow_batches(
        self,
        expr: ir.Expr,
        /,
        *,
        params: Mapping[ir.Scalar, Any] | None = None,
        limit: int | str | None = None,
        chunk_size: int = 1_000_000,
        **_: Any,
    ) -> pa.ipc.RecordBatchReader:
        """Return the rows of an expression while its job runs; closing the reader ends the job."""
        self._run_pre_execute_hooks(expr)
        table = expr.as_table()
        data = self.environment.sql(self.compile(table, params=params, limit=limit))
        schema = _types(table.schema().to_pyarrow(), data.schema)

        def batches() -> Iterator[pa.RecordBatch]:
            with data.to_batches() as stream:
                for batch in stream:
                    fitting = _fitting(batch, schema)
                    for start in range(0, max(fitting.num_rows, 1), chunk_size):
                        yield fitting.slice(start, chunk_size)

        return pa.ipc.RecordBatchReader.from_batches(schema, batches())

    def _table_of(self, expr: ir.Expr, params: Any, limit: Any) -> pa.Table:
        self._run_pre_execute_hooks(expr)
        table = expr.as_table()
        found = self.environment.sql(self.compile(table, params=params, limit=limit)).to_arrow()
        schema = _types(table.schema().to_pyarrow(), found.schema)
        return pa.Table.from_batches([_fitting(batch, schema) for batch in found.to_batches()], schema)

    def to_pyarrow(
        self,
        expr: ir.Expr,
        /,
        *,
        params: Mapping[ir.Scalar, Any] | None = None,
        limit: int | str | None = None,
        **_: Any,
    ) -> Any:
        """Return the rows of an expression as a table of Arrow, a column or a scalar."""
        return expr.__pyarrow_result__(self._table_of(expr, params, limit), data_mapper=_Rows)

    def execute(
        self,
        expr: ir.Expr,
        /,
        *,
        params: Mapping[ir.Scalar, Any] | None = None,
        limit: int | str | None = None,
        **_: Any,
    ) -> Any:
        """Return the rows of an expression as a frame of pandas, a series or a scalar."""
        import pandas as pd  # type: ignore[import-untyped, unused-ignore]

        table = self._table_of(expr, params, limit)
        columns = {
            name: column.to_pylist() if pa.types.is_nested(column.type) or column.null_count else column.to_pandas()
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
        frame = PandasData.convert_table(pd.DataFrame(columns), expr.as_table().schema())
        return expr.__pandas_result__(frame)

    # tables ----------------------------------------------------------------------------------------------------

    def _register_in_memory_table(self, op: ops.InMemoryTable) -> None:
        self.environment.register(op.name, self.environment.from_arrow(op.data.to_pyarrow(op.schema)))
        # Ibis itself would keep it until the process ends.
        weakref.finalize(op, _forget, self.environment, op.name).atexit = False

    def create_view(
        self, name: str, /, obj: ir.Table, *, database: str | None = None, overwrite: bool = False
    ) -> ir.Table:
        """Give an expression a name; its query runs wherever the name is used."""
        self._own_name(name, database, "create_view")
        self._check_is_free(name, overwrite)
        self._run_pre_execute_hooks(obj)
        self.environment.register(name, self.environment.sql(self.compile(obj)))
        return self.table(name)

    def create_table(
        self,
        name: str,
        /,
        obj: Any = None,
        *,
        schema: sch.IntoSchema | None = None,
        database: str | None = None,
        temp: bool = False,
        overwrite: bool = False,
    ) -> ir.Table:
        """Keep rows under a name as long as the Environment lives.

        ``obj``: an expression, whose rows are computed now, or a table of pyarrow, pandas or Polars; without it the
        table has the columns of ``schema`` and no rows. Each table is a temporary one.
        """
        if obj is None and schema is None:
            raise ValueError("Either `obj` or `schema` must be specified")
        self._own_name(name, database, "create_table")
        self._check_is_free(name, overwrite)
        types = None if schema is None else ibis.schema(schema)
        if obj is None:
            rows = ibis.schema(schema).to_pyarrow().empty_table()
            self.environment.register(name, self.environment.from_arrow(rows))
            return self.table(name)
        with self._rows_of(obj, types) as expr:
            self._store(name, expr if types is None else expr.cast(dict(types)))
        return self.table(name)

    @contextlib.contextmanager
    def _rows_of(self, obj: Any, types: sch.Schema | None = None) -> Iterator[ir.Table]:
        """Give the rows of an object as a table; those of a reader or a data set of pyarrow are not held at once."""
        if hasattr(obj, "scanner"):
            obj = obj.scanner().to_reader()
        if isinstance(obj, pa.RecordBatchReader):
            name = gen_name("reader")
            self.environment.register(name, self.environment.from_arrow(obj))
            yield self.table(name)
            self.environment.unregister(name)
        else:
            yield obj if isinstance(obj, ir.Table) else ibis.memtable(obj, schema=types)

    def rename_table(self, old_name: str, new_name: str) -> None:
        """Give a table another name."""
        self._check_is_free(new_name, overwrite=False)
        data = self._registered(old_name)
        self.environment.register(new_name, data)
        self.environment.unregister(old_name)

    def _registered(self, name: str) -> DataSet:
        if name not in self.environment.tables:
            raise com.TableNotFound(name)
        return self.environment.tables[name]

    def _store(self, name: str, expr: ir.Table) -> None:
        self._run_pre_execute_hooks(expr)
        self._session.change(kinds.CreateTable(name, self.compile(expr), replaces=True))

    def _check_is_free(self, name: str, overwrite: bool) -> None:
        if name in self.environment.tables and not overwrite:
            raise com.IbisError(f"table {name!r} is there already; pass overwrite=True")

    def _create_cached_table(self, name: str, expr: ir.Table) -> ir.Table:
        return self.create_table(name, expr, schema=expr.schema())

    def drop_table(self, name: str, /, *, database: tuple[str, str] | str | None = None, force: bool = False) -> None:
        """Give a name up."""
        self._own_name(name, database, "drop_table")
        if name in self.environment.tables:
            self.environment.unregister(name)
        elif not force:
            raise com.TableNotFound(name)

    drop_view = drop_table

    def truncate_table(self, name: str, /, *, database: str | None = None) -> None:
        """Make a table one without rows."""
        self._own_name(name, database, "truncate_table")
        rows = self.table(name).schema().to_pyarrow().empty_table()
        self.environment.register(name, self.environment.from_arrow(rows))

    def insert(self, name: str, /, obj: Any, *, database: str | None = None, overwrite: bool = False) -> None:
        """Add rows to a table, which is written again with them; columns go by name, else by place."""
        self._own_name(name, database, "insert")
        table = self.table(name)
        rows = obj if isinstance(obj, ir.Table) else ibis.memtable(obj)
        columns = rows.columns if set(rows.columns) <= set(table.columns) else table.columns
        given = dict(zip(columns, (rows[each] for each in rows.columns), strict=True))
        fitting = rows.select(
            (given[field] if field in given else ibis.null()).cast(data_type).name(field)
            for field, data_type in table.schema().items()
        )
        self._store(name, fitting if overwrite else table.union(fitting))

    # files -----------------------------------------------------------------------------------------------------

    def read_parquet(self, path: Any, /, *, table_name: str | None = None, **kwargs: Any) -> ir.Table:
        """Give files of Parquet a name; ``kwargs`` are those of Environment.read_parquet."""
        return self._named(self.environment.read_parquet(_paths(path), **kwargs), table_name, "parquet")

    def read_csv(self, path: Any, /, *, table_name: str | None = None, **kwargs: Any) -> ir.Table:
        """Give files of CSV a name; ``kwargs`` are those of Environment.read_csv, and there is a header."""
        return self._named(self.environment.read_csv(_paths(path), **{"header": True, **kwargs}), table_name, "csv")

    def read_json(self, path: Any, /, *, table_name: str | None = None, **kwargs: Any) -> ir.Table:
        """Give files of JSON, an object in each line, a name; ``kwargs`` are those of Environment.read_json."""
        return self._named(self.environment.read_json(_paths(path), **kwargs), table_name, "json")

    def read_delta(self, path: str | Path, /, *, table_name: str | None = None, **kwargs: Any) -> ir.Table:
        """Give a Delta table a name; ``kwargs`` are those of Environment.read_delta."""
        return self._named(self.environment.read_delta(str(path), **kwargs), table_name, "delta")

    def to_parquet(
        self,
        expr: ir.Table,
        /,
        path: str | Path,
        *,
        params: Mapping[ir.Scalar, Any] | None = None,
        partition_by: str | Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        """Write rows into a file of Parquet, or a folder for each value of the columns of ``partition_by``."""
        if partition_by is None:
            super().to_parquet(expr, path, params=params, **kwargs)
            return
        names = [partition_by] if isinstance(partition_by, str) else list(partition_by)
        self.to_parquet_dir(expr, path, params=params, partitioning=names, partitioning_flavor="hive", **kwargs)

    def _named(self, data: DataSet, name: str | None, kind: str) -> ir.Table:
        name = name or gen_name(f"read_{kind}")
        self.environment.register(name, data)
        return self.table(name)

    # functions -------------------------------------------------------------------------------------------------

    def _register_udfs(self, expr: ir.Expr) -> None:
        for node in expr.op().find(ops.ScalarUDF):
            if node.__input_type__ is InputType.BUILTIN:
                continue
            kind = _FUNCTIONS[node.__input_type__]
            function = _with_maps(node) if kind == "scalar" else node.__func__
            made = udf(PyArrowType.from_ibis(node.dtype), kind=kind)(function)
            self.environment.register_function(type(node).__name__, made)


def _forget(environment: Environment, name: str) -> None:
    if name in environment.tables:
        environment.unregister(name)


def _paths(paths: Any) -> Any:
    found = normalize_filenames(paths)
    return found[0] if len(found) == 1 else found


def _with_maps(node: ops.ScalarUDF) -> Callable[..., object]:
    """Return a function of single values, whose maps come as dicts, as Ibis says."""
    function, places = node.__func__, {place for place, one in enumerate(node.args) if one.dtype.is_map()}

    def call(*values: Any) -> object:
        return function(
            *(dict(one) if place in places and one is not None else one for place, one in enumerate(values))
        )

    return call if places else function


class _Rows(PyArrowData):
    """Rows that have their types already, durations with all of their digits."""

    @classmethod
    def convert_table(cls, table: pa.Table, _schema: sch.Schema) -> pa.Table:
        """Return a table."""
        return table

    @classmethod
    def convert_column(cls, column: Any, _dtype: Any) -> Any:
        """Return a column."""
        return column

    @classmethod
    def convert_scalar(cls, scalar: pa.Scalar, _dtype: Any) -> pa.Scalar:
        """Return a scalar."""
        return scalar


def _types(expected: pa.Schema, found: pa.Schema) -> pa.Schema:
    """Return the types of rows: those that Ibis expects, but durations as exact as they are."""
    fields = zip(expected, found, strict=True)
    return pa.schema([one.with_type(own.type) if pa.types.is_duration(own.type) else one for one, own in fields])


def _fitting(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the types of a schema, column by column."""
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
