"""Every function of the table has a method or a name to call it by, and the example in its docstring is true."""

import datetime
import doctest
import inspect

import pyarrow as pa
import pytest

import engine
from docs.generators.function_page import function_page
from docs.generators.function_places import OPERATORS, face_of, faces
from engine.column_expressions.expression import Expr
from engine.expressions.time_directives import DIRECTIVES
from engine.graph.function_table import FUNCTION_TABLE


def values(expression, **columns):
    """Return what an expression is for the rows of a small table."""
    from engine.expressions.evaluate import evaluate

    table = pa.table(columns) if columns else pa.table({"": [0]})
    return evaluate(expression.expression, table.combine_chunks().to_batches()[0]).to_pylist()


NAMES = {name: getattr(engine, name) for name in engine.__all__} | {"values": values, "pa": pa}
for module in ("datetime", "decimal"):
    NAMES[module] = __import__(module)
FACES = faces()


@pytest.mark.parametrize("face", FACES)
def test_the_example_of_a_function_is_true(face):
    function = FACES[face]
    (test,) = doctest.DocTestFinder(recurse=False).find(function, face, globs=dict(NAMES))
    assert test.examples, f"{face} has no example"
    report = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)


def test_each_function_of_the_table_can_be_called():
    named = [name for name, row in FUNCTION_TABLE.items() if name not in OPERATORS and not row.is_internal]
    missing = [name for name in named if face_of(name) not in FACES]
    assert missing == []


def test_operators_are_those_of_expressions():
    for name, (_, method) in OPERATORS.items():
        assert name in FUNCTION_TABLE
        assert inspect.isfunction(getattr(Expr, method))


def test_the_page_of_functions_has_each_of_them_with_its_example():
    page = function_page()
    for face in FACES:
        assert f"### `{face}(" in page
    assert page.count(">>> ") >= len(FACES)
    assert "| <code>a + b</code> | arguments: any, any; result: see above; may fail |" in page


def test_the_page_of_functions_says_of_each_directive_whether_python_reads_it():
    page = function_page()
    for name, each in DIRECTIVES.items():
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `%{name}` |")]
        assert _reads(name) or not row.endswith("| yes |"), name
        assert row.endswith("| no |") == (not each.is_read), name


def _reads(name):
    """Whether Python's strptime knows a directive."""
    try:
        datetime.datetime.strptime("", f"%{name}")
    except ValueError as error:
        return "bad directive" not in str(error)
    return True
