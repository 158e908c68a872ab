"""Lineage of column statistics, heavy keys above all, from a source to a join.

    projected   kept under the new name; through a cast heavy keys whose text is a value of the new type too; of a
                computed column what was sampled for its expression, else no more values than the one column it is of
    carried     expressions that are yet to be computed, in terms of a projection's output
    filtered    kept; column = constant leaves that key alone, column != constant all but that key; parts over one
                column leave their share of its values
    joined      kept for the side with more rows, whose rows come out about once; a key column of the other side takes
                what is known of its counterpart; keys have the values of the side that has fewer, where rows without
                a match are not returned; of a lookup table there are rows for as many keys as the other side has
    merged      of a union: shares weighted by rows, distinct counts the most of all inputs, widths as their average,
                bounds that hold for all

A Python function loses everything, an aggregate heavy keys and what is yet to be computed (``estimates.py``). Wrong
guesses cost time, never rows: a heavy key that is none is split for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from engine.graph.expression import (
    Call,
    Cast,
    ColumnRef,
    Expression,
    Literal,
    NamedExpression,
    children_of,
    columns_of,
    conjuncts,
    with_children,
)
from engine.graph.function_table import is_deterministic
from engine.graph.plan import Join
from engine.graph.said_operators import JoinType
from engine.graph.source_spec import ColumnStatistics, ComputedStatistics
from engine.optimizer.selectivity import selectivity

Columns = Mapping[str, ColumnStatistics]
Computed = tuple[ComputedStatistics, ...]
HeavyShares = tuple[tuple[str, float], ...]

_WHOLE = r"-?\d+"
_DAY = r"\d{4}-\d\d-\d\d"
#: prefix of a type's name -> texts of keys that a narrower type has, too
_KEPT_TEXTS = (
    (("int", "uint", "double", "float"), re.compile(_WHOLE)),
    (("decimal",), re.compile(_WHOLE + r"(\.\d+)?")),
    (("string", "large_string"), re.compile(".*", re.DOTALL)),
    (("date",), re.compile(_DAY)),
    (("timestamp",), re.compile(_DAY + r"( .*)?")),
)


def projected(
    expressions: Iterable[NamedExpression], columns: Columns, computed: Computed = ()
) -> dict[str, ColumnStatistics]:
    """Return the statistics of a projection's columns: columns of the input, cast or not, and what was sampled."""
    found = {}
    for named in expressions:
        known = next((one.statistics for one in computed if one.expression == named.expression), None)
        match named.expression:
            case _ if known is not None:
                found[named.name] = known
            case ColumnRef(name=name) if name in columns:
                found[named.name] = columns[name]
            case Cast(operand=ColumnRef(name=name), type_text=type_text) if name in columns:
                found[named.name] = _cast(columns[name], type_text)
            case Literal():
                found[named.name] = ColumnStatistics(distinct_count=1.0)
            case expression:
                of_one = _computed_of_one(expression, columns)
                if of_one is not None:
                    found[named.name] = of_one
    return found


def _computed_of_one(expression: Expression, columns: Columns) -> ColumnStatistics | None:
    """Return the statistics of what is computed of one column: it has at most as many values as that, and null."""
    names = set(columns_of(expression))
    known = columns.get(names.pop()) if len(names) == 1 else None
    if known is None or known.distinct_count is None or not is_deterministic(expression):
        return None
    return ColumnStatistics(
        distinct_count=known.distinct_count, relation=known.relation, relation_rows=known.relation_rows
    )


def carried(expressions: Iterable[NamedExpression], computed: Computed) -> Computed:
    """Return the statistics of expressions over a projection's output, from those over its input."""
    names = [(named.expression, named.name) for named in expressions]
    over = ((_in_terms_of(one.expression, names), one.statistics) for one in computed)
    return tuple(
        ComputedStatistics(expression, statistics)
        for expression, statistics in over
        if expression is not None and not isinstance(expression, ColumnRef)
    )


def _in_terms_of(expression: Expression, names: Sequence[tuple[Expression, str]]) -> Expression | None:
    """Return an expression with columns in place of parts that have one; None when a column of it is gone."""
    name = next((name for known, name in names if known == expression), None)
    if name is not None:
        return ColumnRef(name)
    if isinstance(expression, ColumnRef):
        return None
    parts = [_in_terms_of(part, names) for part in children_of(expression)]
    known_parts = [part for part in parts if part is not None]
    return with_children(expression, known_parts) if len(known_parts) == len(parts) else None


def _cast(known: ColumnStatistics, type_text: str) -> ColumnStatistics:
    pattern = next((texts for begins, texts in _KEPT_TEXTS if type_text.startswith(begins)), None)
    heavy = tuple(pair for pair in known.heavy_keys if pattern is not None and pattern.fullmatch(pair[0]))
    return ColumnStatistics(
        distinct_count=known.distinct_count,
        null_fraction=known.null_fraction,
        heavy_keys=heavy,
        heavy_origin=known.heavy_origin,
        relation=known.relation,
        relation_rows=known.relation_rows,
    )


