"""PageRank: a loop in the program that starts the jobs, a job a round.

    bin/flink-run engine/examples/page_rank.py

Links stay where ``cache`` has put them; ranks of a round are the rows of the round before. The loop ends when no rank
changes by much, as any loop of Python does.

Held by: tests/integration/test_examples.py
"""

import pyarrow as pa

from drey import DataSet, Environment, col, count, lit, max_, sum_

LINKS = pa.table(
    {
        "page": ["home", "home", "home", "blog", "blog", "shop", "about", "lost"],
        "to": ["blog", "shop", "about", "home", "shop", "home", "home", "home"],
    }
)
DAMPING = 0.85


def page_rank(links: DataSet, rounds: int = 30, change: float = 1e-4) -> DataSet:
    """Return the pages with their ranks, whose sum is the number of pages."""
    links = links.join(links.group_by("page").agg(links=count()), on="page").cache()
    pages = links.select("page").union(links.select(page=col("to"))).distinct().cache()
    ranks = pages.with_columns(rank=lit(1.0)).cache()
    for _ in range(rounds):
        shares = links.join(ranks, on="page").select(page=col("to"), share=col("rank") / col("links"))
        received = shares.group_by("page").agg(share=sum_("share"))
        new = (
            pages.join(received, on="page", how="left")
            .select("page", rank=1 - DAMPING + DAMPING * col("share").fill_null(0.0))
            .cache()
        )
        moved = new.join(ranks.rename({"rank": "old"}), on="page").agg(by=max_((col("rank") - col("old")).abs()))
        ranks = new
        if moved.collect()[0].by < change:
            break
    return ranks.select("page", rank=col("rank").round(3)).sort(["rank", "page"], descending=[True, False])


def main() -> None:
    """Print them."""
    with Environment() as env:
        page_rank(env.from_arrow(LINKS)).show()


if __name__ == "__main__":
    main()
