"""The command line: ``bin/flink-run``.

    main.py          argument tree and exit codes
    run_script.py    a job script as the program: its arguments, its path, its exit code
    py_files.py      files of --py-files, those in object stores fetched
    setting_argument.py  -D key=value, of commands that run jobs or ask a JobManager
    replay.py        the function that failed is called with its row again, under pdb
    submit.py        job submit: runs a script and says what became of its jobs; py_files.py: modules that it ships
    info.py          job info: the plan of a script, nothing executed
    sql_statements.py  sql: statements of a command line or a file
    sql_session.py   what runs them, one after the other
    sql_shell.py     sql on a terminal: a line editor with history and completion; sql_words.py: what it completes
    serve.py         serve: a server of Flight SQL for tools
    agent_server.py  mcp: tables for an agent
    cluster_jobs.py  job list, status, cancel, logs: jobs of a running cluster
    task_managers.py taskmanager list, drain, stop: the processes that run tasks
    tokens.py        token add, list, remove: users and their tokens
    job_trace.py     job trace: the run of a job as a trace for Perfetto
    job_report.py    job report: the profile of a job as one page
    ha_gc.py         ha gc: what a cluster has stored and no job needs any more
    ha_backup.py     ha backup, ha restore: the state of a cluster as one file
    config_show.py   config show: every key, its value, where it comes from
    docs.py          docs: the documentation in a browser, without a network
    progress.py      live progress of a job on a terminal
    quickstart.py    bin/quickstart: data, export, main job, report

Standard output holds what scripts may want to parse; progress and messages for people go to standard error.
Exit codes: 0 done, 1 failed or unknown; the program's own code is passed through.
"""
