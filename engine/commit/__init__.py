"""Commit: the output of a job appears once, or not at all.

    check ─► prepare ─► attempts write ─► decide ─► publish ─► clean
                           └── failure, cancel ──► abort

    output_target.py  OutputTarget: what each kind of place does in these steps; one entry each
    targets.py        the registry of targets
    decision.py       Decision: which attempts' files are the output, as JSON
    beside_target.py  BesideTarget: what targets have in common that stage in a folder beside the output
    handed_target.py  HandedTarget: rows that tasks hand to a client in their own process
    publish.py        publish: each decided output by its target; every step can be repeated
    result_record.py  JobResultRecord: how a job ended

A folder of plain files:

    folder_target.py       FolderTarget, the entry
    folder_check.py        a folder that exists, or cannot be made, is refused before anything starts
    staging.py             the staging folder beside the target, with its owner; created, aborted, swept
    folder_publication.py  decided files become the target with one rename
    merge.py               merge_into: files added to a target that stays, partitions replaced
    target_lock.py         one job at a time adds to a target

A single file:

    file_target.py         FileTarget, the entry
    placed_files.py        StoreFileTarget, RenamedFileTarget: in stores, and on servers that rename

A prefix of an object store:

    store_target.py        StoreTarget, the entry
    renamed_target.py      RenamedTarget: servers that rename folders, and keep no two writers apart
    store_publication.py   the store copies decided files to their names; all of them count at one moment

What a step needs of the file system it asks ``engine.storage`` for: renames of folders and hard links are something
that only some file systems can do.

A folder has ``part-00000.<ext>`` files, maybe in folders of partitions, and nothing else. The decision is the moment at
which the job's outcome is fixed: before it, staging is removed and the target was never touched; after it, any leader
may repeat the publication and can only arrive at the same result.

Limits: staged files are written, not synchronised. They outlive every process; whether they outlive a crash of the
machine depends on its file system.
"""
