"""DataFusion as the planner: told of names and types, it parses, binds, and rewrites subqueries into joins.

    Planner(tables).plan(text) -> PlannedQuery(relation, names, functions, null_aware)

It never sees a row: each table is a batch of its schema without any. Some forms are written otherwise before it reads
them (``written_otherwise``), and what it says of a text is turned into one clear sentence (``planner_errors``).

Held by: tests/sql/test_queries.py
"""

from __future__ import annotations

import contextlib
import re
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from engine.errors import ConfigurationError, EngineError, NotYetSupportedError, PlanError
from engine.records.plain_scalars import no_values, without_pandas
from engine.records.plain_types import plain_schema
from engine.sql.aliases import with_alias_written_out
from engine.sql.coercions import written_decimals
from engine.sql.common_conditions import with_common_conditions
from engine.sql.constant_overflow import check_constants
from engine.sql.known_calls import CallError, with_known_calls
from engine.sql.lost_conditions import MovedConditionError, check_conditions, check_moved_constants
from engine.sql.lost_meaning import (
    SameTableError,
    check_bound_plan,
    check_ranges,
    check_text,
    has_correlated_in,
    plain_words,
)
from engine.sql.marked_membership import UnclearMembershipError, marks_in, with_marks
from engine.sql.missing_forms import IN_TEXT, NO_QUERIES, STATEMENTS
from engine.sql.null_aware import marks_are_null_aware, null_aware_joins
from engine.sql.null_treatment import with_null_treatment
from engine.sql.other_words import in_common_words
from engine.sql.own_functions import register_own_functions
from engine.sql.planner_errors import in_sql, is_of_parser, place_of, said, unknown_column
from engine.sql.rows_compared import with_rows_compared
from engine.sql.same_names import are_same_names, told_apart
from engine.sql.select_items import written_names
from engine.sql.set_operations import all_operations
from engine.sql.types import told_schema
from engine.sql.unnested import register_positions, with_unnested
from engine.sql.using_joins import UNFIT, with_using_joins
from engine.sql.written_otherwise import exists_as_count, in_known_words, with_rows_named
from engine.sql.zone_calls import (
    ZonedTypeError,
    as_written,
    check_zoned_type,
    register_zone_calls,
    with_zone_calls,
)

if TYPE_CHECKING:
    from substrait.algebra_pb2 import Rel

#: plans of statements about queries
_NO_QUERIES: Final = {"Explain", "DescribeTable", "Analyze"}
#: a table in the text of a plan
_SCANNED: Final = re.compile(r"TableScan: (.*)")
#: rules of the planner that are off, since Drey does their work: the planner's constants would differ from columns, it
#: drops casts that round, and some functions need a constant that it makes a column
_OWN_RULES: Final = ("simplify_expressions", "common_sub_expression_eliminate")
#: the rule that brings conditions to the rows, also below an aggregate without groups
_MOVES_CONDITIONS: Final = "push_down_filter"
#: the rule that makes one list of joins that follow each other; with one by IS NOT DISTINCT FROM among them, null
#: becomes equal to null in all of them
_LISTS_JOINS: Final = "eliminate_cross_join"
_NULL_SAFE: Final = "IS NOT DISTINCT FROM"
#: the rule that makes joins of them, in errors
_OF_SUBQUERIES: Final = "decorrelate_predicate_subquery"
#: types that floats become beside decimals, too narrow for some of them; others would be rounded
_OF_FLOATS: Final = re.compile(r"[(,](?:30, ?15|14, ?7)\)|Decimal256")


class PlannedQuery(NamedTuple):
    """A query as Substrait has it, and what Substrait does not say (see ``null_aware``)."""

    relation: Rel
    names: tuple[str, ...]
    functions: dict[int, str]
    #: numbers of the anti joins that are NOT IN
    null_aware: frozenset[int]
    #: True if the columns of mark joins are IN: true, false or unknown
    marks_are_null_aware: bool
    #: number of IN (SELECT ...) that have marks, each of which must be found in a join; None: marks were not needed
    marks: int | None = None
    #: number of INTERSECT ALL and EXCEPT ALL: all semi and anti joins are theirs
    all_operations: int = 0
    #: precision and scale of the decimals that it casts to itself
    decimals: frozenset[tuple[int, int]] = frozenset()
    #: True if queries stand in its expressions
    has_values: bool = True


