"""What a client gets back from a job.

job_result.py    JobResult: state, runtime, rows and bytes of every subtask
termination.py   SIGTERM while a script waits for its job: cancelled and cleaned up first
failure_text.py  FailureInfo -> the error to raise, with the text a person reads
"""
