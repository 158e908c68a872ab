"""The Dispatcher: takes jobs, starts a JobMaster for each, and keeps what the next leader needs to go on with them.

dispatcher.py   Dispatcher: the endpoint
leading_components.py LeadingComponents: Dispatcher, ResourceManager, JobMasters and stores of one leadership
job_keeper.py   JobKeeper: storage, history and blobs of jobs, from the event loop
job_storage.py  StoredJobs: what a leader keeps of its jobs: files, and a handle for each, which is written last
job_files.py    JobFiles: what the files hold: graphs, journals, decisions, ends
job_handles.py  JobHandles: the handles in the store, changed under the leader's epoch
storage_of_job.py StorageOfJob: the same of one job, for its JobMaster
passing_storage.py PassingStorage: that of a job which ends with its process
storage_folder.py StorageFolder: the folder of the jobs of a cluster
live_jobs.py    what a leader knows of its jobs, enough to store them again
file_handles.py FileHandles: handles of a single JobManager, as files
orphans.py      stored files that no job needs
garbage_timer.py GarbageTimer: a leader removes them now and then
state_backup.py the state of a cluster as one file
end_notices.py  EndNotices: another program hears of the ends of jobs
job_handle.py   JobHandle: what is in force of a job, and the files that it names
job_store.py    jobs that have ended, the latest ones
job_archive.py  the same as files, which outlive the process
"""
