"""Builds plans for tests without pyarrow: a small fluent layer over engine.graph.plan."""

from __future__ import annotations

import msgspec

from engine.graph.expression import AggregateCall, Call, ColumnRef, Expression, Literal, NamedExpression
from engine.graph.plan import (
    Aggregate,
    Filter,
    Join,
    Limit,
    Operator,
    Plan,
    PlanNode,
    Project,
    PythonFunction,
    Sink,
    Sort,
    Source,
    Union,
)
from engine.graph.plan_schema import ColumnInfo, PlanSchema
from engine.graph.said_operators import JoinHint, JoinType
from engine.graph.sort_key import SortKey
from engine.graph.source_spec import ColumnStatistics, ParquetSource, SinkSpec, SourceSplit, SourceStatistics

WIDTHS = {"int64": 8, "int32": 4, "uint64": 8, "double": 8, "bool": 1, "string": 16}


def column(name: str, type_text: str = "int64", nullable: bool = True) -> ColumnInfo:
    return ColumnInfo(
        name, type_text, WIDTHS[type_text], type_text != "string", nullable, True, f"ipc:{type_text}".encode()
    )


def schema(**types: str) -> PlanSchema:
    return PlanSchema(tuple(column(name, type_text) for name, type_text in types.items()))


def lit(value: bool | int | float | str) -> Literal:
    return Literal(b"ipc", str(value), value)


def call(function: str, *arguments: Expression | str) -> Call:
    return Call(function, tuple(ColumnRef(each) if isinstance(each, str) else each for each in arguments))


