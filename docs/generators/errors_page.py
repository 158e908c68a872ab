"""The error index: each class of errors with its reason, what to do and a program that raises it.

errors_page() -> the page, in Markdown      error_classes() -> the classes that it has

What is said of a class is its docstring: the first paragraph is the reason, and the one that begins with "What to do:"
the remedy.

Held by: tests/docs/test_errors_page.py
"""

from __future__ import annotations

import inspect

import engine
from docs.generators.error_examples import EXAMPLES, NOT_SHOWN, shown_error
from engine import errors
from engine.client.cluster_client import ClusterUnreachableError
from engine.commit.output_target import OutputTakenError
from engine.databases.database_connection import DatabaseLostError
from engine.functions.function_error import UserFunctionError, WorkerKilledError, WorkerMemoryError
from engine.rpc.errors import AccessDeniedError

#: errors that programs see, of other modules than engine.errors
_OTHERS = (
    UserFunctionError,
    WorkerKilledError,
    WorkerMemoryError,
    OutputTakenError,
    ClusterUnreachableError,
    AccessDeniedError,
    DatabaseLostError,
)
_HEAD = """# Error index

Every error of Drey is an `EngineError`, and begins with its class. This page lists the classes: why an error is raised
and what to do. Programs import those of the first part from `drey`. [Errors](../guide/errors.md) explains how to read
one.
"""
_REST = """
## Errors of processes and clusters

They are the cause of a job's failure, or an answer of a cluster. "Again" is said of errors after which a task runs
again by itself.

| error | also a | again | why | what to do |
|---|---|---|---|---|
"""
#: first lines of an error that are shown
_LINES = 6


def error_classes() -> list[type[Exception]]:
    """Return the classes of the index: those of engine.errors in their order, then the others."""
    own = [each for each in vars(errors).values() if inspect.isclass(each) and each.__module__ == errors.__name__]
    return [*own, *_OTHERS]


def reason_and_remedy(kind: type[Exception]) -> tuple[str, str]:
    """Return the first paragraph of a docstring, and the one that says what to do ("" where there is none)."""
    paragraphs = [" ".join(part.split()) for part in (inspect.getdoc(kind) or "").split("\n\n")]
    remedies = [part.removeprefix("What to do: ") for part in paragraphs if part.startswith("What to do: ")]
    remedy = remedies[0] if remedies else ""
    return paragraphs[0].replace("``", "`"), (remedy[:1].upper() + remedy[1:]).replace("``", "`")


def errors_page() -> str:
    """Return the page; the programs run."""
    shown = [kind for kind in error_classes() if kind.__name__ in (*engine.__all__, *EXAMPLES)]
    rest = [kind for kind in error_classes() if kind not in shown]
    rows = [
        f"| `{kind.__name__}` | {_bases(kind)} | {'yes' if getattr(kind, 'retryable', False) else 'no'} | "
        + " | ".join(reason_and_remedy(kind))
        + " |\n"
        for kind in rest
    ]
    return _HEAD + "".join(map(_section, shown)) + _REST + "".join(rows)


def _bases(kind: type[Exception]) -> str:
    return ", ".join(f"`{base.__name__}`" for base in kind.__bases__)


def _section(kind: type[Exception]) -> str:
    reason, remedy = reason_and_remedy(kind)
    name = kind.__name__
    text = f"\n## {name}\n\n{reason}\n\n**Also a:** {_bases(kind)}\n\n**What to do:** {remedy}\n"
    if name not in EXAMPLES:
        return f"{text}\nNo program is shown: {NOT_SHOWN[name]}.\n"
    lines = shown_error(name).splitlines()[:_LINES]
    return f"{text}\n```python\n{EXAMPLES[name].strip()}\n```\n\n```text\n" + "\n".join(lines) + "\n```\n"
