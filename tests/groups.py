"""Keeps the tests of one `xdist_group` on one worker under `--dist loadgroup`.

pytest-xdist passes a test's group to its scheduler as a suffix of the node id. pytest 9.2 reads the node id
from another attribute than the one that pytest-xdist 3.8 sets, so the suffix is lost and groups are ignored
(pytest-xdist issue 1386). `keep_groups` adds the suffix where pytest reads it.
"""

from __future__ import annotations

from typing import Any

import pytest


def keep_groups(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Append `@group` to the node ids, unless pytest-xdist has done so."""
    if not getattr(config.option, "loadgroup", False):
        return
    for item in items:
        suffix = f"@{'_'.join(sorted(_groups(item)))}"
        if suffix != "@" and not item.nodeid.endswith(suffix):
            found: Any = item
            found._id = type(found._id).parse(f"{item.nodeid}{suffix}")


def _groups(item: pytest.Item) -> set[str]:
    marks = item.iter_markers("xdist_group")
    return {str(mark.args[0] if mark.args else mark.kwargs.get("name", "default")) for mark in marks}
