"""The command line: parse, call one function, answer. One file per noun.

Modules here import at their top only what `--help` needs; the engine is imported when a command runs.
"""

from __future__ import annotations

import sys


def main() -> None:
    """The entry point `tidings`."""
    from .failures import guarded
    from .program import program

    sys.exit(guarded(lambda **options: program(sys.argv[1:], **options)))