#: plans of texts
_REMEMBERED: Final = 256
#: limit of plans made for one text as more is learned about it
_MOST_CHANGES: Final = 64


class FloatsAsDecimalsError(EngineError):
    """The query would round its floats if constants such as 0.1 were decimals."""


class UnknownColumnError(PlanError):
    """A query names a column that no table has."""

    def __init__(self, sentence: str, name: str) -> None:
        super().__init__(sentence)
        self.name = name


class SameNamesError(PlanError):
    """The planner takes two values of a query for one."""


class OuterColumnsError(NotYetSupportedError):
    """The planner made no join of a query that looks at columns outside."""


def plan_query(text: str, tables: Mapping[str, pa.Schema], decimal_constants: bool = False) -> PlannedQuery:
    """Return the plan of a query over tables of those names and types; ``decimal_constants``: 0.1 is no double.

    Raises: PlanError for a text that is no query over them, NotYetSupportedError for one that Substrait cannot say,
    FloatsAsDecimalsError where constants have to be doubles.
    """
    words = text.lower()
    named = frozenset((name, schema) for name, schema in tables.items() if name.lower() in words)
    return _known_plans.of((text, decimal_constants, named), lambda: _plan(text, tables, decimal_constants))


class _KnownPlans:
    """The plans of texts that were asked last; they are of names and types, so rows may be others by now."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: guarded by: self._lock
        self._found: OrderedDict[Hashable, PlannedQuery] = OrderedDict()

    def of(self, key: Hashable, plan: Callable[[], PlannedQuery]) -> PlannedQuery:
        """Return the cached plan of a key, or the result of a function."""
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key]
        found = plan()
        with self._lock:
            self._found[key] = found
            if len(self._found) > _REMEMBERED:
                self._found.popitem(last=False)
        return found


_known_plans: Final = _KnownPlans()


def _plan(text: str, tables: Mapping[str, pa.Schema], decimal_constants: bool) -> PlannedQuery:
    if NO_QUERIES.match(text):
        raise _no_query(text)
    plain = plain_words(text)
    for form, sentence, word in IN_TEXT:
        if form.search(plain):
            raise NotYetSupportedError(f"sql: {place_of(word, text)}{sentence}")
    asked, written, are_told_apart = _Asked(text, tables, decimal_constants, {}), text, False
    first: PlanError | None = None
    for _ in range(_MOST_CHANGES):
        try:
            return _with_zones(asked, written)
        except ZonedTypeError as error:
            asked.zoned[error.number] = error.data_type
        except UnknownColumnError as error:
            first, before = first or error, written
            written = with_alias_written_out(written, error.name)
            if written == before:
                break
        except SameNamesError as error:
            if are_told_apart:
                break
            first, are_told_apart, written = first or error, True, told_apart(written)
    if first is not None:
        raise PlanError(str(first)) from None
    raise PlanError("sql: too many AT TIME ZONE in one query; part it with env.register(name, data)")


def _with_zones(asked: _Asked, text: str) -> PlannedQuery:
    written = in_known_words(in_common_words(with_unnested(with_null_treatment(text))))
    written = with_rows_compared(with_using_joins(written, asked.tables))
    try:
        known = with_zone_calls(with_known_calls(written), asked.zoned)
    except CallError as error:
        raise PlanError(f"sql: {place_of(f'{error.name}(', asked.text)}{error.sentence}") from None
    try:
        return _with_marks_if_needed(asked, known)
    except SameTableError as error:
        try:
            return _with_marks_if_needed(asked, with_rows_named(known))
        except (PlanError, NotYetSupportedError):
            raise error from None
    except OuterColumnsError as error:
        counted = exists_as_count(with_common_conditions(known))
        if counted == known:
            raise
        try:
            return _with_marks_if_needed(asked, counted)
        except NotYetSupportedError:
            raise error from None


class _Asked(NamedTuple):
    """The query as it was asked: its original text, to which the places in errors belong."""

    text: str
    tables: Mapping[str, pa.Schema]
    decimal_constants: bool
    #: types of the values before AT TIME ZONE
    zoned: dict[int, pa.DataType]
    #: True if conditions may be moved to where there are fewer columns
    moves_conditions: bool = True
    lists_joins: bool = True


def _with_marks_if_needed(asked: _Asked, text: str) -> PlannedQuery:
    try:
        return _planned(asked, text, is_marked=False)
    except UnclearMembershipError as error:
        try:
            return _planned(asked, with_marks(text), is_marked=True)
        except FloatsAsDecimalsError:
            raise
        except (PlanError, NotYetSupportedError):
            raise error from None


def _planned(asked: _Asked, text: str, *, is_marked: bool) -> PlannedQuery:
    """Return the plan of a query; UnclearMembershipError where only marks tell which joins are IN."""
    try:
        return _planned_once(asked, text, is_marked=is_marked)
    except MovedConditionError:
        return _planned_once(asked._replace(moves_conditions=False), text, is_marked=is_marked)


def _planned_once(asked: _Asked, text: str, *, is_marked: bool) -> PlannedQuery:
    check_text(text)
    operations = all_operations(plain_words(text))
    session, parse = _session(asked, text)
    try:
        frame = parse(text)
        bound = frame.logical_plan()
        bound_text = bound.display_indent()
        if asked.lists_joins and _NULL_SAFE in bound_text:
            return _planned_once(asked._replace(lists_joins=False), text, is_marked=is_marked)
        check_bound_plan(bound_text, is_marked)
        check_constants(bound_text)
        logical = frame.optimized_logical_plan()
        shown = logical.display_indent()
        if asked.moves_conditions:
            check_conditions(bound_text, shown)
    except (NotYetSupportedError, PlanError):
        raise
    except Exception as error:
        check_zoned_type(error, asked.zoned)
        raise _refusal(error, asked, text, parse, is_marked) from None
    if type(logical.to_variant()).__name__ in _NO_QUERIES:
        raise _no_query(text)
    if asked.decimal_constants and (_OF_FLOATS.search(shown)):
        raise FloatsAsDecimalsError("sql: constants have to be doubles")
    plan = _substrait(logical, session)
    root = plan.relations[0].root
    check_ranges(shown, root.input)
    functions = {
        one.extension_function.function_anchor: one.extension_function.name
        for one in plan.extensions
        if one.HasField("extension_function")  # others are types
    }
    if asked.moves_conditions:
        check_moved_constants(bound_text, root.input, functions)
    # without the names of fields, which those of Substrait have, too
    planned = [as_written(in_sql(name)) for name in frame.schema().names]
    names = tuple(written_names(asked.text, planned))
    scanned = frozenset(_SCANNED.findall(bound_text))
    decimals = written_decimals(bound_text, (asked.tables[name] for name in scanned.intersection(asked.tables)))
    if is_marked:
        marks_in_text = marks_in(bound_text)
        return PlannedQuery(root.input, names, functions, frozenset(), False, marks_in_text, decimals=decimals)
    null_aware = null_aware_joins(logical, root.input)
    marks = marks_are_null_aware(bound, shown, root.input)
    if (null_aware or marks) and has_correlated_in(bound_text):
        raise UnclearMembershipError("sql: NOT IN with a query that depends on the row outside (write NOT EXISTS)")
    return PlannedQuery(
        root.input,
        names,
        functions,
        null_aware,
        marks,
        all_operations=operations,
        decimals=decimals,
        has_values="(<subquery>)" in shown,
    )


def _refusal(error: Exception, asked: _Asked, text: str, parse: Callable[[str], Any], is_marked: bool) -> EngineError:
    """Return the error about a query that the planner rejects."""
    if " not supported: " in str(error):
        return _no_query(text)
    if _OF_SUBQUERIES in str(error) and not is_marked:
        return UnclearMembershipError("sql: IN (SELECT ...) of this form; write EXISTS")
    sentence = f"sql: {_said(error, asked, text, parse)}"
    if are_same_names(error):
        return SameNamesError(sentence)
    unknown = unknown_column(error)
    return PlanError(sentence) if unknown is None else UnknownColumnError(sentence, unknown)


def _session(asked: _Asked, text: str) -> tuple[Any, Callable[[str], Any]]:
    """Return a session that knows the tables which a text may name, and its parser."""
    context, config, options = _planner()
    setting = str(asked.decimal_constants).lower()
    settings = config().set("datafusion.sql_parser.parse_float_as_decimal", setting)
    session = context(settings.set("datafusion.execution.time_zone", "UTC"))
    register_zone_calls(session, text, asked.zoned)
    register_own_functions(session, text)
    register_positions(session, text)
    others = [(_MOVES_CONDITIONS, asked.moves_conditions), (_LISTS_JOINS, asked.lists_joins)]
    for rule in (*_OWN_RULES, *(rule for rule, is_kept in others if not is_kept)):
        session.remove_optimizer_rule(rule)
    words = text.lower()
    for name, schema in asked.tables.items():
        if name.lower() not in words:
            continue  # each table costs its time, and hundreds may be there
        session.register_record_batches(f'"{name}"', [[_no_rows(told_schema(plain_schema(schema)))]])
    # nothing that a text says is done: it could read files and make tables
    only_plan = options().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
    return session, lambda one: session.sql_with_options(one, only_plan)


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.record_batch([no_values(one) for one in schema.types], schema=schema)


def _substrait(logical: Any, session: Any) -> Any:
    """Return the message of a plan."""
    from datafusion.substrait import Producer
    from substrait.plan_pb2 import Plan

    try:
        encoded = Producer.to_substrait_plan(logical, session).encode()
    except Exception as error:
        if "OuterReferenceColumn" in str(error):
            raise OuterColumnsError(
                "sql: a query that looks at columns outside in this place or by more than equality; write a join"
            ) from None
        raise NotYetSupportedError(f"sql: {_in_short(str(error))}") from None
    plan = Plan()
    try:
        with _any_depth():
            plan.ParseFromString(encoded)
    except Exception as error:
        what = "a query whose expressions or queries are nested too deep; part it with env.register(name, data)"
        raise NotYetSupportedError(f"sql: {what}") from error
    return plan


@contextlib.contextmanager
def _any_depth() -> Iterator[None]:
    """Allow messages of any depth, which come from this process: a AND b AND c is nested."""
    try:
        reader = import_module("google._upb._message")
    except ImportError:
        yield  # other readers have no bound, or none that can be changed
        return
    reader.SetAllowOversizeProtos(True)
    try:
        yield
    finally:
        reader.SetAllowOversizeProtos(False)


def _said(error: Exception, asked: _Asked, text: str, parse: Callable[[str], Any]) -> str:
    """Return the message; the place where the parser stopped is one of the original text."""
    if is_of_parser(error) and text != asked.text:
        try:
            parse(asked.text)
        except Exception as as_written:
            error = as_written
    return said(error, asked.text, asked.tables)


def _in_short(reason: str) -> str:
    """Return the message about a plan that has no form in Substrait, without the plan."""
    if "join constraint: `using`" in reason.lower():
        return UNFIT
    if "RecursiveQuery" in reason:
        return "WITH RECURSIVE; write a loop over env.sql(...) in Python"
    if "FieldNotFound" in reason:
        return "a query within two others that looks at the outermost one; write a join"
    if "Unsupported plan type: <subquery>" in reason:
        return "LATERAL of this form (write a join, or a window over the rows)"
    if "Unnest" in reason:
        return "unnest(); write data.explode(column)"
    quoted = re.search(r'"((?:[^"\\]|\\.)*)', reason)
    text = quoted[1] if quoted else reason
    found = re.split(r"[{\[]", text, maxsplit=1)[0].strip(" :.")[:120]
    return f"this query ({found or 'the planner has no form for it'})"


def _no_query(text: str) -> NotYetSupportedError:
    word = text.split(maxsplit=1)[0].upper()
    instead = f"; write {STATEMENTS[word]}" if word in STATEMENTS else ""
    return NotYetSupportedError(f"sql: {word} (a query begins with SELECT, FROM, WITH or VALUES{instead})")


def _planner() -> tuple[Any, Any, Any]:
    """Return session, settings, options; only queries load them."""
    try:
        with without_pandas() if "datafusion" not in sys.modules else contextlib.nullcontext():
            from datafusion import SessionConfig, SessionContext, SQLOptions

        import_module("substrait.plan_pb2")
    except ImportError as error:
        raise ConfigurationError(f"sql needs the extra: pip install 'drey-engine[sql]' ({error})") from None
    return SessionContext, SessionConfig, SQLOptions
