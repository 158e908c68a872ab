"""How often a very wide row is in a worker's memory: what is used up is let go before the result is on its way."""

import pyarrow as pa
import pytest

from engine.functions.function_body import FunctionBody
from engine.functions.group_rows import GROUP_START, NEW_KEY, NEW_SIDE, SIDE
from engine.graph.operator_descriptor import PythonOperator

BLOB_BYTES = 8 << 20
ROWS = 3
OUT = pa.schema([("id", pa.int64()), ("blob", pa.binary())])
COLUMNS = (("id", "id"), ("blob", "blob"))


def ahead(left, right):
    """Read the right rows first, so that the left ones are kept meanwhile."""
    names = len(list(right))
    return ((row.id, row.blob) for row in left if names)


FUNCTIONS = {
    "map": lambda row: (row.id, row.blob),
    "flat_map": lambda row: ((row.id, row.blob) for _ in range(1)),
    "filter": lambda row: len(row.blob) > 0,
    "map_batches:arrow": lambda batch: batch,
    "map_partition": lambda rows: ((row.id, row.blob) for row in rows),
    "reduce": lambda rows: ((row.id, row.blob) for row in rows),
    "co_group": ahead,
}


def batches(kind):
    """Yield batches of one wide row, each made when it is asked for; behind each of them a narrow one for co_group."""
    for index in range(ROWS):
        columns = {"id": [index], "blob": [bytes([index]) * BLOB_BYTES]}
        if kind in ("reduce", "co_group"):
            columns[GROUP_START] = pa.array([NEW_KEY], pa.int8())
        if kind == "co_group":
            columns[SIDE] = pa.array([0], pa.int8())
        handed = [pa.record_batch(columns, schema=input_schema(kind))]
        columns.clear()
        yield handed.pop()
        if kind == "co_group":
            narrow = [[index], [b""], pa.array([NEW_SIDE], pa.int8()), pa.array([1], pa.int8())]
            yield pa.record_batch(narrow, schema=input_schema(kind))


def input_schema(kind):
    fields = list(OUT)
    if kind in ("reduce", "co_group"):
        fields.append(pa.field(GROUP_START, pa.int8()))
    if kind == "co_group":
        fields.append(pa.field(SIDE, pa.int8()))
    return pa.schema(fields)


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_the_input_is_let_go_before_its_result_is_handed_on(kind, tmp_path):
    views = (COLUMNS, COLUMNS) if kind == "co_group" else ()
    operator = PythonOperator(kind, b"", "function", __file__, 1, views=views)
    body = FunctionBody(operator, FUNCTIONS[kind], input_schema(kind), OUT, folder=str(tmp_path))
    before = pa.total_allocated_bytes()
    found = []
    for result in body.run(batches(kind)):
        # Of Arrow's memory the result is all that there is, not its input; but where a group ends, the next row tells.
        allowed = 2.5 if kind == "co_group" else 1.5
        assert pa.total_allocated_bytes() - before < allowed * BLOB_BYTES
        found += [(row["id"], row["blob"][:1], len(row["blob"])) for row in result.to_pylist() if row["blob"]]
        del result
    assert found == [(index, bytes([index]), BLOB_BYTES) for index in range(ROWS)]
