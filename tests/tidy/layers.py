"""The table of layers: a package may import strictly lower lines; packages on one line never import each other.

``engine/examples`` stands outside: it uses the public API only.
"""

#: what people are shown
_SHOWN = ("shown_html", "shown_pages", "shown_quantities", "shown_sizes", "user_warnings")
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "choices", "closing", "foreign_names", "near_names", "network_address", "shown_text"),
    ("private_folder", "machine_limits", "storage", "versions"),
    ("ids", "clock", "config", "fault_points", "log_output", "python_command", *_SHOWN),
    ("log_format",),
    ("process_folder", "task_log"),
    ("memory",),
    ("graph",),
    ("records", "iomanager", "rpc"),
    ("sort", "partitions", "accumulators"),
    ("exchange", "gateways", "blob", "join", "expressions", "commit"),
    ("files", "statistics", "window"),
    ("formats",),
    ("csv", "parquet"),
    ("transport", "connectors", "functions", "insight", "adaptive", "profile"),
    ("delta_tables", "databases", "iceberg_tables"),
    ("operators",),
    ("aggregate",),
    ("optimizer", "taskexecutor", "jobmaster", "resourcemanager", "client"),
    ("sources", "lowering", "column_expressions", "dialects"),
    ("outputs", "lineage", "selectors"),
    ("dispatcher", "api", "rest"),
    ("spark", "sql_values"),
    ("sql",),
    ("statements",),
    ("entrypoint", "minicluster"),
    ("dataframes",),
    ("targets", "flight_sql", "mcp_server"),
    ("cli", "ibis_backend"),
    ("drey",),
)

#: what a room may use of ``ha``: interfaces; the composition roots, and a client that asks who leads, the services too
HA_INTERFACES_FROM = frozenset({"jobmaster", "dispatcher", "resourcemanager", "taskexecutor", "client"})
HA_SERVICES_FROM = frozenset({"entrypoint", "minicluster", "client"})

#: rooms that a JobManager loads, and what they must not
PURE_ROOMS = frozenset(
    {
        "config",
        "graph",
        "adaptive",
        "optimizer",
        "gateways",
        "rpc",
        "storage",
        "commit",
        "jobmaster",
        "dispatcher",
        "resourcemanager",
        "client",
        "insight",
        "profile",
        "rest",
    }
)
FORBIDDEN_IN_PURE_ROOMS = frozenset({"pyarrow", "cloudpickle", "pickle", "numpy", "pandas"})

#: third-party packages and the only rooms that may import them (None: nowhere but tests)
CONFINED = {
    "kazoo": frozenset({"ha"}),
    "obstore": frozenset({"storage"}),
    "pyspark": frozenset({"spark", "dataframes", "targets"}),
    "numpy": frozenset[str](),
    "fastavro": frozenset({"connectors"}),
    "python_calamine": frozenset({"connectors"}),
    "xlsxwriter": frozenset({"connectors"}),
    "adbc_driver_manager": frozenset({"databases"}),
    "adbc_driver_postgresql": frozenset({"databases"}),
    "adbc_driver_sqlite": frozenset({"databases"}),
    "deltalake": frozenset({"delta_tables"}),
    "pyiceberg": frozenset({"iceberg_tables"}),
    "pyiceberg_core": frozenset({"expressions"}),
    "pyroaring": frozenset({"delta_tables", "formats", "iceberg_tables"}),
    "duckdb": frozenset[str](),
    "polars": frozenset({"api", "functions"}),
    "aiohttp": frozenset({"rpc"}),
    "cloudpickle": frozenset({"api", "functions", "records"}),
    "datafusion": frozenset[str](),
    "ibis": frozenset({"ibis_backend"}),
    "sqlglot": frozenset({"dialects", "ibis_backend", "sql_values", "sql", "statements"}),
    "google": frozenset({"flight_sql"}),
    "mcp": frozenset({"mcp_server"}),
    "opentelemetry": frozenset({"rest"}),
    "openlineage": frozenset({"lineage"}),
    "rich": frozenset({"cli"}),
    "prometheus_client": frozenset({"rest"}),
    "shtab": frozenset({"cli"}),
}


def level_of(room: str) -> int:
    """Return the line of a room, or raise LookupError."""
    for level, rooms in enumerate(LAYERS):
        if room in rooms:
            return level
    raise LookupError(f"room {room!r} is not in the table of layers")
