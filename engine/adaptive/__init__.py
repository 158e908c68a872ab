"""Run-time decisions: the plan of a running job looked at again when finished results show their real sizes.

    JobGraph, real sizes, what has begun ─► decide ─► decisions ─► apply ─► the changed JobGraph
                                            decisions.py            changes.py

The JobMaster asks and carries out; everything here is pure. What may become of each join is a fact of its plan, which
the planner leaves in the JobGraph (``engine.optimizer.adaptive_facts``); costs are the planner's
(``engine.statistics.costs``), with real sizes. So a job that is recovered on another JobManager comes to the same
graph by its recorded decisions, without the optimizer.

    decisions.py     real sizes of finished results -> what is done otherwise
    changes.py       a decision -> the changed JobGraph; replay of recorded ones
    costs.py         when a broadcast is better than a repartitioning
    order.py         which region waits for a real size before it begins
    skew.py          inputs that turn out skewed are split, whatever their keys are
    graph_shape.py   what decisions ask of a JobGraph

Source: Spark's adaptive query execution and Flink's adaptive batch scheduler.
"""
