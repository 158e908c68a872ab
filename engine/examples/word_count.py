"""Word count, the way of Python functions: a generator splits lines, groups are counted.

    bin/flink-run engine/examples/word_count.py [FILE ...]

Held by: tests/integration/test_examples.py
"""

import sys
from collections.abc import Iterator, Sequence

import pyarrow as pa

from drey import DataSet, Environment, Row, col, count

WORDS = pa.schema({"word": pa.string()})
LINES = ["to be or not to be", "that is the question", "to sleep to dream"]


def words(row: Row) -> Iterator[tuple[str]]:
    """Return the words of a line."""
    for word in row.line.lower().split():
        yield (word.strip(".,;:!?\"'()"),)


def word_count(lines: DataSet) -> DataSet:
    """Return the words that are there more than once, the most frequent first."""
    found = lines.flat_map(words, WORDS)
    counted = found.group_by("word").agg(times=count()).filter(col("times") > 1)
    return counted.sort(["times", "word"], descending=[True, False])


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the counts of the files on the command line, or of some lines."""
    files = sys.argv[1:] if arguments is None else list(arguments)
    with Environment() as env:
        lines = env.read_text(files) if files else env.from_arrow(pa.table({"line": LINES}))
        word_count(lines).show()


if __name__ == "__main__":
    main()
