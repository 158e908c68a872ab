"""Files in FROM with options: ``FROM read_csv('sales/*.csv', delimiter = ';', null_values = ['-', 'n/a'])``.

    named_options(statement)              options are arguments by name, not comparisons of columns
    reader_rows(environment, node, ...)   the rows of Environment's call of the same name

The first argument is a path or a list of paths; the others are options of the call in Python, with its names and its
errors: numbers, texts, true and false, lists, parameters, and ``{'price': '-'}`` for what is by column. A schema is
one of names and types: ``schema = {'id': 'BIGINT', 'name': 'VARCHAR'}``. As in ``FROM 'a.csv'``, ``read_csv`` takes the
first line for a header unless ``header = false``.

Held by: tests/sql/test_reader_calls.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import sqlglot
from sqlglot import exp

from engine.dialects.parser import nodes_in, sentence
from engine.errors import ConfigurationError, EngineError, PlanError, SchemaError
from engine.near_names import did_you_mean
from engine.sql_values.data_types import arrow_type
from engine.statements.attached import check_files

if TYPE_CHECKING:
    from engine.api.data_set import DataSet
    from engine.api.environment import Environment

#: calls of Environment that read files
_KINDS: Final = ("csv", "parquet", "json", "text", "ipc", "orc", "avro", "records", "delta", "excel", "fwf")
READERS: Final = tuple(f"read_{kind}" for kind in _KINDS)
#: options that are folders or files
_PATHS: Final = ("bad_rows_path",)


def named_options(statement: exp.Expr) -> None:
    """Make ``name = value`` among the arguments of a reader in FROM an argument by name, as ``name := value`` is."""
    for table in nodes_in(statement, exp.Table):
        call = table.this
        if isinstance(call, exp.Anonymous) and call.name.lower().startswith("read_"):
            call.set("expressions", [_named(each) for each in call.expressions])


def _named(node: exp.Expr) -> exp.Expr:
    is_named = isinstance(node, exp.EQ) and isinstance(node.this, exp.Column) and not node.this.table
    return exp.Kwarg(this=exp.var(node.this.name), expression=node.expression) if is_named else node


def reader_rows(environment: Environment, node: exp.Table, values: Mapping[str, Any], text: str) -> DataSet:
    """Return the rows of a function in FROM. Raises: PlanError for another function, its arguments, and files."""
    call = node.this
    name = str(call.name).lower()
    if name not in READERS:
        near = did_you_mean(name, READERS)
        said = f"no table {name}(); a file stands in single quotes: FROM 'path'{near}"
        raise PlanError(sentence(call, said, text))
    try:
        places = [_value(each, values) for each in call.expressions if not isinstance(each, _BY_NAME)]
        options = {each.name.lower(): _value(each.expression, values) for each in call.expressions if _is_named(each)}
        if len(places) != 1 or not places[0]:
            raise PlanError(f"{name}() takes a path, or a list of paths, and options behind it: delimiter = ';'")
        (place,) = places
        for path in [*(place if isinstance(place, list) else [place]), *(options.get(each) for each in _PATHS)]:
            if path is not None:
                check_files(environment, str(path))
        if "schema" in options:
            options["schema"] = _schema(options["schema"], name)
        if name == "read_csv":
            options.setdefault("header", True)
        read: Callable[..., DataSet] = getattr(environment, name)
        return read(place, **options)
    except (TypeError, PlanError, ConfigurationError, SchemaError) as error:
        kind = type(error) if isinstance(error, EngineError) else PlanError
        said = str(error).removeprefix("sql: ")
        raise kind(sentence(call, said, text)) from None


_BY_NAME: Final = exp.Kwarg | exp.PropertyEQ


def _is_named(node: exp.Expr) -> bool:
    return isinstance(node, _BY_NAME)


def _value(node: exp.Expr, values: Mapping[str, Any]) -> Any:
    """Return the value of a constant. Raises: PlanError for another expression."""
    inner = node.unnest()
    match inner:
        case exp.Placeholder() | exp.Parameter():
            return values[inner.name]
        case exp.Boolean():
            return bool(inner.this)
        case exp.Null():
            return None
        case exp.Literal() if inner.is_string:
            return inner.name
        case exp.Literal():
            return int(inner.name) if inner.name.isdecimal() else float(inner.name)
        case exp.Neg():
            return -_value(inner.this, values)
        case exp.Array():
            return [_value(each, values) for each in inner.expressions]
        case exp.Struct():
            return {each.name: _value(each.expression, values) for each in inner.expressions if _is_named(each)}
    raise PlanError(f"{inner.sql()} is no value of an option; write a text in single quotes, a number or a list")


def _schema(given: Any, name: str) -> pa.Schema:
    if not isinstance(given, dict) or not given:
        raise SchemaError(f"{name}: schema is not of the form {{'id': 'BIGINT', 'name': 'VARCHAR'}}")
    return pa.schema([(column, _type(written, column, name)) for column, written in given.items()])


def _type(written: Any, column: str, name: str) -> pa.DataType:
    try:
        return arrow_type(exp.DataType.build(str(written), dialect="duckdb"))
    except (sqlglot.errors.ParseError, EngineError) as error:
        said = str(error).removeprefix("sql: ").partition("\n")[0]
        raise SchemaError(f"{name}: schema: column {column!r}: {written!r} is no type of SQL: {said}") from None
