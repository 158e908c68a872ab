"""Acceptance: whole programs over a hundred times the managed memory, against DuckDB, in a memory control group.

    python -m tests.acceptance [--managed 4mb] [--slots 2] [--scale 100] [--programs a,b] [--mode BATCH] [--force-spill]
                               [-D key=value] [--folder DIR] [--rounds N [--cluster]] [--disk-full MB | --bit-flips]

    tables.py            the inputs: seeded, written in pieces, kept in the folder from run to run
    programs.py          the programs and the same in SQL: joins, groups, sorts, sets, nested values
    skewed_programs.py   the same of rows of which 99 % have one key, on either side and on both
    python_programs.py   Python functions, CSV, record data sets
    program.py           what a program is
    programs_process.py  what the process executes that runs them, and how it is looked at
    lives.py             such a process seen from outside: started, asked, ended; programs one after another
    expectations.py      results compared by DuckDB: a hash without an order, floats nearly, and the order of sorts
    limits.py            the bound, and the control group that enforces it
    damage.py            a disk that is full, bits of spill files that flip
    report.py            the table

What holds for every program: its result is DuckDB's; memory over idle stays within managed + network + 64 MB + 16 MB a
slot + three of the largest records; nothing is left in spill folders or beside the output, no page and no descriptor is
lost; no operator and no vertex spills more than twice its input (with ``--force-spill`` it may). Exit code 1 where
something does not.

By default each program has a process of its own. With ``--rounds N`` one process runs all of them N times, and the
growth is that over its first idle; ``--cluster`` has a TaskManager of a real cluster do so.

With ``--disk-full`` the spill folder is a small disk: a program ends right, or with one error that names the folder.
With ``--bit-flips`` bits of spill files flip: it ends right, or with an error that names the file.

Never part of the tests but for two small programs (``test_acceptance.py``). No time is asserted.
"""
