"""Results compared with what DuckDB makes of the same files, in DuckDB: nothing but 4096 buckets is looked at here.

    bucket = hash of the columns that are exact, modulo 4096 ─► rows, sum of the hashes; of each float column the values
             that are not null, those that are NaN, and the sums of the others and of their magnitudes

Floats may differ by the order in which they were added: their sums in each bucket must be equal to nine digits. The
order of a sorted result is read from its part files, one after the other, each row against the one before it.
What DuckDB expects is kept beside the tables.
"""

import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path

import duckdb

from engine.memory.control_group import machine_bytes
from tests.acceptance.program import Order, Program

_BUCKETS = 4096
_NEARLY = 1e-9
_FLOATS = ("DOUBLE", "FLOAT")
_ENDINGS = {"csv": "csv", "parquet": "parquet", "records": "parquet"}

Columns = list[tuple[str, str]]
Buckets = dict[str, list[float]]


class Expectations:
    """What programs should make of tables. Close it."""

    def __init__(self, kept: Path) -> None:
        self._kept = kept
        self._connection = duckdb.connect(
            config={
                "threads": 2,
                # it gives up where three outer joins of gigabytes do not fit
                "memory_limit": f"{machine_bytes() // 2 >> 20}MiB",
                "temp_directory": str(kept / "duckdb"),
            }
        )

    def close(self) -> None:
        self._connection.close()

    def row_count(self, program: Program, paths: dict[str, str]) -> int:
        """Return the rows of the expected result, which is computed here once for all."""
        return int(sum(values[0] for values in self._expected(program, paths).values()))

    def difference(self, program: Program, paths: dict[str, str], output: Path) -> str:
        """Return how the result in a folder differs, "" when it does not."""
        wanted = self._columns(self._sql(program, paths))
        files = sorted(map(str, output.glob(f"part-*.{_ENDINGS[program.writes]}")))
        if not files:
            return f"no files in {output}"
        listed = "[" + ", ".join(f"'{file}'" for file in files) + "]"
        if program.writes == "csv":
            types = ", ".join(f"'{name}': '{kind}'" for name, kind in wanted)
            result = f"SELECT * FROM read_csv({listed}, header=false, columns={{{types}}}, allow_quoted_nulls=false)"
        else:
            result = f"SELECT * FROM read_parquet({listed})"
        names = [name for name, _ in self._columns(result)]
        if sorted(names) != sorted(name for name, _ in wanted):
            return f"columns {names}, not {[name for name, _ in wanted]}"
        differing = _differing(self._buckets(result, wanted), self._expected(program, paths))
        return differing or self._disorder(result, program.order)

    def _sql(self, program: Program, paths: dict[str, str]) -> str:
        tables = ", ".join(f"{name} AS (FROM '{path}')" for name, path in paths.items() if path.endswith("parquet"))
        return f"WITH {tables} SELECT * FROM ({program.sql})"

    def _columns(self, query: str) -> Columns:
        return [row[:2] for row in self._connection.execute(f"DESCRIBE {query}").fetchall()]

    def _expected(self, program: Program, paths: dict[str, str]) -> Buckets:
        query = self._sql(program, paths)
        kept = self._kept / f"expected-{hashlib.sha256(query.encode()).hexdigest()[:16]}.json"
        if not kept.exists():
            unfinished = kept.with_suffix(".unfinished")
            unfinished.write_text(json.dumps(self._buckets(query, self._columns(query))))
            unfinished.rename(kept)
        found: Buckets = json.loads(kept.read_text())
        return found

    def _buckets(self, query: str, columns: Columns) -> Buckets:
        exact = [f'"{name}"::{kind}' for name, kind in columns if kind not in _FLOATS]
        floats = [f'"{name}"::DOUBLE' for name, kind in columns if kind in _FLOATS]
        of_floats = "".join(
            f", count({each}), count(*) FILTER (isnan({each})), coalesce(sum({each}) FILTER (isfinite({each})), 0)"
            f", coalesce(sum(abs({each})) FILTER (isfinite({each})), 0)"
            for each in floats
        )
        # Sums of hashes are beyond what JSON's readers keep: halves of them are not.
        rows = self._connection.execute(
            f"SELECT h % {_BUCKETS}, count(*), sum((h >> 32)::BIGINT)::BIGINT, sum((h & 4294967295)::BIGINT)::BIGINT"
            f"{of_floats} FROM (SELECT *, hash({', '.join(exact)}) h FROM ({query})) GROUP BY 1"
        ).fetchall()
        return {str(row[0]): list(row[1:]) for row in rows}

    def _disorder(self, result: str, order: Sequence[Order]) -> str:
        if not order:
            return ""
        before = ", ".join(f'"{key.column}" c{number}, lag("{key.column}") OVER () p{number}' for number, key in
                           enumerate(order))  # fmt: skip
        wrong = "false"
        for number, key in reversed(list(enumerate(order))):
            now, then = f"c{number}", f"p{number}"
            if key.nulls_last:
                first = f"({then} IS NULL AND {now} IS NOT NULL)"
            else:
                first = f"({then} IS NOT NULL AND {now} IS NULL)"
            less = f"coalesce({now} {'>' if key.descending else '<'} {then}, false)"
            wrong = f"({first} OR {less} OR ({now} IS NOT DISTINCT FROM {then} AND {wrong}))"
        query = (
            f"SELECT count(*) FROM (SELECT {before}, row_number() OVER () n FROM ({result})) WHERE n > 1 AND {wrong}"
        )
        count = self._connection.execute(query).fetchone()[0]
        return f"{count} rows are before one that they should follow" if count else ""


def _differing(found: Buckets, wanted: Buckets) -> str:
    rows = [int(sum(values[0] for values in side.values())) for side in (found, wanted)]
    if rows[0] != rows[1]:
        return f"{rows[0]:,} rows, not {rows[1]:,}"
    other = sum(found.get(bucket, [])[:3] != values[:3] for bucket, values in wanted.items())
    if other:
        return f"other rows in {other} of {len(wanted)} buckets"
    for bucket, values in wanted.items():
        for at in range(3, len(values), 4):
            ours, theirs = found[bucket][at : at + 4], values[at : at + 4]
            if ours[:2] != theirs[:2] or not math.isclose(ours[2], theirs[2], rel_tol=0, abs_tol=_NEARLY * theirs[3]):
                return f"other floats: {ours[2]}, not {theirs[2]}"
    return ""
