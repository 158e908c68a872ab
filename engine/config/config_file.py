"""config.yaml as dotted keys and values: nested or dotted, the two being equal, and no key twice.

    taskmanager:
      memory.managed.size: 16mb      ─►   {"taskmanager.memory.managed.size": "16mb"}

YAML's own parser takes the last of two equal keys and says nothing: half of a section that stands there twice is lost.

Held by: tests/config/test_loader.py
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import ConfigurationError

if TYPE_CHECKING:
    import yaml


def flatten(settings: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield (dotted key, value) of nested mappings."""
    for key, value in settings.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from flatten(value, f"{path}.")
        elif value is not None:
            yield path, value


def read_config_file(path: Path) -> dict[str, object]:
    """Return the flattened settings of a YAML file; duplicates and malformed YAML raise ConfigurationError."""
    text = path.read_text(encoding="utf-8")
    if all(not line or line.isspace() or line.startswith("#") for line in text.splitlines()):
        return {}  # as it is delivered: no parser is loaded for nothing
    import yaml

    try:
        tree = yaml.compose(text, yaml.SafeLoader)
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path}: not valid YAML: {error}") from None
    if document is None or tree is None:
        return {}
    if not isinstance(document, Mapping):
        raise ConfigurationError(f"{path}: expected keys and values")
    _refuse_what_is_set_twice(path, tree)
    return dict(flatten(document))


def _refuse_what_is_set_twice(path: Path, tree: yaml.Node) -> None:
    lines: dict[str, int] = {}
    for key, line in _keys(tree):
        if key in lines:
            where = f"line {line}" if line == lines[key] else f"lines {lines[key]} and {line}"
            raise ConfigurationError(f"{path}: {key} is set twice, in {where}: leave one")
        lines[key] = line


def _keys(node: yaml.Node, prefix: str = "", among: str = "") -> Iterator[tuple[str, int]]:
    """Yield the dotted key of each value with its line; of each section too, under a name that its place makes unique.

    ``taskmanager:`` beside ``taskmanager.host: x`` is fine, but two of ``taskmanager:`` are not: one would be lost.
    """
    if not node.tag.endswith(":map"):
        return
    for key, value in node.value:
        path, line = f"{prefix}{key.value}", key.start_mark.line + 1
        is_section = value.tag.endswith(":map")
        yield (f"{among}{key.value}:" if is_section else path), line
        yield from _keys(value, f"{path}.", f"{among}{key.value}: ")
