"""Coverage of the native modules from a report: every .pyx must be in it (tools drop compiled files silently).

python -m tests.tidy.native_coverage build/coverage.json
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main(report):
    """Print the share of lines that ran in each native module; exit 1 when one is missing or never ran."""
    files = json.loads(Path(report).read_text())["files"]
    wanted = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("engine/**/*.pyx"))
    missing = [path for path in wanted if path not in files or not files[path]["summary"]["covered_lines"]]
    total = covered = 0
    for path in wanted:
        if path not in missing:
            summary = files[path]["summary"]
            total += summary["num_statements"]
            covered += summary["covered_lines"]
            sys.stdout.write(f"{summary['percent_covered']:6.1f} %  {path}\n")
    sys.stdout.write(f"{100 * covered / max(1, total):6.1f} %  of {total} native lines\n")
    if missing:
        sys.stdout.write(f"not in the report, or never ran: {', '.join(missing)}\n")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
