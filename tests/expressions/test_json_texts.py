"""Values out of JSON texts are those that DuckDB finds."""

import pyarrow as pa
import pytest

from engine import SchemaError, col
from engine.expressions.infer import infer_type
from engine.expressions.json_texts import path_steps
from tests.expressions.function_oracle import by_duckdb, values

S = col("x").str
TEXTS = [
    '{"a": {"b": [1, "x", null, {"c": true}]}, "k": "v"}',
    '{"a": {"b": []}}',
    '{"a": "text \\u00e9 😀"}',
    '{"a": 1.5}',
    "[1, 2]",
    "{}",
    "null",
    None,
]


@pytest.mark.parametrize("path", ["$.a", "$.a.b", "$.a.b[0]", "$.a.b[1]", "$.a.b[2]", "$.a.b[3].c", "$[1]", "$.k", "$"])
def test_what_lies_at_a_path_is_what_duckdb_finds(path):
    found = values(S.json_get(path), x=pa.array(TEXTS, pa.string()))
    assert found == by_duckdb(f"x::JSON->>'{path}'", x=pa.array(TEXTS, pa.string()))


def test_paths_are_taken_apart():
    assert path_steps("$.a['b.c'][-1].d") == ["a", "b.c", -1, "d"]
    assert path_steps("a.b") == ["a", "b"]
    assert values(S.json_get("a[-1]"), x=['{"a": [1, 2]}', '{"a": {}}', '{"a"', "", '"\\ud800"']) == ["2"] + [None] * 4
    assert values(S.json_get("$"), x=['"\\ud800"']) == ["?"]
    for wrong in ("$.a[", "$..a", "$.a[b]", "$['a]"):
        with pytest.raises(SchemaError, match="is no path"):
            infer_type(S.json_get(wrong).expression, pa.schema({"x": pa.string()}))
