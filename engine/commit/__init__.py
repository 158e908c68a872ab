"""Commit: the output of a job appears once, or not at all.

    check_outputs ─► create_staging ─► attempts write ─► decide ─► publish ─► (staging is gone)
                                         └── failure, cancel ──► abort ──────► (staging is gone)

    output_check.py   outputs that exist, or that two sinks share, are refused before anything starts
    staging.py        StagingFolder: beside the target, with its owner; created, aborted, swept
    decision.py       Decision: which attempts' files are the output, as JSON
    publish.py        publish: decided files become the target with one rename; every step can be repeated
    merge.py          merge_into: files added to a target that stays, partitions replaced
    target_lock.py    one job at a time adds to a target
    result_record.py  JobResultRecord: how a job ended

What a step needs of the file system it asks ``engine.storage`` for: renames of folders and hard links are something
that only some file systems can do.

A target is a folder of ``part-00000.<ext>`` files, maybe in folders of partitions, and nothing else. The decision is
the moment at which the job's outcome is fixed: before it, staging is removed and the target was never touched; after
it, any leader may repeat the publication and can only arrive at the same result.

Limits: staged files are written, not synchronised. They outlive every process; whether they outlive a crash of the
machine depends on its file system.
"""
