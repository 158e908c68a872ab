"""File systems: where data lies that jobs read and write, behind one interface.

    file_system_of(path) ─► FileSystem ─► ranges, listings, parts, publication
                                └─ folders ─► renames, links, locks: what a disk can do, and an object store cannot

    file_system.py    FileSystem, Folders, RangeFile, OutputStream: the interface
    file_systems.py   file_system_of: the file system of a path, by its scheme
    object_store.py   ObjectStore: S3, Google Cloud Storage, Azure, HTTP
    fsspec_files.py   FsspecFileSystem: hdfs, sftp, ftp, smb, webdav and others
    zip_files.py      ZipFileSystem: members of zip archives, which are read
    fsspec_client.py  connections of fsspec, one for a call; their errors as OSError
    store_client.py   the client of a bucket, with the settings of this process; its errors as OSError
    store_errors.py   causes of errors by what a store answers, with advice
    aws_profiles.py   profiles of ~/.aws, which the client does not read
    store_counters.py requests and bytes, counted for the task that asks
    known_objects.py  statuses of objects, kept while a plan is made; work on other threads for this one
    store_options.py  options of a bucket that a call was given
    store_files.py    objects that are read: ranges, several at once, and streams
    store_output.py   objects that are written in parts
    store_uploads.py  uploads of killed processes, which no listing shows
    store_folder.py   the state of a prefix: which of its objects count while some are added or replaced
    local.py          LocalFileSystem: files of this machine
    local_folders.py  LocalFolders: folders of this machine as such
    temporary_files.py  temporary files of this machine, and those that killed processes leave
    renames.py        renameat2: exchange two paths, or rename without replacing

A format opens, lists and writes through this room alone, so that a new file system is one module and one line in
``file_systems``. A path is a text; the file system that it belongs to is the only one that takes it apart.
"""
