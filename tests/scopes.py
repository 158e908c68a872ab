"""Which tests of a run of several processes (pytest-xdist) stay in one of them, one after the other.

Those of a file, as with ``--dist loadfile``; and all that may ask for the session of Spark (tests/spark/conftest.py).
Each process that has one starts a JVM and lets it load and compile Spark once more, half a minute of processor time.

Held by: tests/test_scopes.py
"""

#: folders and files whose tests share a session
SPARK_TESTS = ("tests/spark/", "tests/dataframes/", "tests/types_table/test_spark_types.py")


def scope_of(nodeid):
    """Return the name of what a test stays together with."""
    return "spark" if nodeid.startswith(SPARK_TESTS) else nodeid.partition("::")[0]


def scheduler_of(config, log):
    """Return what hands the tests of ``--dist loadfile`` out, or None for other manners."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class LoadScheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return scope_of(nodeid)

    return LoadScheduling(config, log)
