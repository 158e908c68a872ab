"""What becomes of column statistics and heavy keys on their way through a plan."""

from __future__ import annotations

import msgspec
import pytest

from engine.graph.expression import Call, Cast, ColumnRef, Expression, Literal, NamedExpression
from engine.graph.plan import Join
from engine.graph.said_operators import JoinHint, JoinType
from engine.graph.source_spec import ColumnStatistics
from engine.optimizer import column_lineage
from engine.optimizer.estimates import estimate_plan
from tests.optimizer.plan_building import Builder, schema

HEAVY = ColumnStatistics(
    distinct_count=50, null_fraction=0.1, heavy_keys=(("7", 0.5), ("8", 0.2)), heavy_origin="manifest"
)
COLUMNS = {"k": HEAVY, "other": ColumnStatistics(heavy_keys=(("x", 0.4),))}


def literal(value: bool | int | float | str | None) -> Literal:
    return Literal(b"", str(value), value)


def compared(function: str, *arguments: Expression) -> Call:
    return Call(function, arguments)


K = ColumnRef("k")


def cast(type_text: str) -> Expression:
    return Cast(K, b"", type_text)


def heavy_after(
    expression: Expression, columns: dict[str, ColumnStatistics] = COLUMNS
) -> tuple[tuple[str, float], ...]:
    found = column_lineage.projected([NamedExpression("new", expression)], columns)
    return found["new"].heavy_keys if "new" in found else ()


def test_a_renamed_column_keeps_everything() -> None:
    assert column_lineage.projected([NamedExpression("new", K)], COLUMNS) == {"new": HEAVY}


def test_a_computed_column_has_at_most_as_many_values_as_the_one_that_it_is_of() -> None:
    known = {"k": msgspec.structs.replace(HEAVY, distinct_count=7.0, relation=3, relation_rows=90.0)}

    def found(*arguments: Expression) -> dict[str, ColumnStatistics]:
        return column_lineage.projected([NamedExpression("new", compared("add", *arguments))], known)

    assert found(K, literal(1)) == {"new": ColumnStatistics(distinct_count=7.0, relation=3, relation_rows=90.0)}
    assert found(K, Call("rand", (), {"seed": 1})) == {}
    assert found(K, ColumnRef("other")) == {}


@pytest.mark.parametrize("type_text", ["int64", "double", "decimal128(20, 0)", "large_string"])
def test_a_widened_number_keeps_its_heavy_keys_and_where_they_come_from(type_text: str) -> None:
    (found,) = column_lineage.projected([NamedExpression("new", cast(type_text))], COLUMNS).values()
    assert found.heavy_keys == HEAVY.heavy_keys
    assert (found.heavy_origin, found.distinct_count, found.null_fraction) == ("manifest", 50, 0.1)


@pytest.mark.parametrize(
    ("text", "type_text", "is_kept"),
    [
        ("0.1", "double", False),
        ("0.1", "int64", False),
        ("1.50", "decimal128(20, 4)", True),
        ("2020-01-02", "timestamp[us]", True),
        ("2020-01-02 00:00:00", "timestamp[ns]", True),
        ("2020-01-02 00:00:00", "date32[day]", False),
        ("EUR", "large_string", True),
        ("EUR", "int64", False),
        ("true", "int64", False),
        ("7", "bool", False),
    ],
)
def test_a_cast_keeps_keys_whose_text_is_a_value_of_the_new_type(text: str, type_text: str, is_kept: bool) -> None:
    columns = {"k": ColumnStatistics(heavy_keys=((text, 0.5),))}
    assert heavy_after(cast(type_text), columns) == (((text, 0.5),) if is_kept else ())


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (compared("equal", K, literal(7)), (("7", 1.0),)),
        (compared("equal", literal(3), K), (("3", 1.0),)),
        (compared("not_equal", K, literal(7)), (("8", pytest.approx(0.4)),)),
        (compared("not_equal", K, literal(3)), HEAVY.heavy_keys),
        (compared("less", K, literal(100)), HEAVY.heavy_keys),
        (compared("is_not_null", K), HEAVY.heavy_keys),
        (
            compared("and", compared("not_equal", K, literal(8)), compared("less", ColumnRef("other"), literal("y"))),
            (("7", 0.625),),
        ),
        (compared("or", compared("equal", K, literal(8)), compared("equal", K, literal(7))), HEAVY.heavy_keys),
    ],
)
def test_a_filter_keeps_heavy_keys_but_for_those_it_names(predicate: Expression, expected: object) -> None:
    kept = column_lineage.filtered(predicate, COLUMNS)
    assert kept["k"].heavy_keys == expected
    assert kept["other"] == COLUMNS["other"]


