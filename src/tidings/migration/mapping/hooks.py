"""Hooks: user functions that finish a record, the last step of a map."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

from ...model.errors import Invalid
from ..connectors.port import Record

Hook = Callable[[Record, dict[str, Any]], dict[str, Any] | None]
"""Takes the record and the mapped fields, returns the fields to write; None skips the record."""

SHAPE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


def load(name: str, place: str) -> Hook:
    """Import the function that `module:function` names; raises Invalid."""
    module, _, function = name.partition(":")
    remedy = "install the module where the workers run, or add its folder to PYTHONPATH"
    try:
        found = getattr(importlib.import_module(module), function, None)
    except Exception as error:  # user code runs here: report whatever it raises
        problem = f"{place}: {module} cannot be imported ({type(error).__name__}: {error})"
        raise Invalid(problem[:300], field=place, remedy=remedy) from None
    if not callable(found):
        raise Invalid(f"{place}: {module} has no function {function}", field=place, remedy="check its name")
    return found  # type: ignore[no-any-return]
