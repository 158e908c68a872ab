"""Questions within a hard limit: TPC-DS and the wide table in a memory control group, of which Drey is told nothing.

    python -m tests.bench contained [--scale 1] [--rows 2000000] [--limit-mb 2048] [--runs 3]

A group of each of _LIMITS_MB (or of ``--limit-mb``), without swap, as a container has it: the kernel ends what needs
more. Drey finds the limit by itself. Files are not in the page cache when it starts, so the group pays for them too.
DuckDB answers outside, without a limit; an answer of Drey's that is another, an error or a killed process ends the
program. The first line is Drey without a group.

It needs the right to make control groups (root, or a delegated group), of the first or the second version, and says so
where there is none.
"""

from pathlib import Path
from statistics import median

from tests.acceptance.limits import kill_count, memory_group, peak_bytes
from tests.bench import questions, tpcds, wide
from tests.bench.machine_limits import cool_files

_LIMITS_MB = (1024, 2048, 4096)
_ENGINES = ["drey", "duckdb"]


def report(scale: float, rows: int, runs: int, folder: Path, limit_mb: int | None) -> str:
    """Run both kinds of questions within each limit and return a table."""
    limits_mb = _LIMITS_MB if limit_mb is None else (limit_mb,)
    with memory_group(limits_mb[0] << 20) as group:
        if group is None:
            raise SystemExit("contained: no memory control group can be made here (/sys/fs/cgroup is not writable)")
    parts = (
        (f"TPC-DS, scale factor {scale:g}", tpcds.ASKED, tpcds.tables_of(scale, folder)),
        (f"wide table, {rows:,} rows", wide.ASKED, wide.table_of(rows, folder)),
    )
    head = "| questions | limit, MB | CPU s | ÷ no limit | wall s | resident MB | group MB | killed |"
    lines = [head, "|---" * 8 + "|"]
    for name, asked, source in parts:
        free_s = 0.0
        for limit in (None, *limits_mb):
            found = [_turn(asked, source, folder, limit) for _ in range(runs)]
            cpu_s, wall_s, resident, peak, killed = (median(column) for column in zip(*found, strict=True))
            free_s = free_s or cpu_s
            cells = [f"{len(asked.names)}, {name}", f"{limit or ''}", f"{cpu_s:.2f}", f"{cpu_s / free_s:.2f}"]
            cells += [f"{wall_s:.2f}", f"{resident:.0f}", f"{peak:.0f}" if limit else "", f"{killed:.0f}"]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([f"medians of {runs} runs; every answer is DuckDB's\n", *lines])


def _turn(
    asked: questions.Asked, source: Path, folder: Path, limit_mb: int | None
) -> tuple[float, float, float, float, int]:
    """Ask once; return seconds of processor and clock, the process's and the group's largest size, processes killed."""
    work = folder / "contained"
    cool_files(source)
    if limit_mb is None:
        turn, peak, killed = questions.turn(asked, source, _ENGINES, work, None), 0, 0
    else:
        with memory_group(limit_mb << 20) as group:
            assert group is not None, "one was made before"
            turn = questions.turn(asked, source, _ENGINES, work, None, groups={"drey": group})
            peak, killed = peak_bytes(group), kill_count(group)
    cpu_s, wall_s = (questions.total(turn, "drey", asked.names, what) for what in ("cpu_seconds", "seconds"))
    return cpu_s, wall_s, turn["drey"]["process"]["peak_mb"], peak / 1e6, killed
