"""Random plans for hypothesis, with the tables they read. All columns are int64, values small, nulls common."""

from __future__ import annotations

from hypothesis import strategies as st

from engine.graph.expression import Case, ColumnRef, Expression
from engine.graph.plan import Plan
from engine.graph.plan_schema import PlanSchema
from engine.graph.said_operators import JoinHint, JoinType
from engine.graph.source_spec import ColumnStatistics
from engine.optimizer.join_alternatives import CORRECT_PAIRS, HINTED
from tests.optimizer.interpreter import Tables
from tests.optimizer.plan_building import Builder, call, column, lit, schema

TABLES = ("left.parquet", "right.parquet")
COLUMNS = ("k", "v", "w")
#: so few values that rows are grouped before joins
KNOWN = {name: ColumnStatistics(distinct_count=4) for name in COLUMNS}
#: sizes of small parts (tables have some hundred bytes, or two million): all is in one subtask, some of it, none
SMALL_PART_BYTES = (None, 0, 300, 1000, 3_000_000)
VALUES = st.sampled_from([None, 0, 1, 1, 2, 3])


@st.composite
def tables(draw: st.DrawFn) -> Tables:
    rows = st.lists(st.fixed_dictionaries(dict.fromkeys(COLUMNS, VALUES)), min_size=1, max_size=8)
    return {name: draw(rows) for name in TABLES}


def _predicate(draw: st.DrawFn, names: tuple[str, ...]) -> Expression:
    first, second = draw(st.sampled_from(names)), draw(st.sampled_from(names))
    return draw(
        st.sampled_from(
            [
                call("greater", first, lit(1)),
                call("equal", first, second),
                call("is_null", first),
                call("and", call("less", first, lit(3)), call("is_not_null", second)),
                call("or", call("is_null", first), call("less", second, lit(2))),
                call("and", call("not", call("equal", first, lit(0))), call("greater", second, lit(0))),
            ]
        )
    )


def _fresh(builder: Builder) -> str:
    return f"c{len(builder.nodes)}"


def _project(draw: st.DrawFn, builder: Builder, source: int) -> int:
    names = builder.schema(source).names
    kept = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    fresh = _fresh(builder)
    computed = draw(
        st.sampled_from(
            [
                [],
                [(column(fresh), ColumnRef(names[0]))],
                [(column(fresh), call("add", names[-1], lit(1)))],
                [(column(fresh), Case(((call("greater", names[0], lit(0)), call("divide", lit(6), names[0])),)))],
            ]
        )
    )
    return builder.project(source, *kept, *computed)


HINTS: dict[JoinType, tuple[JoinHint, ...]] = {
    how: tuple(hint for hint, (pair, _) in HINTED.items() if pair in pairs) for how, pairs in CORRECT_PAIRS.items()
}


def _join(draw: st.DrawFn, builder: Builder, left: int, right: int) -> int:
    how = draw(st.sampled_from(JoinType))
    null_aware = how is JoinType.ANTI and draw(st.booleans())
    hints = (JoinHint.BROADCAST_HASH_SECOND,) if null_aware else HINTS[how]
    hint = draw(st.sampled_from([JoinHint.OPTIMIZER_CHOOSES, *hints]))
    key = draw(st.sampled_from(builder.schema(left).names))
    right_key = draw(st.sampled_from(builder.schema(right).names))
    suffix = _fresh(builder)
    coalesce = how is not JoinType.CROSS and draw(st.booleans())
    new_names = {name: f"{name}_{suffix}" for name in builder.schema(right).names}
    if coalesce:
        new_names[right_key] = key
    renamed = builder.project(
        right, *((column(new_names[name]), ColumnRef(name)) for name in builder.schema(right).names)
    )
    condition = None
    if not null_aware and draw(st.booleans()):
        pair_names = tuple(dict.fromkeys((*builder.schema(left).names, *builder.schema(renamed).names)))
        condition = _predicate(draw, pair_names)
    keys = {"on": key} if coalesce else {"left_on": key, "right_on": new_names[right_key]}
    return builder.join(left, renamed, how=how, hint=hint, condition=condition, null_aware=null_aware, **keys)


