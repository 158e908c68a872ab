"""Graphs: the stages from what a script built to what a TaskExecutor runs, as plain immutable data.

    DataSet calls ──► Plan ──optimizer──► OptimizedPlan ──chaining──► JobGraph ──JobMaster──► ExecutionGraph ──► TDD
                      what                how, per operator           what is submitted                   one attempt

Every stage is frozen, typed and has a byte form; none holds a user's object, a thread or a socket, and none imports
pyarrow. So the same plan is explained, submitted, recovered, re-planned and translated to Spark.

    exact.py                base of structs that are understood whole or refused
    expression.py           expressions: column, literal, call, cast, case
    function_row.py function_table.py   the functions of expressions: arguments, results, which may fail
    plan_schema.py          a schema as per-column rows with the exact type as Arrow IPC bytes
    sort_key.py             one key of an order
    range_condition.py      between which columns of one side a column of the other lies
    window.py               window functions and their frames
    source_spec.py          sources with their splits and statistics, sinks
    merge_action.py         what becomes of a row in a merge
    plan.py                 Plan and its operators: what, never how; said_operators.py: those that are lowered
    ship_strategy.py        ship strategies, result partition types, partitioners
    exchange_mode.py        ExecutionMode and the DataExchangeMode it gives each kind of edge
    operator_descriptor.py  physical operators of a chain     call_policy.py  how user's functions are called
    runtime_filter.py       rows of a source that a join will drop
    dictionary_limits.py    how close together keys must lie for a dictionary-encoded build side
    run_time_decision.py    what may be decided while a job runs, and the record of what was
    task_wait.py            what a task that makes no progress waits for
    contiguous_runs.py      sizes cut into pieces as equal as possible
    job_graph.py            JobGraph: vertices of chained operators and the data sets between them
    planned_step.py         what the planner expected of an operator
    chained_sources.py      sources that a join reads itself
    components.py           connected components of what is numbered
    pipelined_regions.py    which vertices must run together, and in which order regions can run
    subpartition_share.py   which portion of one subpartition a consumer reads
    packed_sizes.py         sizes of subpartitions as bytes
    deployment.py           what a TaskExecutor is given for one attempt, and what it reports

Source: Flink's JobGraph, ExecutionGraph and their generators.
"""
