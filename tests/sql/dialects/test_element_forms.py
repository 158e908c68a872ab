"""FLATTEN of Snowflake, and totals of lists that a function of their own finishes."""

from __future__ import annotations

import pytest

from engine import Environment, NotYetSupportedError

ROWS = [{"id": 1, "l": [5, 6]}, {"id": 2, "l": []}, {"id": 3, "l": None}]
INNER = [(1, 0, 5), (1, 1, 6)]
OUTER = [*INNER, (2, None, None), (3, None, None)]


@pytest.fixture
def environment(environment: Environment) -> Environment:
    environment.register("t", environment.from_dicts(ROWS))
    return environment


@pytest.mark.filterwarnings("ignore:from_dicts")
@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        ("t, LATERAL FLATTEN(INPUT => t.l) f", INNER),
        ("t, LATERAL FLATTEN(t.l) AS f", INNER),
        ("t, TABLE(FLATTEN(INPUT => l)) f", INNER),
        ("t CROSS JOIN TABLE(FLATTEN(l)) f", INNER),
        ("t, LATERAL FLATTEN(INPUT => l, OUTER => FALSE) f", INNER),
        ("t, LATERAL FLATTEN(INPUT => l, OUTER => TRUE) f", OUTER),
        ("t LEFT JOIN LATERAL FLATTEN(INPUT => l) f", OUTER),
    ],
)
def test_flatten_makes_a_row_of_each_element(
    environment: Environment, rows: str, wanted: list[tuple[int, ...]]
) -> None:
    found = environment.sql(f"SELECT t.id, f.index, f.value FROM {rows}", dialect="snowflake").collect()
    assert sorted(found, key=repr) == sorted(wanted, key=repr)


@pytest.mark.filterwarnings("ignore:from_dicts")
@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("FLATTEN(INPUT => l, MODE => 'ARRAY')", "with other arguments than INPUT, a list, and OUTER"),
        ("FLATTEN(INPUT => l, OUTER => l IS NULL)", "with other arguments than INPUT, a list, and OUTER"),
        ("FLATTEN(OUTER => TRUE)", "with other arguments than INPUT, a list, and OUTER"),
    ],
)
def test_other_arguments_of_flatten_are_refused(environment: Environment, call: str, said: str) -> None:
    with pytest.raises(NotYetSupportedError, match=said):
        environment.sql(f"SELECT f.value FROM t, LATERAL {call} f", dialect="snowflake")
    with pytest.raises(NotYetSupportedError, match=r"key of FLATTEN\(\) .*; its rows have index and value"):
        environment.sql("SELECT f.key FROM t, LATERAL FLATTEN(l) f", dialect="snowflake")


@pytest.mark.filterwarnings("ignore:from_dicts")
@pytest.mark.parametrize(("dialect", "name"), [("trino", "reduce"), ("spark", "aggregate"), ("spark", "reduce")])
def test_a_total_is_finished_by_a_function(environment: Environment, dialect: str, name: str) -> None:
    for finish, wanted in (("s -> s * 2 + s", 33), ("s -> s", 11), ("s -> -(s)", -11)):
        query = f"SELECT id, {name}(l, 0, (s, x) -> s + x, {finish}) AS v FROM t"
        empty = wanted * 0
        assert sorted(environment.sql(query, dialect=dialect).collect()) == [(1, wanted), (2, empty), (3, None)]
    with pytest.raises(NotYetSupportedError, match="one parameter, and no function in it"):
        environment.sql(
            f"SELECT {name}(l, 0, (s, x) -> s + x, s -> filter(l, q -> q > s)) AS v FROM t", dialect=dialect
        )
