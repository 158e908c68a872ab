"""A job made by hand whose time went into one key, its page and the drawing of its plan, for the page on profiles.

    example_job() -> JobProfile      example_page() -> HTML      example_drawing() -> SVG that stands alone

Held by: tests/docs/test_profile_example.py
"""

import re

from msgspec.structs import replace

from engine.profile.causes import with_causes
from engine.profile.job_profile import AttemptProfile, EdgeProfile, JobProfile, OperatorProfile, VertexProfile
from engine.profile.plan_drawing import plan_drawing
from engine.profile.profile_page import profile_page
from engine.profile.spreads import with_spreads

_END_MS = 58_000
_ROWS, _LIGHT_ROWS, _HEAVY_ROWS = 6_000_000, 300_000, 5_100_000
#: style of the drawing where no page gives it one
_STYLE = """<style>text{font:12px system-ui,sans-serif;fill:#16181d}.name{font-weight:600}.label{fill:#565c68;
font-size:11px}rect{fill:#f5f6f8;stroke:#15803d;stroke-width:1.5}rect.cause{stroke:#b91c1c;stroke-width:3.5}
rect.rail{fill:#d3d7de;stroke:none}rect.part{fill:#1d4ed8;stroke:none}path{fill:none;stroke:#565c68}
.bad{fill:#b91c1c;font-weight:600}g.off path{stroke:#b91c1c;stroke-width:2.5}g.off text{fill:#b91c1c;font-weight:600}
</style>"""


def example_job() -> JobProfile:
    """Return the profile of a job with a heavy key behind an estimate that is far off."""
    orders = OperatorProfile(
        "parquet source orders", "source", expected_rows=5e7, expected_bytes=8e8, origin="parquet metadata",
        rows_out=50_000_000, bytes_out=800_000_000, time_ms=7000, files=40, file_bytes=600_000_000,
    )  # fmt: skip
    kept = OperatorProfile(
        "filter status = 'open'", "filter", expected_rows=300_000, expected_bytes=4.8e6, origin="distinct values",
        rows_in=50_000_000, rows_out=_ROWS, bytes_out=96_000_000, time_ms=900,
    )  # fmt: skip
    group = OperatorProfile(
        "group by customer", "hash_aggregate", expected_rows=40_000, origin="distinct keys", rows_in=_ROWS,
        rows_out=38_000, bytes_in=96_000_000, bytes_out=600_000, time_ms=52_000,
        keys=("customer",), heavy=(("42", 0.85),),
    )  # fmt: skip
    sink = OperatorProfile("parquet sink sums", "sink", expected_rows=40_000, rows_in=38_000, rows_out=38_000)
    scans = tuple(
        AttemptProfile(
            index,
            "FINISHED",
            0,
            index % 2,
            0,
            100,
            130,
            200,
            2400 + 90 * index,
            rows_out=_ROWS // 4,
            bytes_out=24_000_000,
            cpu_ms=1800 + 60 * index,
        )
        for index in range(4)
    )
    groups = tuple(
        AttemptProfile(
            index,
            "FINISHED",
            0,
            index % 2,
            2670,
            2700,
            2730,
            2800,
            end_ms,
            rows_in=rows,
            rows_out=9500,
            bytes_in=16 * rows,
            cpu_ms=(end_ms - 2800) * 9 // 10,
            managed_bytes_peak=24 * rows,
        )
        for index, (rows, end_ms) in enumerate(
            [(_LIGHT_ROWS, 6200), (_HEAVY_ROWS, _END_MS), (_LIGHT_ROWS, 5900), (_LIGHT_ROWS, 6100)]
        )
    )
    edge = EdgeProfile(0, "PARTITION_HASH", is_stored=True, rows=_ROWS, bytes=96_000_000, expected_rows=300_000)
    vertices = (
        _vertex(0, 2670, (), (orders, kept), scans),
        _vertex(2670, _END_MS, (edge,), (group, sink), groups),
    )
    job = JobProfile("4f" * 16, "sums of customers", "FINISHED", 1_767_225_600_000, _END_MS, has_ended=True)
    managers = ("1d" * 16, "2e" * 16)
    return with_causes(replace(job, vertices=vertices, task_managers=managers))


def _vertex(
    start_ms: int,
    end_ms: int,
    inputs: tuple[EdgeProfile, ...],
    operators: tuple[OperatorProfile, ...],
    attempts: tuple[AttemptProfile, ...],
) -> VertexProfile:
    name = " -> ".join(operator.name for operator in operators)
    made = VertexProfile(name, "FINISHED", len(attempts), start_ms, end_ms, inputs, operators, attempts)
    return with_spreads(made, _END_MS)


def example_page() -> str:
    """Return the page of the job."""
    return profile_page(example_job())


def example_drawing() -> str:
    """Return the drawing of its plan as a file of its own."""
    found = re.search(r"<svg (.*)</svg>", plan_drawing(example_job()), re.DOTALL)
    assert found is not None, "the plan is small enough to be drawn"
    head, _, rest = found[1].partition(">")
    return f'<svg xmlns="http://www.w3.org/2000/svg" {head}>{_STYLE}{rest}</svg>\n'
