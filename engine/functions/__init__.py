"""How a user's Python functions run: in worker processes, fed with Arrow over shared memory.

    task thread                              zygote (pre-imported, starts with the first function)
      FunctionSession ──"fork"────────────────► │
        │   batch: Arrow IPC in a memfd         └─fork─► worker: FunctionBody(function).apply(batch)
        └──► ◄── results: Arrow IPC in a second memfd ────┘

    row.py               Row: the light named record that functions see
    function_body.py     batch -> rows -> function -> rows -> batch, the same in a worker and in a thread
    shared_batches.py    one batch in shared memory (a memfd that grows)
    worker_protocol.py   the messages between task and worker
    worker.py            ``python -m engine.functions.worker``: zygote and workers
    worker_process.py    the parent's side: starting, killing and reaping
    function_runner.py   FunctionRunner: sessions for tasks; workers belong to one job

A crash, a leak, ``os._exit`` or an endless loop costs a worker, never the process that runs tasks; the traceback
reaches the user whole. With ``python.execution-mode: thread`` the function runs in the task's own thread, so that a
debugger works.
"""
