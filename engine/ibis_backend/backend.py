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
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import ibis
import ibis.common.exceptions as com
import ibis.expr.operations as ops
import ibis.expr.schema as sch
import ibis.expr.types as ir
import pyarrow as pa
import sqlglot as sg
from ibis.backends import DirectPyArrowExampleLoader, HasCurrentCatalog, HasCurrentDatabase, NoUrl, SupportsTempTables
from ibis.backends.sql import SQLBackend
from ibis.expr.operations.udf import InputType
from ibis.formats.pandas import PandasData
from ibis.formats.pyarrow import PyArrowSchema, PyArrowType
from ibis.util import gen_name, normalize_filenames

from engine import __version__
from engine.column_expressions.udfs import udf
from engine.errors import EngineError, PlanError
from engine.ibis_backend.compiler import compiler
from engine.statements import statements as kinds
from engine.statements.information_schema import Table, listed_tables
from engine.statements.session import StatementSession

if TYPE_CHECKING:
    from engine.api.data_set import DataSet
    from engine.api.environment import Environment
    from engine.client.job_result import JobResult

_CATALOG, _DATABASE = "drey", "main"
#: kinds of functions of Ibis as those of ``udf``
_FUNCTIONS = {InputType.PYTHON: "scalar", InputType.PYARROW: "arrow", InputType.PANDAS: "pandas"}


class Backend(
    SupportsTempTables, SQLBackend, HasCurrentCatalog, HasCurrentDatabase, NoUrl, DirectPyArrowExampleLoader
):
    """A connection."""

    name = "drey"
    compiler = compiler
    supports_create_or_replace: ClassVar[bool] = True

    # connection ------------------------------------------------------------------------------------------------

    def do_connect(
        self,
        environment: Environment | None = None,
        *,
        target: str | None = None,
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
        """Return the names of a database's tables."""
        place = self._place(database)
        found = [one.name for one in listed_tables(self.environment) if (one.catalog, one.schema) == place]
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

    def raw_sql(self, query: str | sg.Expression, **_: Any) -> DataSet | JobResult | None:
        """Run a statement: return the data set of a query, the job of a change, None for one that took none."""
        text = query if isinstance(query, str) else query.sql(dialect=self.dialect)
        self._log(text)
        (one,) = kinds.split(text)
        statement = kinds.statement(one)
        rows = self._session.rows(statement)
        return self._session.change(statement) if rows is None else rows

    @contextlib.contextmanager
    def _safe_raw_sql(self, query: str | sg.Expression, **_: Any) -> Iterator[Any]:
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
        schema = table.schema().to_pyarrow()

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
        schema = table.schema().to_pyarrow()
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
        return expr.__pyarrow_result__(self._table_of(expr, params, limit))

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
        import pandas as pd

        table = self._table_of(expr, params, limit)
        columns = {
            name: column.to_pylist()
            if pa.types.is_nested(column.type) or column.null_count
            else column.to_pandas()
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
        frame = PandasData.convert_table(pd.DataFrame(columns), expr.as_table().schema())
        return expr.__pandas_result__(frame)

    # tables ----------------------------------------------------------------------------------------------------

    def _register_in_memory_table(self, op: ops.InMemoryTable) -> None:
        self.environment.register(op.name, self.environment.from_arrow(op.data.to_pyarrow(op.schema)))

    def _make_memtable_finalizer(self, name: str) -> Callable[..., None]:
        environment = self.environment

        def forget() -> None:
            if name in environment.tables:
                environment.unregister(name)

        return forget

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
            rows = types.to_pyarrow().empty_table()
            self.environment.register(name, self.environment.from_arrow(rows))
            return self.table(name)
        expr = obj if isinstance(obj, ir.Table) else ibis.memtable(obj, schema=types)
        self._store(name, expr if types is None else expr.cast(dict(types)))
        return self.table(name)

    def _store(self, name: str, expr: ir.Table) -> None:
        self._run_pre_execute_hooks(expr)
        self._session.change(kinds.CreateTable(name, self.compile(expr), replaces=True))

    def _check_is_free(self, name: str, overwrite: bool) -> None:
        if name in self.environment.tables and not overwrite:
            raise com.IbisError(f"table {name!r} is there already; pass overwrite=True")

    def _create_cached_table(self, name: str, expr: ir.Table) -> ir.Table:
        return self.create_table(name, expr, schema=expr.schema())

    def drop_table(
        self, name: str, /, *, database: tuple[str, str] | str | None = None, force: bool = False
    ) -> None:
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

    def insert(
        self, name: str, /, obj: Any, *, database: str | None = None, overwrite: bool = False
    ) -> None:
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
            made = udf(PyArrowType.from_ibis(node.dtype), kind=kind)(node.__func__)
            self.environment.register_function(type(node).__name__, made)


def _paths(paths: Any) -> Any:
    found = normalize_filenames(paths)
    return found[0] if len(found) == 1 else found


def _fitting(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the types of a schema, column by column."""
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
