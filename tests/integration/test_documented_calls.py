"""The examples in the docstrings of data sets and groups are true."""

import doctest
import inspect

import pyarrow as pa
import pytest

import engine
import engine.selectors as cs
from engine import DataSet, Environment
from engine.api.grouped_by import GroupedBy

CALLS = {
    f"{home.__name__}.{name}": member
    for home in (DataSet, GroupedBy)
    for name, member in inspect.getmembers(home, inspect.isfunction)
    if ">>> " in (member.__doc__ or "")
}
#: calls that have examples by now
SHOWN = "explode unnest pivot unpivot head tail with_row_index sample drop_nulls fill_null drop_duplicates describe"


@pytest.fixture(scope="module")
def names():
    with Environment(config={"parallelism.default": 1}) as environment:
        helpers = {
            "rows": lambda columns: environment.from_arrow(pa.table(columns)),
            "env": environment,
            "pa": pa,
            "cs": cs,
        }
        yield {name: getattr(engine, name) for name in engine.__all__} | helpers


@pytest.mark.parametrize("call", CALLS)
def test_the_example_of_a_call_is_true(names, call):
    (test,) = doctest.DocTestFinder(recurse=False).find(CALLS[call], call, globs=dict(names))
    report = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)


def test_calls_of_tables_have_examples():
    assert {f"DataSet.{name}" for name in SHOWN.split()} <= set(CALLS)
