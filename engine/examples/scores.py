"""A model applied to batches: features by expressions, the model loaded once a worker, scores as a column.

    bin/flink-run engine/examples/scores.py

The function is a class with ``open``, which runs once in each worker process, and is called with Arrow batches. The
model here is a logistic regression with three weights; a file of any library would be loaded at the same place.

Held by: tests/integration/test_examples.py
"""

import random

import pyarrow as pa
import pyarrow.compute as pc

from drey import DataSet, Environment, col, when

SCORED = pa.schema({"customer": pa.int64(), "score": pa.float64()})


def customers(count: int = 1_000) -> pa.Table:
    """Return customers with what is known of them, an income not always."""
    chance = random.Random(5)
    return pa.table(
        {
            "customer": list(range(count)),
            "age": [chance.randrange(18, 80) for _ in range(count)],
            "income": [chance.choice((None, chance.uniform(1e3, 1e5))) for _ in range(count)],
            "country": [chance.choice(("NO", "IT", "PE")) for _ in range(count)],
        }
    )


class Score:
    """Applies the model."""

    def open(self, context: object) -> None:
        """Load the model."""
        self.weights = {"age_scaled": 0.8, "income_known": 0.4, "is_near": -0.3}

    def map_batches(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the customers of a batch with their scores."""
        total = pa.scalar(0.0)
        for name, weight in self.weights.items():
            total = pc.add(total, pc.multiply(batch.column(name), weight))
        score = pc.divide(1.0, pc.add(1.0, pc.exp(pc.negate(total))))
        return pa.record_batch([batch.column("customer"), score], schema=SCORED)


def scores(data: DataSet) -> DataSet:
    """Return the five customers of the highest scores."""
    features = data.select(
        "customer",
        age_scaled=(col("age") - 18) / 62.0,
        income_known=when(col("income").is_null()).then(0.0).otherwise(1.0),
        is_near=when(col("country") == "NO").then(1.0).otherwise(0.0),
    )
    return features.map_batches(Score(), SCORED).sort(["score", "customer"], descending=[True, False]).limit(5)


def main() -> None:
    """Print them."""
    with Environment() as env:
        scores(env.from_arrow(customers())).show()


if __name__ == "__main__":
    main()
