"""``flink-run sql`` on a terminal: statements of several lines until a semicolon, with history and completion.

    sql> SELECT shop, sum(price) AS total
      -> FROM sales GROUP BY shop;

Commands begin with a backslash: d lists tables, d NAME the columns of one, timing shows how long each statement takes,
q leaves, ? lists commands; exit, quit and help, too.

Control-C throws away what is typed, and cancels what runs; the shell stays. What is longer than the screen goes through
a pager ($PAGER, or less). History is kept in $XDG_STATE_HOME/drey/sql_history.

Held by: tests/cli/test_sql_shell.py
"""

from __future__ import annotations

import contextlib
import io
import os
import pydoc
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from engine.cli.run_script import report_error
from engine.cli.sql_words import completions
from engine.errors import ConfigurationError, EngineError
from engine.statements.statements import split
from engine.statements.text_pieces import is_comment, is_quoted, pieces

if TYPE_CHECKING:
    from engine.cli.sql_session import SqlSession

_HELP: Final = """\
\\d          tables                    \\d NAME     columns of a table
\\timing     time of each statement    \\q          out
Statements end with a semicolon: SELECT, EXPLAIN [ANALYZE], CREATE VIEW|TABLE name AS, DROP VIEW|TABLE name,
COPY (query) TO 'path', SHOW TABLES, DESCRIBE name, SUMMARIZE name. Files are tables: SELECT * FROM 'sales/*.parquet';
Tab completes names and words. Control-C cancels what runs, control-D leaves.
"""
#: commands of other shells, and their names here
_LEAVING: Final = {"exit": "\\q", "quit": "\\q", "help": "\\?"}
_PAGER: Final = "less -FRSX"


def run_shell(session: SqlSession) -> int:
    """Read and run statements until the user leaves; return the exit code."""
    prompt = _line_editor(session)
    shell = Shell(session)
    print("Statements end with a semicolon; \\? lists commands, \\q leaves.")
    while shell.is_open:
        try:
            shell.run(prompt())
        except KeyboardInterrupt:
            continue
        except EOFError:
            break
    return 0


class Shell:
    """The shell: runs the lines that it is given."""

    def __init__(self, session: SqlSession) -> None:
        self.session = session
        self.is_open = True
        self._has_timing = False

    def run(self, text: str) -> None:
        """Run what was typed: a command, or statements up to the first that fails."""
        text = _LEAVING.get(text.strip().rstrip(";").lower(), text)
        if text.lstrip().startswith("\\"):
            self._guarded(lambda: self._command(text.strip().rstrip(";").split()))
            return
        for one in split(text):
            if not self._guarded(lambda one=one: self.session.run(one)):
                return

    def _command(self, words: list[str]) -> None:
        match words:
            case ["\\q" | "\\quit" | "\\exit"]:
                self.is_open = False
            case ["\\d"]:
                self.session.show_tables()
            case ["\\d", name]:
                self.session.describe(name.strip('"'))
            case ["\\timing"]:
                self._has_timing = not self._has_timing
                print(f"timing is {'on' if self._has_timing else 'off'}")
            case ["\\?" | "\\h" | "\\help"]:
                print(_HELP, end="")
            case _:
                print(f"{' '.join(words)}: there is no such command; \\? lists them")

    def _guarded(self, action: Any) -> bool:
        """Do something, show what it printed and what went wrong; return whether nothing did."""
        began = time.perf_counter()
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                action()
            took_s = time.perf_counter() - began  # before a pager waits for its reader
        except KeyboardInterrupt:
            print("cancelled")
            return False
        except EngineError as error:
            report_error(error)
            return False
        finally:
            _show(printed.getvalue())
        if self._has_timing:
            print(f"time: {took_s:.3f} s")
        return True


def _show(text: str) -> None:
    """Print a text, through a pager where the screen is shorter."""
    height = shutil.get_terminal_size().lines
    if text.count("\n") < height or not sys.stdout.isatty():
        sys.stdout.write(text)
        return
    command = os.environ.get("PAGER") or (_PAGER if shutil.which("less") else "")
    if command:
        pydoc.pipepager(text, command)
    else:
        sys.stdout.write(text)


def is_complete(text: str) -> bool:
    """Return whether what is typed can be run: a command, nothing, or statements that end with a semicolon."""
    if not text.strip() or text.lstrip().startswith("\\") or text.strip().lower() in _LEAVING:
        return True
    said = [piece for piece in pieces(text) if not is_comment(piece) and piece.strip()]
    return bool(said) and said[-1] == ";" and not any(is_open(piece) for piece in said)


def is_open(piece: str) -> bool:
    """Return whether a piece begins a string that has no end."""
    return piece in ("'", '"') and not is_quoted(piece)


def history_file() -> Path:
    """Return the path of the history, in a folder that exists."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    folder = Path(state) / "drey"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder / "sql_history"


def _line_editor(session: SqlSession) -> Any:
    """Return a function that reads what one turn of the user types."""
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import Completer, Completion
        from prompt_toolkit.filters import completion_is_selected, has_completions
        from prompt_toolkit.history import FileHistory
        from prompt_toolkit.key_binding import KeyBindings
        from prompt_toolkit.lexers import PygmentsLexer
        from pygments.lexers.sql import SqlLexer
    except ImportError as error:
        raise ConfigurationError(f"the shell needs the extra: pip install 'drey-engine[sql]' ({error})") from None

    class Names(Completer):
        """Completes from the tables of the moment."""

        def get_completions(self, document: Any, _event: Any) -> Iterator[Any]:
            """Yield the completions at the cursor."""
            tables = {name: data.columns for name, data in session.environment.tables.items()}
            for typed, word, kind in completions(document.text_before_cursor, document.text, tables):
                yield Completion(word, start_position=-len(typed), display_meta=kind)

    keys = KeyBindings()

    @keys.add("enter", filter=~(has_completions & completion_is_selected))
    def _(event: Any) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    history = FileHistory(str(history_file()))
    editor: PromptSession[str] = PromptSession(
        history=history, completer=Names(), complete_while_typing=False, key_bindings=keys, multiline=True,
        lexer=PygmentsLexer(SqlLexer), prompt_continuation=lambda width, _line, _wrap: "-> ".rjust(width),
    )  # fmt: skip
    return lambda: editor.prompt("sql> ")
