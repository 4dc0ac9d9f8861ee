"""Error messages and exit codes: the problem with its remedy, never a traceback.

TIDINGS_DEBUG=1 shows the traceback of an unexpected error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from ..model.errors import TidingsError

INTERRUPTED = 130
CLOSED_PIPE = 141
UNEXPECTED = TidingsError.exit_code

_COMMANDS = ("tidings", "pip", "openssl")  # a remedy that starts with one keeps its lower case


def run_safely(program: Callable[..., Any]) -> int:
    """Run the program and return its exit code."""
    try:
        code = program(standalone_mode=False)
        sys.stdout.flush()
    except TidingsError as error:
        return _say(error_text(error), error.exit_code)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Keep the interpreter from reporting the closed pipe again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    except Exception as error:  # the last handler: print a message, not a traceback
        return _unexpected(error)
    return code if isinstance(code, int) else 0


def error_text(error: TidingsError) -> str:
    """Return the problem and its remedy as one line."""
    remedy = error.remedy
    if remedy and not remedy.startswith(_COMMANDS):
        remedy = remedy[0].upper() + remedy[1:]
    return f"{error.problem}. {remedy}" if remedy else error.problem


def _unexpected(error: Exception) -> int:
    if type(error).__name__ == "Abort":
        print("aborted: nothing was changed", file=sys.stderr)
        return 1
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error)
        return 2
    if hasattr(error, "format_message"):  # a usage error from the parser
        return _say(_usage(error), getattr(error, "exit_code", 2))
    if os.environ.get("TIDINGS_DEBUG"):
        raise error
    where = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return _say(f"unexpected error ({where}). Set TIDINGS_DEBUG=1 to see the traceback", UNEXPECTED)


def _usage(error: Any) -> str:
    problem = " ".join(str(error.format_message()).split()).rstrip(".")
    problem = problem[:1].lower() + problem[1:]
    context = getattr(error, "ctx", None)
    if context is None:
        return problem
    return f"{problem}{'' if problem.endswith('?') else '.'} See: {context.command_path} --help"


def _say(text: str, code: int) -> int:
    from rich.console import Console
    from rich.text import Text

    sys.stdout.flush()
    line = Text.assemble(("error:", "bold red"), f" {text}")
    Console(stderr=True, soft_wrap=True, highlight=False).print(line)
    return code
