"""DataFusion as the planner: told of names and types, it parses, binds, and rewrites subqueries into joins.

    Planner(tables).plan(text) -> PlannedQuery(relation, names, functions, null_aware)

It never sees a row: each table is an empty data set of its schema. What it says of a text is turned into one clear
sentence: its own words are kept, "Error during planning:" and the like are not.

Held by: tests/sql/test_queries.py
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from engine.errors import ConfigurationError, EngineError, NotYetSupportedError, PlanError
from engine.records.plain_types import plain_schema
from engine.sql.constant_overflow import check_constants
from engine.sql.lost_conditions import check_conditions
from engine.sql.lost_meaning import check_bound_plan, check_ranges, check_text, has_correlated_in, plain_words
from engine.sql.marked_membership import UnclearMembershipError, marks_in, with_marks
from engine.sql.null_aware import marks_are_null_aware, null_aware_joins
from engine.sql.set_operations import all_operations

if TYPE_CHECKING:
    from substrait.algebra_pb2 import Rel

#: plans of statements about queries
_NO_QUERIES: Final = {"Explain", "DescribeTable", "Analyze"}
_PREFIX: Final = re.compile(
    r"^((\w+ caused by )?(Error during planning|Schema error|SQL error|This feature is not implemented): *)+"
)
_IN_OUR_WORDS: Final = {
    re.compile(r'^Projections require unique expression names but the expression "(.+?)" at position'): (
        r"two columns of a SELECT are the same, \1; give one of them a name with AS"
    ),
    re.compile(r"No function matches the given name and argument types '(.+?)'\."): (
        r"no function has these types of arguments: \1"
    ),
}
#: the rule that makes joins of them, in errors
_OF_SUBQUERIES: Final = "decorrelate_predicate_subquery"
#: what floats become beside decimals: it is too narrow for some, and rounds the others
_OF_FLOATS: Final = re.compile(r"[(,](?:30, ?15|14, ?7)\)|Decimal256")


class PlannedQuery(NamedTuple):
    """A query as Substrait has it, and what Substrait does not say (see ``null_aware``)."""

    relation: Rel
    names: tuple[str, ...]
    functions: dict[int, str]
    #: numbers of the anti joins that are NOT IN
    null_aware: frozenset[int]
    #: whether the columns of mark joins are IN: true, false or unknown
    marks_are_null_aware: bool
    #: how many IN (SELECT ...) have marks, each of which must be found in a join; None: marks were not needed
    marks: int | None = None
    #: how many INTERSECT ALL and EXCEPT ALL there are: all semi and anti joins are theirs
    all_operations: int = 0


class FloatsAsDecimalsError(EngineError):
    """With constants such as 0.1 as decimals this query would round its floats to decimals."""


def plan_query(text: str, tables: Mapping[str, pa.Schema], decimal_constants: bool = False) -> PlannedQuery:
    """Return the plan of a query over tables of those names and types; ``decimal_constants``: 0.1 is no double.

    Raises: PlanError for a text that is no query over them, NotYetSupportedError for one that Substrait cannot say,
    FloatsAsDecimalsError where constants have to be doubles.
    """
    try:
        return _planned(text, tables, decimal_constants, is_marked=False)
    except UnclearMembershipError as error:
        try:
            return _planned(with_marks(text), tables, decimal_constants, is_marked=True)
        except FloatsAsDecimalsError:
            raise
        except (PlanError, NotYetSupportedError):
            raise error from None


def _planned(text: str, tables: Mapping[str, pa.Schema], decimal_constants: bool, *, is_marked: bool) -> PlannedQuery:
    """Return the plan of a query; UnclearMembershipError where only marks tell which joins are IN."""
    check_text(text)
    operations = all_operations(plain_words(text))
    context, config, options, producer, message, dataset = _imports()
    setting = str(decimal_constants).lower()
    session = context(config().set("datafusion.sql_parser.parse_float_as_decimal", setting))
    words = text.lower()
    for name, schema in tables.items():
        if name.lower() not in words:
            continue  # each table costs its time, and hundreds may be there
        session.register_dataset(f'"{name}"', dataset(plain_schema(schema).empty_table()))
    # nothing that a text says is done: it could read files and make tables
    only_plan = options().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
    try:
        frame = session.sql_with_options(text, only_plan)
        bound = frame.logical_plan()
        bound_text = bound.display_indent()
        check_bound_plan(bound_text, is_marked)
        check_constants(bound_text)
        logical = frame.optimized_logical_plan()
        shown = logical.display_indent()
        check_conditions(bound_text, shown)
    except (NotYetSupportedError, PlanError):
        raise
    except Exception as error:
        if " not supported: " in str(error):
            raise _no_query(text) from None
        if _OF_SUBQUERIES in str(error) and not is_marked:
            raise UnclearMembershipError(
                f"sql: IN (SELECT ...) of this form; write EXISTS ({_reason(error)})"
            ) from None
        raise PlanError(f"sql: {_with_tables(_reason(error), tables)}") from None
    if type(logical.to_variant()).__name__ in _NO_QUERIES:
        raise _no_query(text)
    if decimal_constants and _OF_FLOATS.search(shown):
        raise FloatsAsDecimalsError("sql: constants have to be doubles")
    try:
        encoded = producer.to_substrait_plan(logical, session).encode()
    except Exception as error:
        raise NotYetSupportedError(f"sql: this query ({_in_short(_reason(error))})") from None
    plan = message()
    plan.ParseFromString(encoded)
    root = plan.relations[0].root
    check_ranges(shown, root.input)
    functions = {one.extension_function.function_anchor: one.extension_function.name for one in plan.extensions}
    if is_marked:
        return PlannedQuery(root.input, tuple(root.names), functions, frozenset(), False, marks_in(bound_text))
    null_aware = null_aware_joins(logical, root.input)
    marks = marks_are_null_aware(bound, shown, root.input)
    if (null_aware or marks) and has_correlated_in(bound_text):
        raise UnclearMembershipError("sql: NOT IN with a query that depends on the row outside (write NOT EXISTS)")
    return PlannedQuery(root.input, tuple(root.names), functions, null_aware, marks, all_operations=operations)


def _with_tables(reason: str, tables: Collection[str]) -> str:
    """Return what is wrong, with the names of tables where one is missing."""
    return f"{reason}; there are {', '.join(sorted(tables))}" if reason.startswith("table '") and tables else reason


def _reason(error: Exception) -> str:
    text = str(error).removeprefix("DataFusion error: ")
    text = _PREFIX.sub("", text)
    for pattern, words in _IN_OUR_WORDS.items():
        if found := pattern.search(text):
            return found.expand(words)
    parser = re.fullmatch(r'ParserError\("(.*?)(?: at Line: (\d+), Column: (\d+))?"\)', text, re.DOTALL)
    if parser is None:
        plain = " ".join(text.replace("datafusion.public.", "").split()).rstrip(".")
        return f"{plain[:1].lower()}{plain[1:]}"
    place = f"line {parser[2]}, column {parser[3]}: " if parser[2] else ""
    return f"{place}{parser[1][:1].lower()}{parser[1][1:]}"


def _in_short(reason: str) -> str:
    """Return what is said of a plan that has no form in Substrait, without the plan."""
    if "join constraint: `using`" in reason.lower():
        return "USING of a LEFT, RIGHT or FULL JOIN; write ON a.k = b.k, and coalesce(a.k, b.k) for the key"
    if "OuterReferenceColumn" in reason:
        return "EXISTS or IN in a list of SELECT that looks at columns outside; write a join"
    quoted = re.search(r'"((?:[^"\\]|\\.)*)', reason)
    text = quoted[1] if quoted else reason
    return re.split(r"[{\[]", text, maxsplit=1)[0].strip(" :.")[:120] or "the planner has no form for it"


def _no_query(text: str) -> NotYetSupportedError:
    return NotYetSupportedError(
        f"sql: {text.split(maxsplit=1)[0].upper()} (a query begins with SELECT, WITH or VALUES)"
    )


def _imports() -> tuple[Any, Any, Any, Any, Any, Any]:
    """Return session, settings, options, writer of Substrait, its message, maker of tables; only queries load them."""
    from pyarrow.dataset import dataset  # noqa: PLC0415

    try:
        from datafusion import SessionConfig, SessionContext, SQLOptions  # noqa: PLC0415
        from datafusion.substrait import Producer  # noqa: PLC0415
        from substrait.plan_pb2 import Plan  # noqa: PLC0415
    except ImportError as error:
        raise ConfigurationError(f"sql needs the extra: pip install 'drey[sql]' ({error})") from None
    return SessionContext, SessionConfig, SQLOptions, Producer, Plan, dataset
