"""Plans as DataFrames of Spark: the same script where a job outgrows the cluster, with the same rows.

    Plan ─► PlanTranslator, node by node
              ├── Frame: a DataFrame whose columns are c0, c1 ..., and row-wise nodes that wait (frame.py)
              ├── expressions and nodes that Spark computes as the engine does: DataFrame operations
              └── all others: fragments, pieces of the plan that the embedded cluster runs inside Spark's tasks,
                  over rows that Spark has brought together by key

Our semantics win. What Spark does alike is Spark's (``native_expressions``, one row each); of what it does otherwise,
or has not, Spark is the exchange and the engine the operator: the worker's rows go through ``mapInArrow`` into the
engine's own operators, which spill. So no operator and no expression has a second meaning.

needed_settings.py     settings of the session that decide which rows come out
carried_types.py       types on their way through Spark
frame.py               Frame, and how waiting nodes become a fragment
fragments.py           what a task of Spark runs: a small plan on an embedded cluster
native_expressions.py  expressions as columns of Spark, or None
native_numbers.py      arithmetic, quotients and comparisons of them
native_texts.py        patterns of texts
said_nodes.py          operators as users say them: groups with filters and sets, windows
native_windows.py      window functions as columns of Spark, or None
native_aggregates.py   aggregates as columns of Spark, or None
source_frames.py       sources, read by splits
relations.py           joins, sorts, groups and the like
partitionings.py       partitionings that the user asks for
keyed_fragments.py     operators over rows with equal keys, of one input or two
outputs.py             sinks: written by tasks, published at once
translator.py          the walk over a plan
"""
