"""Writes reference/api.md: every public name of ``drey``, which mkdocstrings fills from its docstring."""

import mkdocs_gen_files

import engine
from engine.column_expressions import aggregates, running_functions, selectors, value_aggregates
from engine.column_expressions.string_expressions import StringExpressions
from engine.column_expressions.time_expressions import TimeExpressions

_AGGREGATES = tuple(
    name
    for home in (aggregates, value_aggregates)
    for name in vars(home)
    if name in engine.__all__ and not name.endswith("Error")
)
_RUNNING = tuple(name for name in engine.__all__ if getattr(engine, name).__module__ == running_functions.__name__)
_GROUPS = (
    ("Environment", ("Environment",)),
    ("DataSet", ("DataSet",)),
    (
        "Tables",
        (
            "delta",
            "iceberg",
        ),
    ),
    ("Expressions", ("col", "element", "expr", "lit", "when")),
    (
        "Several values",
        (
            *("array", "coalesce", "format_", "greatest", "hash64", "interval", "least", "map_from"),
            *("map_from_entries", "sequence", "struct"),
        ),
    ),
    ("Dates and times", ("current_date", "make_date", "make_time", "make_timestamp", "now")),
    ("Places of rows, and chance", ("rand", "row_place", "uuid")),
    ("Aggregates", _AGGREGATES),
    (
        "Window functions",
        (
            *("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile"),
            *("lag", "lead", "first_value", "last_value", "nth_value"),
        ),
    ),
    ("Running and rolling functions", _RUNNING),
    ("Results", ("JobResult", "Row", "JoinHint")),
)
_FUNCTIONS = ("udf",)
#: what is reached from a public name, by the place where it is defined
_REACHED = {
    "Expressions": (
        "engine.column_expressions.expression.Expr",
        f"{StringExpressions.__module__}.{StringExpressions.__qualname__}",
        f"{TimeExpressions.__module__}.{TimeExpressions.__qualname__}",
    ),
    "DataSet": ("engine.api.grouped_by.GroupedBy",),
    "Selectors": tuple(f"{selectors.__name__}.{name}" for name in selectors.__all__),
    "Window functions": ("engine.column_expressions.windows.WindowFunction",),
    "Python functions": ("engine.functions.user_function.FunctionContext", "engine.functions.user_function.Counter"),
}


def _place(name: str) -> str:
    """Return where a public name is defined."""
    value = getattr(engine, name)
    return f"{value.__module__}.{value.__qualname__}"


def _page() -> str:
    lines = ["# API", "", "Everything that a script imports: `from drey import ...`.", ""]
    named = {name for _, names in _GROUPS for name in names} | set(_FUNCTIONS)
    errors = [name for name in engine.__all__ if name.endswith(("Error", "Warning"))]
    missing = set(engine.__all__) - named - set(errors)
    if missing:
        raise RuntimeError(f"no group of the reference has {sorted(missing)}")
    groups = dict(_GROUPS) | {"Selectors": (), "Python functions": _FUNCTIONS, "Errors": tuple(errors)}
    for title, names in groups.items():
        lines += [f"## {title}", ""]
        for place in (*map(_place, names), *_REACHED.get(title, ())):
            lines += [f"::: {place}", "    options:", "      heading_level: 3", ""]
    return "\n".join(lines)


with mkdocs_gen_files.open("reference/api.md", "w") as page:
    page.write(_page())
