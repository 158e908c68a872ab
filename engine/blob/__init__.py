"""Files that ship with a job: content by its SHA-256, one folder per job, removed with the job.

blob_store.py    BlobStore: the files of a process, on both sides
stored_blobs.py  StoredBlobs: the files of a cluster in an object store
blob_server.py   BlobServer: PUT and GET of blobs at the JobManager
blob_cache.py    BlobCache: what a TaskManager has fetched, each blob once
archive.py       unpack: untrusted archives, within bounds
module_store.py  BlobModuleStore: the modules of a job as entries of a module search path
"""
