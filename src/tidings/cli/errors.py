"""Failures at the command line: one sentence with its remedy, the right exit code, never a traceback.

TIDINGS_DEBUG=1 shows the traceback of what nobody expected.
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

_COMMANDS = ("tidings", "pip", "openssl")  # a remedy that begins with one is typed as it stands


def run_safely(program: Callable[..., Any]) -> int:
    """Run the program and give its exit code."""
    try:
        code = program(standalone_mode=False)
        sys.stdout.flush()
    except TidingsError as error:
        return _say(error_text(error), error.exit_code)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone; the interpreter must not complain of it when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    except Exception as error:  # the outermost line: whatever it is, the user gets a sentence
        return _unforeseen(error)
    return code if isinstance(code, int) else 0


def error_text(error: TidingsError) -> str:
    """The problem and its remedy as people read them."""
    remedy = error.remedy
    if remedy and not remedy.startswith(_COMMANDS):
        remedy = remedy[0].upper() + remedy[1:]
    return f"{error.problem}. {remedy}" if remedy else error.problem


def _unforeseen(error: Exception) -> int:
    if type(error).__name__ == "Abort":
        print("nothing was changed", file=sys.stderr)
        return 1
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error)
        return 2
    if hasattr(error, "format_message"):  # the parser's own: a mistyped command, option or value
        return _say(_usage(error), getattr(error, "exit_code", 2))
    if os.environ.get("TIDINGS_DEBUG"):
        raise error
    where = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return _say(f"something unforeseen happened ({where}). Set TIDINGS_DEBUG=1 to see where", UNEXPECTED)


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
