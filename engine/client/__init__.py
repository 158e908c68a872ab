"""The client of a cluster: it submits and cancels jobs, and returns their results.

cluster_client.py  ClusterClient: questions to the leading JobManager, asked again of the next leader
leader_answers.py  how a JobManager says that it is not the one to ask
leader_source.py   where the leader is: fixed addresses; elected_leader.py: a watch on ZooKeeper; leader_address.py:
                   which of them the configuration asks for
deployments.py     ways to deploy that Flink has: which are here, which are refused by name
job_result.py      JobResult: state, runtime, rows and bytes of every subtask
job_listener.py    what watches the jobs of this process
notebook_progress.py   what a notebook shows of a job while it runs
termination.py     SIGTERM, SIGHUP while a script waits for its job: cancelled and cleaned up first
failure_text.py    FailureInfo -> the error to raise, with the text a person reads
"""