class Builder:
    """Collects nodes; methods return the id of the node they add."""

    def __init__(self) -> None:
        self.nodes: list[PlanNode] = []
        self.sinks: list[int] = []

    def add(self, operator: Operator, inputs: tuple[int, ...], node_schema: PlanSchema, **rest: object) -> int:
        self.nodes.append(PlanNode(len(self.nodes), operator, inputs, node_schema, **rest))
        return len(self.nodes) - 1

    def schema(self, node: int) -> PlanSchema:
        return self.nodes[node].schema

    def source(
        self,
        node_schema: PlanSchema,
        rows: float | None = 1000,
        size: float | None = None,
        splits: int = 4,
        columns: dict[str, ColumnStatistics] | None = None,
        path: str = "data/part.parquet",
        rate_limit: float | None = None,
        **rest: object,
    ) -> int:
        parts = tuple(SourceSplit(path, index, index + 1, 1000) for index in range(splits))
        spec = ParquetSource((path,), parts, node_schema.names)
        if size is None and rows is not None:
            size = rows * node_schema.row_width_bytes
        statistics = SourceStatistics(rows, size, "parquet metadata", True, columns or {})
        return self.add(Source(spec, statistics, rate_limit=rate_limit), (), node_schema, **rest)

    def project(self, source: int, *columns: str | tuple[ColumnInfo, Expression], **rest: object) -> int:
        named, infos = [], []
        for each in columns:
            if isinstance(each, str):
                infos.append(self.schema(source).column(each))
                named.append(NamedExpression(each, ColumnRef(each)))
            else:
                infos.append(each[0])
                named.append(NamedExpression(each[0].name, each[1]))
        return self.add(Project(tuple(named)), (source,), PlanSchema(tuple(infos)), **rest)

    def filter(self, source: int, predicate: Expression, **rest: object) -> int:
        return self.add(Filter(predicate), (source,), self.schema(source), **rest)

    def python(self, source: int, kind: str = "map", out: PlanSchema | None = None, **rest: object) -> int:
        function = PythonFunction(kind, b"pickle", "fn", "job.py", 7)
        return self.add(function, (source,), out or self.schema(source), **rest)

    def join(
        self,
        left: int,
        right: int,
        on: str | None = None,
        how: JoinType = JoinType.INNER,
        hint: JoinHint = JoinHint.OPTIMIZER_CHOOSES,
        left_on: str = "",
        right_on: str = "",
        condition: Expression | None = None,
        null_aware: bool = False,
        **rest: object,
    ) -> int:
        left_keys, right_keys = (on or left_on,), (on or right_on,)
        if how is JoinType.CROSS:
            on, left_keys, right_keys = None, (), ()
        right_columns = [each for each in self.schema(right).columns if not (on is not None and each.name == on)]
        if how in (JoinType.SEMI, JoinType.ANTI):
            right_columns = []
        output = PlanSchema((*self.schema(left).columns, *right_columns))
        operator = Join(how, left_keys, right_keys, on is not None, hint, condition, null_aware)
        return self.add(operator, (left, right), output, **rest)

    def aggregate(self, source: int, keys: tuple[str, ...], *calls: tuple[str, str | None], **rest: object) -> int:
        made, arguments, states, results = [], [], [], []
        for index, (function, name) in enumerate(calls):
            result = f"{function}{len(self.nodes)}_{index}"
            made.append(AggregateCall(function, None if name is None else ColumnRef(name), result))
            if name is not None:
                argument = self.schema(source).column(name)
                arguments.append(msgspec.structs.replace(argument, name=f"__arg{index}"))
            states.append(column(f"__state{index}_0"))
            results.append(column(result))
        key_columns = tuple(self.schema(source).column(key) for key in keys)
        operator = Aggregate(
            keys,
            tuple(made),
            state_schema=PlanSchema((*key_columns, *states)),
            argument_schema=PlanSchema((*key_columns, *arguments)),
        )
        return self.add(operator, (source,), PlanSchema((*key_columns, *results)), **rest)

    def union(self, *sources: int, **rest: object) -> int:
        return self.add(Union(), sources, self.schema(sources[0]), **rest)

    def sort(self, source: int, *keys: str, limit: int | None = None, **rest: object) -> int:
        operator = Sort(tuple(SortKey(key) for key in keys), limit)
        return self.add(operator, (source,), self.schema(source), **rest)

    def limit(self, source: int, count: int, **rest: object) -> int:
        return self.add(Limit(count), (source,), self.schema(source), **rest)

    def sink(self, source: int, folder: str = "out", **rest: object) -> int:
        spec = SinkSpec("parquet", f"/data/{folder}")
        self.sinks.append(self.add(Sink(spec), (source,), self.schema(source), **rest))
        return self.sinks[-1]

    def plan(self) -> Plan:
        return Plan(tuple(self.nodes), tuple(self.sinks), "test job")


def skew_join(hint: JoinHint = JoinHint.OPTIMIZER_CHOOSES, how: JoinType = JoinType.INNER) -> Plan:
    """14 million instruments of which 13/14 are in one currency, 492 currencies through a flat map."""
    builder = Builder()
    instruments = builder.source(
        schema(RIC="string", Asset="string", StrikePrice="double", LotSize="int32", CurrencyID="int64", Junk="string"),
        rows=14_000_000,
        size=1.4e9,
        columns={"CurrencyID": ColumnStatistics(distinct_count=160, heavy_keys=(("978", 13 / 14),))},
        path="instruments/part-00000.parquet",
    )
    currencies = builder.source(
        schema(CurrencyID="int64", ISOCode="string", ISOExtended="string", Name="string"),
        rows=492,
        size=30_000,
        path="currencies.parquet",
    )
    codes = builder.project(currencies, "CurrencyID", (column("CurrencyCode", "string"), ColumnRef("ISOCode")))
    mapped = builder.python(codes, "flat_map")
    joined = builder.join(instruments, mapped, on="CurrencyID", how=how, hint=hint)
    names = ("RIC", "Asset", "StrikePrice", "LotSize", "CurrencyCode")
    chosen = builder.project(joined, *(name for name in names if name in builder.schema(joined).names))
    builder.sink(chosen)
    return builder.plan()
