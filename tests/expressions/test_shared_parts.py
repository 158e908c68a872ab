"""What stands more than once in a projection is computed once, and means what it meant."""

import threading

import pyarrow as pa
import pytest

from engine import Environment, col, rand, sum_, when
from engine.errors import DataError
from engine.expressions import binding
from engine.expressions import compile as compiling
from engine.expressions.evaluate import compile_projection, evaluate
from engine.graph.expression import NamedExpression

BATCH = pa.record_batch({"s": ["a-1", "b-22", None, ""], "n": [1, 0, 2, None]})
PART = col("s").str.extract("([a-z])-", 1)


@pytest.fixture
def calls(monkeypatch):
    """The functions that were computed, by name, once for each time."""
    made = []
    original = compiling.find_function

    class Counted:
        def __init__(self, name, entry):
            self._name, self._entry = name, entry

        def bind(self, operands, options):
            bound = self._entry.bind(operands, options)

            def kernel(*arguments):
                if any(isinstance(one, pa.Array) and len(one) for one in arguments):
                    made.append(self._name)
                return bound.kernel(*arguments)

            return binding.Binding(kernel, bound.argument_types, bound.can_raise)

    monkeypatch.setattr(compiling, "find_function", lambda name, count: Counted(name, original(name, count)))
    return made


def projected(expressions, batch=BATCH):
    named = [NamedExpression(f"c{number}", one.expression) for number, one in enumerate(expressions)]
    types = [evaluate(one.expression, batch.slice(0, 0)).type for one in named]
    schema = pa.schema([(one.name, data_type) for one, data_type in zip(named, types, strict=True)])
    return compile_projection(named, batch.schema, schema)


def test_each_part_is_computed_once_for_a_batch(calls):
    expressions = [PART, PART.str.length(), when(PART == "a").then(PART.str.upper()).otherwise("none")]
    project = projected(expressions)
    for _ in range(3):
        calls.clear()
        found = project(BATCH)
        assert calls.count("str_extract") == 1
    assert found.columns == [evaluate(one.expression, BATCH) for one in expressions]


def test_what_stands_once_or_is_random_is_not_kept(calls):
    project = projected([PART, col("n") + 1])
    calls.clear()
    project(BATCH)
    assert calls.count("str_extract") == 1
    first, second = projected([rand() + 0.0, rand() + 0.0])(BATCH).columns
    assert first != second


def test_a_branch_fails_for_its_own_rows_only():
    ratio = 10 // col("n")
    guarded = when(col("n") != 0).then(ratio.cast(pa.string())).otherwise("-")
    assert projected([guarded, guarded.str.length()])(BATCH).column(0).to_pylist() == ["10", "-", "5", "-"]
    with pytest.raises(DataError, match="in a row with n=0"):
        projected([guarded, ratio.cast(pa.string())])(BATCH)


def test_threads_and_batches_do_not_see_each_other():
    project = projected([PART, PART.str.length()])
    wrong = []

    def work(letter):
        for number in range(200):
            text = letter if number % 2 else letter.swapcase().lower()
            batch = pa.record_batch({"s": [f"{text}-{number}"], "n": [number]})
            if project(batch).column(0).to_pylist() != [text]:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(letter,)) for letter in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_arguments_of_aggregates_share_parts(calls):
    with Environment(config={"parallelism.default": 1}) as env:
        length = PART.str.length()
        data = env.from_arrow(pa.Table.from_batches([BATCH]))
        found = data.agg(a=sum_(length + 1), b=sum_(length * 2))
        calls.clear()
        assert [tuple(row) for row in found.collect()] == [(4, 4)]
        assert calls.count("str_extract") == 1
