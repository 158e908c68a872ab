"""A funnel: how many users came from one step to the next, in this order.

    bin/flink-run engine/examples/funnel.py

Each step's first time of a user is one row; a step counts where it came after the one before.

Held by: tests/integration/test_examples.py
"""

import random
from datetime import datetime, timedelta

import pyarrow as pa

from drey import DataSet, Environment, col, count, lit, min_, when

STEPS = ("visit", "basket", "payment")


def events(users: int = 1_000) -> pa.Table:
    """Return events of users; at each step some leave."""
    chance = random.Random(4)
    rows = []
    for user in range(users):
        at = datetime(2026, 3, 2) + timedelta(seconds=chance.randrange(86_400))
        for step in STEPS[: chance.choices((1, 2, 3), (5, 3, 2))[0]]:
            rows.append({"user": user, "step": step, "at": at})
            at += timedelta(seconds=chance.randrange(1, 900))
    chance.shuffle(rows)
    return pa.Table.from_pylist(rows)


def funnel(data: DataSet) -> DataSet:
    """Return one row: the users of each step that came by all steps before."""
    firsts = data.group_by("user").agg(**{step: min_(when(col("step") == step).then(col("at"))) for step in STEPS})
    reached = lit(True)
    counts = {}
    for step, before in zip(STEPS, (None, *STEPS), strict=False):
        reached = reached & (col(step).is_not_null() if before is None else (col(step) > col(before)))
        counts[step] = count(when(reached).then(1))
    return firsts.agg(**counts)


def main() -> None:
    """Print the numbers."""
    with Environment() as env:
        funnel(env.from_arrow(events())).show()


if __name__ == "__main__":
    main()