def _grouping_sets(draw: st.DrawFn, builder: Builder, source: int) -> int:
    """Groups by some columns, by fewer of them and by none, in any order, and their union."""
    names = builder.schema(source).names
    keys = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    function, argument = draw(st.sampled_from([("count_all", None), ("max", names[-1]), ("count", names[0])]))
    fresh = _fresh(builder)
    parts = []
    for kept in draw(st.permutations([keys[:count] for count in range(len(keys), -1, -1)])):
        groups = builder.aggregate(source, tuple(kept), (function, argument))
        value = builder.schema(groups).names[-1]
        columns = [(column(key), ColumnRef(key) if key in kept else lit(0)) for key in keys]
        parts.append(builder.project(groups, *columns, (column(f"n{fresh}"), ColumnRef(value))))
    return builder.union(*parts)


def _step(draw: st.DrawFn, builder: Builder, nodes: list[int]) -> int:
    # mostly the newest node, so that plans are deep and little of them is left unused
    source = draw(st.sampled_from([*nodes, *[nodes[-1]] * 8]))
    names = builder.schema(source).names
    kinds = ["project", "filter", "filter", "filter", "guarded", "join", "join", "aggregate", "sets", "union", "sort"]
    kinds += ["map", "joined groups"]
    kind = draw(st.sampled_from(kinds))
    if kind == "project":
        return _project(draw, builder, source)
    if kind == "filter":
        return builder.filter(source, _predicate(draw, names))
    if kind == "guarded":
        # the second filter would raise on rows that the first one keeps away from it
        name = draw(st.sampled_from(names))
        guarded = builder.filter(source, call("not", call("equal", name, lit(0))))
        return builder.filter(guarded, call("greater", call("divide", lit(6), name), lit(2)))
    if kind == "join":
        return _join(draw, builder, source, draw(st.sampled_from(nodes)))
    if kind == "joined groups":
        source = _join(draw, builder, source, draw(st.sampled_from(nodes)))
        names = builder.schema(source).names
    if kind in ("aggregate", "joined groups"):
        keys = tuple(draw(st.lists(st.sampled_from(names), max_size=2, unique=True)))
        function = draw(st.sampled_from(["sum", "count", "min", "max", "count_all"]))
        argument = None if function == "count_all" else draw(st.sampled_from(names))
        return builder.aggregate(source, keys, (function, argument))
    if kind == "sets":
        return _grouping_sets(draw, builder, source)
    if kind == "union":
        other = builder.filter(source, _predicate(draw, names))
        return builder.union(source, other)
    if kind == "sort":
        # by all columns, so that ties are equal rows and a limit has one answer
        limit = draw(st.sampled_from([None, None, 3]))
        ordered = builder.sort(source, *names, limit=limit)
        if draw(st.booleans()):
            ordered = builder.limit(ordered, draw(st.integers(0, 4)))
        return ordered
    return builder.python(source)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    builder = Builder()
    source_schema: PlanSchema = schema(**dict.fromkeys(COLUMNS, "int64"))
    nodes = [
        builder.source(
            source_schema,
            path=path,
            rows=draw(st.sampled_from([10, 100_000])),
            splits=splits,
            columns=draw(st.sampled_from([{}, KNOWN])),
        )
        for path, splits in zip(TABLES, (4, draw(st.sampled_from([1, 4]))), strict=True)
    ]
    for _ in range(draw(st.integers(2, 9))):
        nodes.append(_step(draw, builder, nodes))
    builder.sink(nodes[-1])
    if draw(st.booleans()):
        builder.sink(draw(st.sampled_from(nodes)), "second")
    return builder.plan()
