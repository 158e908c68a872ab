"""Pages of the examples: the header of a module is the page's text, and what is beneath it is shown.

example_pages() -> {"index": ..., "sessions": ..., ...}

Held by: tests/docs/test_example_pages.py
"""

import ast
from pathlib import Path

_FOLDER = Path(__file__).resolve().parents[2] / "engine" / "examples"
_INDEX = """# Examples

Jobs that run as they stand, each with data of its own. A page shows the first rows that an example reads, what it
prints, and its plan. Shorter ones are in the [cookbook](../cookbook/index.md).

"""
#: data of another example
_NO_PAGE = ("__init__", "generate_instruments")


def example_pages() -> dict[str, str]:
    """Return the text of each page by its name."""
    sources = {path.stem: path.read_text() for path in sorted(_FOLDER.glob("*.py")) if path.stem not in _NO_PAGE}
    pages = {name: _page(source) for name, source in sources.items()}
    lines = [f"* [{_title(source)}]({name}.md): {_subtitle(source)}" for name, source in sources.items()]
    pages["index"] = _INDEX + "\n".join(lines) + "\n"
    return pages


def _header(source: str) -> str:
    return ast.get_docstring(ast.parse(source)) or ""


def _title(source: str) -> str:
    return _header(source).partition(":")[0]


def _subtitle(source: str) -> str:
    return _header(source).partition("\n\n")[0].partition(": ")[2].replace("\n", " ")


def _page(source: str) -> str:
    """Return a page: its title, command line, text and code."""
    header = _header(source)
    first, _, rest = header.partition("\n\n")
    paragraphs = [text for text in rest.split("\n\n") if not text.startswith("Held by")]
    command = [text for text in paragraphs if text.startswith("    bin/")]
    plain = [text for text in paragraphs if text not in command]
    shown = [line.strip() for text in command for line in text.splitlines()]
    code = source.partition('"""')[2].partition('"""')[2].strip()
    blocks = [
        f"# {_title(source)}",
        _sentence(first.partition(": ")[2]),
        *plain,
        "\n".join(["```text", *shown, "```"]),
        f"```python\n{code}\n```",
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
