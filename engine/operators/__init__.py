"""Operators: the work of a task, a head driver and the chain of operators behind it.

    BatchTask ── opens the chain from its TaskDeploymentDescriptor, runs the driver, finishes, closes
      ├── SourceDriver     reads the splits of the subtask          (no input)
      ├── InputDriver      passes on one input's batches or row pages (one input, or a union)
      ├── HashJoinDriver   builds from one input, probes with the other
      └── SortMergeJoinDriver   sorts both inputs, merges them
            └──► ChainedOperator ──► ChainedOperator ──► RecordWriters (to other tasks)   or   SinkOperator (a file)

    operator.py        ChainedOperator: process(batch), finish(), close(); what an operator is told (TaskContext)
    row_wise.py        project, filter, limit, identity
    sort_operator.py   takes everything, then emits; so does ``aggregate_operator`` of the room of aggregates
    sort_exchange.py   a sort over subtasks: runs at the end of the producers, merges at the consumers
    range_windows.py   such a merge with window functions over the rows of all ranges
    received_runs.py   the runs of producers in other processes, brought here for that merge
    state_combining.py partial states that such a sort combines: the combiner, and results in the end
    evaluated_rows.py  base of what follows: rows to an evaluation, and its results on
    sorted_rows.py     window functions, and aggregates of sorted groups
    partitioned_aggregate.py   aggregates of groups whose values are held, of rows in any order
    explode_operator.py    elements of lists as rows
    python_operator.py user functions in worker processes
    sink_operator.py   stages a file for the commit
    drivers.py         heads that read splits or pass on one input
    chained_source.py  an input that the task reads itself: a source and row-wise operators
    hash_join_driver.py    the head of a hash join
    shared_builds.py   one build side for all subtasks of a broadcast join in a process
    split_queues.py     splits of a source, which its subtasks in a process take from each other
    joined_splits.py    splits that follow one another, taken as one
    scan_threads.py     a source that several threads read for one task, in the order of its splits
    work_ahead.py       projections and filters of batches that wait, made by threads that read
    helper_threads.py   threads that work beside a task's own on one thing that it waits for
    runtime_filters.py filters of sources, made of a join's build side; filter_registry: for those in other tasks
    kept_keys.py       keys of a build side that comes as batches, which filters are made of
    awaited_filters.py those that a task waits for before it reads its first row
    filter_exchange.py those of joins in other processes
    stored_filters.py  those of stored build sides, as a result of their own
    sort_merge_driver.py   the head of a sort-merge join
    partitioned_asof_driver.py   the head of an as-of join by keys, partition by partition
    pair_conditions.py a join's condition, as a predicate over pairs of rows
    source_pacing.py   holds the batches of a source back to a rate
    heavy_copies.py    which rows of a join whose heavy keys are split are copies
    registry.py        descriptor -> operator, driver; loaded when a task has one
    batch_task.py      the whole of one attempt
    task_inputs.py     TaskInput: one logical input, the gates behind it
    task_services.py   what tasks of a process use: memory, disk, network, functions
    broadcast_driver.py    in front of a function that is told whole data sets first
    group_marker.py    where groups begin in a stream of sorted batches
    attached_column.py rows that wait for the column which a function makes of them
    chain_link.pyx     what each operator of a chain is and asks natively: cancelled, satisfied, the end
    arrow_peak.pyx     most memory of Arrow while a task ran
    task_waits.py      what a task waits for at a moment
    operator_meters.py rows, bytes and time of each operator of a chain (meter.pyx)
    spill_accounts.py  what each operator of a chain spilled, and the memory that it held

A chain is driven by pushing: a batch goes through ``process`` of each operator in turn; ``finish`` runs from head to
tail once the input has ended. One thread runs one task; ``cancel`` is the only call from another thread.

Source: Flink's BatchTask, Driver and ChainedDriver.
"""