def test_a_constant_truth_is_named_as_it_is_in_samples() -> None:
    kept = column_lineage.filtered(compared("equal", K, literal(True)), COLUMNS)
    assert kept["k"].heavy_keys == (("true", 1.0),)


def join_of(how: JoinType, *, coalesce: bool = False) -> Join:
    return Join(how, ("k",), ("k" if coalesce else "r",), coalesce, JoinHint.OPTIMIZER_CHOOSES)


RIGHT = {"r": ColumnStatistics(heavy_keys=(("9", 0.3),)), "name": ColumnStatistics(heavy_keys=(("n", 0.3),))}


def heavy_of(columns: dict[str, ColumnStatistics]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(text for text, _ in known.heavy_keys) for name, known in columns.items()}


def test_a_join_keeps_heavy_keys_of_the_side_with_more_rows() -> None:
    found = heavy_of(column_lineage.joined(join_of(JoinType.INNER), COLUMNS, RIGHT, 1000, 10))
    assert found == {"k": ("7", "8"), "other": ("x",), "r": ("7", "8"), "name": ()}
    found = heavy_of(column_lineage.joined(join_of(JoinType.LEFT), COLUMNS, RIGHT, 10, 1000))
    assert found == {"k": ("9",), "other": (), "r": ("9",), "name": ("n",)}


def test_a_coalesced_key_is_that_of_the_side_with_more_rows() -> None:
    right = {"k": RIGHT["r"], "name": RIGHT["name"]}
    join = join_of(JoinType.INNER, coalesce=True)
    assert heavy_of(column_lineage.joined(join, COLUMNS, right, 1000, 10))["k"] == ("7", "8")
    assert heavy_of(column_lineage.joined(join, COLUMNS, right, 10, 1000))["k"] == ("9",)


def test_semi_and_anti_joins_have_the_left_columns_only() -> None:
    for how in (JoinType.SEMI, JoinType.ANTI):
        assert column_lineage.joined(join_of(how), COLUMNS, RIGHT, 10, 1000) == COLUMNS


def test_a_union_weighs_shares_by_rows() -> None:
    other = {"k": ColumnStatistics(heavy_keys=(("8", 0.6),)), "other": ColumnStatistics()}
    found = column_lineage.merged([COLUMNS, other], [3000, 1000])
    assert found["k"].heavy_keys == (("7", 0.375), ("8", pytest.approx(0.3)))
    assert found["k"].heavy_origin == "manifest and sample"
    assert found["other"].heavy_keys == (("x", pytest.approx(0.3)),)


def test_estimates_carry_heavy_keys_from_the_source_to_the_end() -> None:
    builder = Builder()
    source = builder.source(schema(k="int64", v="int64"), columns={"k": HEAVY})
    renamed = builder.project(source, "k")
    union = builder.union(renamed, builder.filter(renamed, compared("less", K, literal(5))))
    grouped = builder.aggregate(union, ("k",), ("count_all", None))
    mapped = builder.python(union)
    builder.sink(grouped)
    builder.sink(mapped, "other")
    estimates = estimate_plan(builder.plan())
    assert [text for text, _ in estimates[union].columns["k"].heavy_keys] == ["7", "8"]
    assert estimates[grouped].columns["k"].heavy_keys == ()
    assert estimates[mapped].columns == {}
