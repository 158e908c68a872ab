"""The process that runs programs: one for each line of its input, an answer for each on its output, both JSON.

    python -m tests.acceptance.programs_process {"settings": {}, "target": "local"}
    ◄ {"program": NAME, "paths": {TABLE: PATH}, "output": PATH, "scratch": PATH}      NAME may be warm_up
    ► {"seconds": S, "vertices": [[NAME, BYTES_IN, BYTES_OUT, SPILLED, [[OPERATOR, BYTES_IN, SPILLED], ...]], ...]}
    ► {"seconds": S, "error": CLASS, "message": TEXT}

It closes its environment at the end of its input, which fails where pages are left.
"""

import json
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from engine import DataSet, EngineError, Environment, JobResult, col, count, max_, sum_
from tests.acceptance import programs, python_programs, skewed_programs
from tests.acceptance.program import Inputs, Program

PROGRAMS = {each.name: each for each in (*programs.PROGRAMS, *skewed_programs.PROGRAMS, *python_programs.PROGRAMS)}
WARM_UP = ("warm_up", "warm_up_functions")


def write(result: DataSet, program: Program, output: str) -> None:
    getattr(result, f"write_{program.writes}")(output)


def warm_up(environment: Environment, folder: Path, has_functions: bool) -> None:
    """Run a small job of every kind, so that what stays resident is there."""
    folder.mkdir()
    rows = pa.table({"k": [1, 2, 3] * 100, "v": range(300), "text": ["x"] * 300})
    pq.write_table(rows, folder / "rows.parquet")
    facts = environment.read_parquet(folder / "rows.parquet")
    if has_functions:
        facts = facts.map(tuple, rows.schema)
    joined = facts.join(facts.select("k", col("v").alias("w")).limit(3), on="k")
    groups = joined.group_by("v").agg(n=count(), total=sum_(col("k")), text=max_(col("text"))).sort(["total", "v"])
    groups.write_parquet(folder / "parquet")
    groups.write_records(folder / "records")
    facts.write_csv(folder / "csv")
    environment.execute("warm up")
    environment.read_csv(folder / "csv", schema=rows.schema).union(facts).write_csv(folder / "again")
    environment.execute("warm up")


def vertices(result: JobResult) -> list[object]:
    return [
        [
            vertex.name,
            sum(subtask.bytes_in for subtask in vertex.subtasks),
            sum(subtask.bytes_out for subtask in vertex.subtasks),
            vertex.spilled_bytes,
            [[each.name, each.bytes_in, each.spilled_bytes] for each in vertex.operators],
        ]
        for vertex in result.vertices
    ]


def answer(environment: Environment, words: dict[str, object]) -> dict[str, object]:
    name, scratch = words["program"], Path(str(words["scratch"]))
    began = time.perf_counter()
    try:
        if name in WARM_UP:
            warm_up(environment, scratch, name != WARM_UP[0])
            return {"seconds": time.perf_counter() - began, "vertices": []}
        program = PROGRAMS[str(name)]
        write(program.build(Inputs(environment, words["paths"], scratch)), program, str(words["output"]))
        result = environment.execute(program.name)
    except EngineError as error:
        return {"seconds": time.perf_counter() - began, "error": type(error).__name__, "message": str(error)}
    return {"seconds": time.perf_counter() - began, "vertices": vertices(result), "report": result.report}


def main() -> None:
    options = json.loads(sys.argv[1])
    with Environment(config=options["settings"], target=options["target"]) as environment:
        for line in sys.stdin:
            sys.stdout.write(json.dumps(answer(environment, json.loads(line))) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
