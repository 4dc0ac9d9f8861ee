"""`tidings version`: the version of the program."""

from __future__ import annotations

from .. import __version__
from . import output
from .options import AsJson

EXAMPLES = ("tidings version", "tidings version --json")


def version(as_json: AsJson = False) -> None:
    """Print the version."""
    if as_json:
        output.say_json({"version": __version__})
    else:
        print(f"tidings {__version__}")
