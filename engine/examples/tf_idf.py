"""TF-IDF: which words tell documents apart, those that one has often and few others have at all.

    bin/flink-run engine/examples/tf_idf.py

Words come from ``split`` and ``explode``, without a Python function; the number of documents is a one-row data set
that is joined to all rows.

Held by: tests/integration/test_examples.py
"""

import pyarrow as pa

from drey import DataSet, Environment, col, count, count_distinct, row_number

DOCUMENTS = pa.table(
    {
        "name": ["fox", "dog", "sea"],
        "text": [
            "the quick brown fox jumps over the lazy dog and the fox runs",
            "the dog sleeps and the dog dreams of the fox",
            "the sea is wide and the sea is deep",
        ],
    }
)


def tf_idf(documents: DataSet) -> DataSet:
    """Return the three words of greatest weight for each document."""
    words = documents.select("name", col("text").str.split(" ").alias("word")).explode("word")
    of_document = words.group_by("name", "word").agg(times=count())
    of_word = words.group_by("word").agg(documents=count_distinct("name"))
    all_documents = documents.agg(all=count())
    weighed = of_document.join(of_word, on="word").join(all_documents, how="cross")
    weight = col("times") * (col("all") / col("documents")).ln()
    place = row_number().over("name", order_by=["weight", "word"], descending=[True, False])
    ranked = weighed.select("name", "word", weight=weight.round(3)).with_columns(place=place)
    return ranked.filter(col("place") <= 3).sort(["name", "place"])


def main() -> None:
    """Print them."""
    with Environment() as env:
        tf_idf(env.from_arrow(DOCUMENTS)).show()


if __name__ == "__main__":
    main()
