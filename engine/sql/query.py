"""A query over registered data sets, and over files that it names, as a data set.

    FROM sales                    the data set of env.register("sales", ...)
    FROM 'sales/*.parquet'        what read_table makes of the path
    FROM lake.sales.orders        the table of a catalog, env.attach("lake", ...)

Held by: tests/sql/test_queries.py
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from typing import Final

from engine.api.data_set import DataSet
from engine.api.environment import Environment
from engine.connectors.records_manifest import MANIFEST_NAME
from engine.errors import EngineError, NotYetSupportedError, PlanError
from engine.files.compression import plain_ending
from engine.files.paths import is_hidden, placed_store_errors
from engine.sql.attached import with_attached
from engine.sql.constants import NoFunctionError, NoValueError
from engine.sql.datafusion_planner import plan_query
from engine.sql.lost_meaning import plain_words
from engine.sql.planner_errors import place_of, with_place
from engine.sql.relations import RelationReader
from engine.sql.text_pieces import is_comment, is_quoted, pieces
from engine.storage.file_systems import file_system_of, is_file, is_folder

#: constants such as 0.1 and .5: exact unless the query has floats that would be rounded
_FRACTION: Final = re.compile(r"\.\d|\d\.")
#: constants such as 1e3, which are doubles as in DuckDB
_EXPONENT: Final = re.compile(r"(?<![\w.])(?:\d+\.?\d*|\.\d+)e[+-]?\d", re.IGNORECASE)
_BEFORE_PATH: Final = re.compile(r"\b(?:FROM|JOIN)\s*$", re.IGNORECASE)
#: forms in which FROM has another meaning: a IS DISTINCT FROM 'b', extract(day FROM '2024-01-01')
_NO_PATH: Final = re.compile(
    r"(?:\bDISTINCT|\b(?:EXTRACT|TRIM|SUBSTRING|OVERLAY)\s*\([^()]*)\s+FROM\s*$", re.IGNORECASE
)


def query_data_set(text: str, environment: Environment) -> DataSet:
    """Return the data set of a query; PlanError, SchemaError or NotYetSupportedError for what cannot be one."""
    text, attached = with_attached(text, environment)
    tables = {**environment.tables, **attached}
    for path in paths_in(text):
        if path not in tables:
            tables[path] = read_table(environment, path)
    schemas = {name: data_set.schema for name, data_set in tables.items()}

    def planned(decimal_constants: bool) -> DataSet:
        query = plan_query(text, schemas, decimal_constants)
        try:
            return RelationReader(tables, query, environment.from_arrow).root(query.relation, query.names)
        except NoValueError as error:
            raise PlanError(f"sql: {place_of(repr(error.text), text)}{error.sentence}") from None
        except NoFunctionError as error:
            raise NoFunctionError(error.name, place_of(f"{error.name}(", text)) from None

    try:
        if _FRACTION.search(text) and _has_exact_constants(plain_words(text)):
            with contextlib.suppress(EngineError):
                # a float among the decimals, or more digits than decimals have; what is wrong is said below
                return planned(decimal_constants=True)
        return planned(decimal_constants=False)
    except (PlanError, NotYetSupportedError) as error:
        said = with_place(str(error), text)
        if said == str(error):
            raise
        kind = PlanError if isinstance(error, PlanError) else NotYetSupportedError
        raise kind(said) from None


#: endings of files, by format
_ENDINGS: Final = {
    "csv": (".csv",),
    "json": (".json", ".jsonl", ".ndjson"),
    "ipc": (".arrow", ".arrows", ".feather", ".ipc"),
    "orc": (".orc",),
    "avro": (".avro",),
}


def _has_exact_constants(words: str) -> bool:
    return _FRACTION.search(words) is not None and _EXPONENT.search(words) is None


def paths_in(text: str) -> list[str]:
    """Return the paths behind FROM and JOIN; words of strings and comments are none."""
    found, before = [], ""
    for piece in pieces(text):
        if is_quoted(piece):
            if piece.startswith("'") and _BEFORE_PATH.search(before) and not _NO_PATH.search(before):
                found.append(piece[1:-1])
            before += "''"
        elif not is_comment(piece):
            before += piece
    return found


def format_at(path: str) -> str:
    """Return the format of what lies at a path: by its ending, or that of a file in it; records by their manifest."""
    if is_file(f"{path}/{MANIFEST_NAME}"):
        return "records"
    named = _format_of(path)
    if named or not is_folder(path):
        return named or "parquet"
    return _format_of(_first_file(path)) or "parquet"


def _format_of(path: str) -> str:
    """Return the format that a name says, "" for none or for Parquet."""
    return next((name for name, endings in _ENDINGS.items() if plain_ending(path) in endings), "")


def _first_file(folder: str) -> str:
    """Return the name of a file that readers find in a folder, or in folders of values within it; "" for none."""
    found = (each for each in file_system_of(folder).entries(folder) if not is_hidden(each.name))
    entries = sorted(found, key=lambda each: each.name)
    file = next((each.name for each in entries if each.is_file), "")
    inner = next((each for each in entries if "=" in each.name and each.is_folder), None)
    return file or ("" if inner is None else _first_file(inner.path))


def read_table(environment: Environment, path: str) -> DataSet:
    """Return the data set at a path."""
    with placed_store_errors("sql"):
        file_format = format_at(path)
    if file_format == "csv":
        return environment.read_csv(path, header=True)
    read: Callable[[str], DataSet] = getattr(environment, f"read_{file_format}")
    return read(path)
