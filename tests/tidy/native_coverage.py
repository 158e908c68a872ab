"""Coverage of the native modules from a report: every .pyx must be in it (tools drop compiled files silently).

python -m tests.tidy.native_coverage build/coverage.json           all rooms
python -m tests.tidy.native_coverage build/coverage.json engine/memory ...

    share   lines  module                                never ran
    97.4 %    151  engine/accumulators/state_combiner.pyx   88-90 131
"""

import json
import sys
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RANGES_MAX = 12


def ranges_of(lines):
    """Return lines as text: neighbours as ranges, at most RANGES_MAX of them."""
    runs = []
    for line in lines:
        if runs and line == runs[-1][1] + 1:
            runs[-1][1] = line
        else:
            runs.append([line, line])
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in runs]
    return " ".join(texts[:RANGES_MAX] + ["..."] * (len(texts) > RANGES_MAX))


def row_of(summaries, name, missing=()):
    """Return a line of the table for modules together."""
    total = sum(summary["num_statements"] for summary in summaries)
    covered = sum(summary["covered_lines"] for summary in summaries)
    return f"{100 * covered / max(1, total):6.1f} %  {total:5}  {name:44}  {ranges_of(missing)}".rstrip() + "\n"


def main(report, *rooms):
    """Print the share of lines that ran in each native module; exit 1 when one is missing or never ran."""
    files = json.loads(Path(report).read_text())["files"]
    wanted = sorted(
        str(path.relative_to(ROOT)) for room in rooms or ["engine"] for path in ROOT.glob(f"{room}/**/*.pyx")
    )
    missing = [path for path in wanted if path not in files or not files[path]["summary"]["covered_lines"]]
    found = [path for path in wanted if path not in missing]
    sys.stdout.write(f"   share  lines  {'module':44}  never ran\n")
    for room, paths in groupby(found, key=lambda path: str(Path(path).parent)):
        modules = list(paths)
        for path in modules:
            sys.stdout.write(row_of([files[path]["summary"]], path, files[path]["missing_lines"]))
        sys.stdout.write(row_of([files[path]["summary"] for path in modules], f"{room} together"))
    sys.stdout.write(row_of([files[path]["summary"] for path in found], "all native modules"))
    if missing:
        sys.stdout.write(f"not in the report, or never ran: {', '.join(missing)}\n")
    if not found:
        sys.stdout.write("no native line was counted: is this the coverage build (build/profile), traced by ctrace?\n")
    return 1 if missing or not found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
