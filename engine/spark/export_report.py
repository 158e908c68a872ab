"""The report of an export: for people, as JSON, and as a page.

    ExportReport ─► lines()          what spark-export prints
                 ─► --report F.json  all of it
                 ─► --report F.html  a page that needs nothing else

Held by: tests/spark/test_export_checks.py
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa

from engine.connectors.records_manifest import RecordsColumn, RecordsManifest
from engine.errors import PlanError
from engine.shown_html import table_html
from engine.shown_sizes import size_text

_HEAVY_SHOWN: Final = 10
_WIDTH_MAX: Final = 60
_PAGE: Final = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><style>
:root {{ color-scheme: light dark }}
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem }}
h1 {{ font-size: 1.5rem }}
h1, p {{ overflow-wrap: anywhere }}
h2 {{ font-size: 1.15rem; margin-top: 2rem }}
table {{ border-collapse: collapse; display: block; overflow-x: auto; font-variant-numeric: tabular-nums }}
td, th {{ padding: .25rem 1.5rem .25rem 0; border-bottom: 1px solid #8884; vertical-align: top }}
td {{ max-width: 18rem; overflow-wrap: break-word }}
td:nth-child(3):last-child {{ max-width: 40rem }}
</style></head><body>
<h1>{title}</h1>
{body}
</body></html>
"""


class ExportedColumn(msgspec.Struct, frozen=True):
    """A column of the rows that an export wrote; None: not known, as bounds of nested types."""

    name: str
    type: str
    nulls: int | None
    distinct: int | None
    min: str | None
    max: str | None


@dataclass(frozen=True)
class ExportReport:
    """The report of an export. ``bad_rows`` by reason; ``heavy_keys``: column, value, share, heaviest first."""

    output: str
    row_count: int
    bad_row_count: int
    file_count: int
    size_bytes: int
    rejected: str | None
    bad_rows: Mapping[str, int] = field(default_factory=dict)
    heavy_keys: tuple[tuple[str, str, float], ...] = ()
    seconds: float = 0.0
    columns: tuple[ExportedColumn, ...] = ()
    #: lower bound of an incremental export: its rows are beyond this value of that column
    since: str = ""

    @property
    def rows_read(self) -> int:
        """Rows of the input."""
        return self.row_count + self.bad_row_count

    def lines(self) -> Iterator[str]:
        """Yield lines for people."""
        files = "1 file" if self.file_count == 1 else f"{self.file_count:,} files"
        size = f"{files} ({self.size_bytes:,} bytes)"
        beyond = f" with {self.since}" if self.since else ""
        yield f"exported {self.row_count:,} rows{beyond} in {size} to {self.output}"
        if self.bad_row_count:
            bad = "1 bad row was" if self.bad_row_count == 1 else f"{self.bad_row_count:,} bad rows were"
            yield f"{bad} set aside in {self.rejected}"
            for reason, count in self.bad_rows.items():
                yield f"  {count:,} {reason}"

    def save(self, path: Path) -> None:
        """Write the report: JSON or a page, by the ending of the path."""
        if path.suffix == ".json":
            path.write_bytes(msgspec.json.format(msgspec.json.encode({**asdict(self), "rows_read": self.rows_read})))
        else:
            path.write_text(self.page(), encoding="utf-8")

    def page(self) -> str:
        """Return the report as a page."""
        title = html.escape(f"Export to {self.output}")
        facts = [
            ("rows read", f"{self.rows_read:,}", ""),
            ("rows exported", f"{self.row_count:,}", self._share(self.row_count)),
            ("rows set aside", f"{self.bad_row_count:,}", self._share(self.bad_row_count)),
            ("files", f"{self.file_count:,}", ""),
            ("size", size_text(self.size_bytes), ""),
            ("time", f"{self.seconds:.1f} s", ""),
        ]
        parts = [table_html((), facts, numbers=(1, 2))]
        if self.since:
            parts.append(f"<p>Only rows with {html.escape(self.since)} were read.</p>")
        if self.bad_rows:
            reasons = [(f"{count:,}", self._share(count), reason) for reason, count in self.bad_rows.items()]
            parts.append(f"<h2>Rows set aside</h2>\n<p>They are in {html.escape(str(self.rejected))}.</p>")
            parts.append(table_html(("rows", "share", "reason"), reasons, numbers=(0, 1)))
        if self.heavy_keys:
            heavy = [(f"{share:.1%}", name, shortened(value)) for name, value, share in self.heavy_keys[:_HEAVY_SHOWN]]
            more = len(self.heavy_keys) - len(heavy)
            parts.append("<h2>Heaviest values</h2>")
            parts.append(table_html(("share of rows", "column", "value"), heavy, numbers=(0,)))
            parts.append(f"<p>and {more:,} more, which the manifest names.</p>" if more > 0 else "")
        if self.columns:
            columns = [
                (each.name, each.type, _count(each.nulls), _count(each.distinct), each.min or "", each.max or "")
                for each in self.columns
            ]
            head = ("column", "type", "nulls", "distinct values, about", "least", "greatest")
            parts += ["<h2>Columns</h2>", table_html(head, columns, numbers=(2, 3))]
        return _PAGE.format(title=title, body="\n".join(filter(None, parts)))

    def _share(self, count: int) -> str:
        """Return a share of the rows; few are not none, and all but a few are not all."""
        if not self.rows_read:
            return ""
        text = f"{count / self.rows_read:.1%}"
        if text == "0.0%" and count:
            return "<0.1%"
        return ">99.9%" if text == "100.0%" and count < self.rows_read else text


def exported_columns(manifest: RecordsManifest) -> tuple[ExportedColumn, ...]:
    """Return the columns of a manifest, in their order."""
    found = []
    for each in pa.ipc.read_schema(pa.py_buffer(manifest.schema)):
        column = manifest.columns.get(each.name, RecordsColumn())
        distinct = None if column.distinct_estimate is None else round(column.distinct_estimate)
        bounds = (None if one is None else shortened(str(one)) for one in (column.min, column.max))
        found.append(ExportedColumn(each.name, str(each.type), column.null_count, distinct, *bounds))
    return tuple(found)


def shortened(text: str) -> str:
    """Return a text that is not too wide for a table."""
    return text if len(text) <= _WIDTH_MAX else f"{text[: _WIDTH_MAX - 1]}…"


def _count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def check_report_path(path: str) -> Path:
    """Return the path of a report; PlanError for an ending that names no format, or a missing folder."""
    chosen = Path(path)
    if chosen.suffix not in (".json", ".html"):
        raise PlanError(f"--report {path}: the ending says the format: .json or .html")
    if not chosen.parent.is_dir():
        raise PlanError(f"--report {path}: there is no folder {chosen.parent}")
    return chosen
