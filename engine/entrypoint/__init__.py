"""The processes of a cluster, and the commands that start and stop them. No other room imports this one.

jobmanager.py          python -m engine.entrypoint.jobmanager: a JobManager's process
leading_stores.py      settings and stores of what it runs while it leads
leader_endpoint.py     which JobManager leads: answered by JobManagers, asked by TaskManagers
process_contender.py   the leaderships of one JobManager, one after the other
supervisor.py          python -m engine.entrypoint.supervisor: restarts a JobManager that died, ends its session at once
storage_places.py      where a JobManager keeps what outlives a leader
stored_garbage.py      what is stored and no job needs, for commands
stored_backup.py       backups of it, for commands
standalone_epoch.py    the epoch of a JobManager without a quorum
taskmanager.py         python -m engine.entrypoint.taskmanager: a TaskManager's process
standalone_job.py      python -m engine.entrypoint.standalone_job: one job on a JobManager of its own
probe.py               python -m engine.entrypoint.probe: asks a process here for its health
parent_death.py        a process that ends with its parent
historyserver.py       python -m engine.entrypoint.historyserver: shows jobs that have ended
zookeeper.py           python -m engine.entrypoint.zookeeper: a server of conf/zoo.cfg, which zookeeper_config.py reads
process_watch.py       ProcessWatch: the numbers of a process, for metrics
servers.py             HTTP server, message service and secret of a process
daemon.py              the life of a process: settings, logging, signals, exit code
logging_setup.py       what is logged where
log_files.py           log files that are put away
audit_file.py          AuditFile: the record of changes, a file of its own
readiness.py           telling the script that started a process that it serves
scripts.py             what bin/*.sh do
commands.py            the same as console scripts of an installation
daemon_control.py      starting and stopping daemons
pid_file.py            which daemons there are
places.py              folders and names of files
"""
