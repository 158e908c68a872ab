"""Execution of a user's Python functions: in worker processes, fed with Arrow over shared memory.

    task thread                              zygote (pre-imported, starts with the first function)
      FunctionSession ──"fork"────────────────► │
        │   batches: Arrow IPC in two memfds    └─fork─► worker: FunctionBody(function).run(batches)
        └──► ◄── results: Arrow IPC in a third ───┘

    row.py               Row: the light named record that functions see; row_base.pyx: what it is made of
    row_reader.pyx       rows of batches, made one at a time     row_appender.pyx    returned rows taken apart
    row_loop.pyx         the loops around a function      careful_calls.py    async, called again, may fail
    python_functions.py  a script's functions as operators of the plan
    schema_inference.py  schemas of rows and functions, from type hints or the first rows
    function_bytes.py    functions as bytes that keep the names of their files
    user_function.py     what a function may be: a callable or a rich object; what ``open`` is told
    function_body.py     batches -> rows -> function -> rows -> batches, the same in a worker and in a thread
    function_output.py   returned rows -> batches          function_error.py   what went wrong, where, on which row
    batch_formats.py     batches as Arrow, pandas, numpy   group_rows.py       groups in a stream of sorted batches
    used_columns.py      which columns a function uses, read from its bytecode
    waiting_rows.py      only those go to its worker: the rows wait in the task
    failed_inputs.py     the rows for which it failed, beside its results
    shared_batches.py    one batch in shared memory (a memfd that grows)
    worker_protocol.py   the messages between task and worker
    worker.py            ``python -m engine.functions.worker``: zygote and workers
    worker_process.py    the parent's side: starting, killing and reaping
    function_session.py  FunctionSession, WorkerSession       thread_session.py   the same in the task's process
    function_runner.py   FunctionRunner: sessions for tasks; workers belong to one job
    failed_row.py        the row for which a function failed, and the function called with it again
    worker_trace.py      where a worker says where it is, whatever its function does
    worker_user.py       whose rights functions have, where that is not the TaskManager's user
    long_calls.py        a function that is at one row for very long is told of, or ended
    function_room.py     what rows that wait for it take of a disk's limit
    worker_excess.py     why a worker was ended: figures and the text of the error
    first_calls.py       the first rows of a function without a schema, seen in the worker
    worker_watch.py      what all workers hold is kept within their budget

Input is pulled by the function and results are pushed while it comes, so a function over all rows of a subtask, or over
a group larger than memory, holds what the user's code holds and a batch besides.

A crash, a leak, ``os._exit`` or an endless loop costs a worker, never the process that runs tasks; the traceback
reaches the user whole. With ``python.execution-mode: thread`` the function runs in the task's own process, so that a
debugger works.
"""
