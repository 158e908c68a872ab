"""Analysis of a web server's log: requests, errors and the slowest answers of each path, from lines of text.

    bin/flink-run engine/examples/access_log.py [LOG ...]

Fields come out of the lines by a regular expression; lines that do not fit are counted, not lost.

Held by: tests/integration/test_examples.py
"""

import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from drey import DataSet, Environment, avg, col, count, max_, when

LINE = r'"(?:GET|POST) (\S+) [^"]*" (\d{3}) \d+ ([\d.]+)$'


def write_log(path: Path, lines: int = 2_000) -> None:
    """Write a log, every hundredth line of it broken."""
    chance = random.Random(6)
    with path.open("w") as file:
        for number in range(lines):
            if number % 100 == 99:
                file.write("-- restarted --\n")
                continue
            name = chance.choice(("/", "/basket", "/search", "/pay"))
            status = chance.choices((200, 404, 500), (90, 7, 3))[0]
            file.write(f'10.0.0.{number % 9} - - [02/Mar/2026] "GET {name} HTTP/1.1" {status} 512 ')
            file.write(f"{chance.expovariate(10):.3f}\n")


def paths(lines: DataSet) -> DataSet:
    """Return the figures of each path; null is what stands for lines that are no requests."""
    line = col("line")
    fields = lines.select(
        path=line.str.extract(LINE, 1),
        status=line.str.extract(LINE, 2).cast("int32"),
        seconds=line.str.extract(LINE, 3).cast("float64"),
    )
    found = fields.group_by("path").agg(
        requests=count(),
        errors=count(when(col("status") >= 500).then(1)),
        mean=avg("seconds"),
        slowest=max_("seconds"),
    )
    return found.with_columns(mean=col("mean").round(4)).sort("requests", descending=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures of the logs on the command line, or of one that is made."""
    logs = sys.argv[1:] if arguments is None else list(arguments)
    with Environment() as env, tempfile.TemporaryDirectory() as folder:
        if not logs:
            write_log(Path(folder) / "access.log")
            logs = [folder]
        paths(env.read_text(logs)).show()


if __name__ == "__main__":
    main()