def filtered(predicate: Expression, columns: Columns, computed: Computed = ()) -> dict[str, ColumnStatistics]:
    """Return the statistics of the rows for which a predicate is true."""
    kept = dict(columns)
    for part in conjuncts(predicate):
        (name, *others) = dict.fromkeys(columns_of(part)) or ("",)
        known = kept.get(name)
        if not others and known is not None and known.distinct_count is not None:
            count = max(1.0, known.distinct_count * selectivity(part, columns, computed)[0])
            kept[name] = msgspec.structs.replace(known, distinct_count=count)
        match part:
            case (
                Call(
                    function="equal" | "not_equal" as function, arguments=(ColumnRef(name=name), Literal() as constant)
                )
                | Call(
                    function="equal" | "not_equal" as function, arguments=(Literal() as constant, ColumnRef(name=name))
                )
            ) if name in kept:
                keep = _only if function == "equal" else _without
                kept[name] = msgspec.structs.replace(kept[name], heavy_keys=keep(kept[name].heavy_keys, constant))
    return kept


def _text(constant: Literal) -> str:
    return str(constant.value).lower() if isinstance(constant.value, bool) else str(constant.value)


def _only(_heavy: HeavyShares, constant: Literal) -> HeavyShares:
    return () if constant.value is None else ((_text(constant), 1.0),)


def _without(heavy: HeavyShares, constant: Literal) -> HeavyShares:
    rest = 1.0 - sum(share for text, share in heavy if text == _text(constant))
    return tuple((text, min(1.0, share / rest)) for text, share in heavy if text != _text(constant) and rest > 0)


def joined(
    join: Join, left: Columns, right: Columns, left_rows: float, right_rows: float
) -> dict[str, ColumnStatistics]:
    """Return the statistics of a join's columns by name, before its output leaves out some."""
    found = _joined(join, left, right, left_rows, right_rows)
    if join.how not in (JoinType.INNER, JoinType.SEMI):
        return found
    for one, one_keys, other, other_keys in (
        (left, join.left_keys, right, join.right_keys),
        (right, join.right_keys, left, join.left_keys),
    ):
        if len(one_keys) == 1 and one_keys[0] in one and other_keys[0] in other:
            found |= _rows_asked(found, one[one_keys[0]], other[other_keys[0]])
    for left_key, right_key in zip(join.left_keys, join.right_keys, strict=True):
        counts = [
            min(count, max(1.0, rows))
            for columns, key, rows in ((left, left_key, left_rows), (right, right_key, right_rows))
            if key in columns and (count := columns[key].distinct_count) is not None
        ]
        returned = {left_key} if join.how is JoinType.SEMI else {left_key, right_key}
        for name in returned.intersection(found if len(counts) > 1 else ()):
            found[name] = msgspec.structs.replace(found[name], distinct_count=min(counts))
    return found


def _rows_asked(found: Columns, key: ColumnStatistics, asking: ColumnStatistics) -> dict[str, ColumnStatistics]:
    """Return the columns of a key's source, of which a join returns rows for each value that the other side has."""
    if key.relation < 0 or not key.distinct_count or asking.distinct_count is None:
        return {}
    rows = asking.distinct_count * max(1.0, key.relation_rows / key.distinct_count)
    return {
        name: msgspec.structs.replace(known, relation_rows=rows)
        for name, known in found.items()
        if known.relation == key.relation and known.relation_rows > rows
    }


def _joined(
    join: Join, left: Columns, right: Columns, left_rows: float, right_rows: float
) -> dict[str, ColumnStatistics]:
    keys = tuple(zip(join.left_keys, join.right_keys, strict=True))
    if join.how in (JoinType.SEMI, JoinType.ANTI):
        return dict(left)
    if left_rows >= right_rows:
        other = {name: _light(known) for name, known in right.items()}
        same = {right_key: left[left_key] for left_key, right_key in keys if left_key in left}
        return {**other, **same, **left} if not join.coalesce_keys else {**other, **left}
    other = {name: _light(known) for name, known in left.items()}
    same = {left_key: right[right_key] for left_key, right_key in keys if right_key in right}
    return {**right, **other, **same}


def _light(known: ColumnStatistics) -> ColumnStatistics:
    return msgspec.structs.replace(known, heavy_keys=()) if known.heavy_keys else known


def merged(inputs: Sequence[Columns], rows: Sequence[float]) -> dict[str, ColumnStatistics]:
    """Return the statistics of a union's columns that hold for all inputs, heavy keys also of some."""
    total = sum(rows)
    found: dict[str, ColumnStatistics] = {}
    for name in inputs[0]:
        known = [columns.get(name, ColumnStatistics()) for columns in inputs]
        widths = [
            each.average_width_bytes * count
            for each, count in zip(known, rows, strict=True)
            if each.average_width_bytes is not None
        ]
        distinct = [each.distinct_count for each in known if each.distinct_count is not None]
        shares: dict[str, float] = {}
        for each, count in zip(known, rows, strict=True):
            for text, share in each.heavy_keys:
                shares[text] = shares.get(text, 0.0) + share * count / total
        origins = {each.heavy_origin: None for each in known if each.heavy_keys}
        found[name] = ColumnStatistics(
            distinct_count=max(distinct) if len(distinct) == len(inputs) else None,
            average_width_bytes=sum(widths) / total if len(widths) == len(inputs) else None,
            minimum=_outermost(min, [each.minimum for each in known]),
            maximum=_outermost(max, [each.maximum for each in known]),
            heavy_keys=tuple(sorted(shares.items(), key=lambda pair: (-pair[1], pair[0]))),
            heavy_origin=" and ".join(origins) or "sample",
        )
    return found


def _outermost(choose: Callable[[list[float]], float], bounds: Sequence[object]) -> float | None:
    """Return the bound of all inputs, None where one has none that is a number."""
    numbers = [bound for bound in bounds if isinstance(bound, int | float) and not isinstance(bound, bool)]
    return choose(numbers) if len(numbers) == len(bounds) else None
