"""A relief organisation warns 39 people: a scheduled broadcast that is paused, resumed, and mended by hand.

The engine runs in a temporary folder, on free ports, and is spoken to over its HTTP API. Some people can be
reached on the third try only, one never, and one sits behind a broken mast. The proof is not the engine's own
word but the ledger of the pretend phone, which writes down every request it gets.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

HERE = Path(__file__).parent
PATIENCE = 30  # seconds
PEOPLE, UNREACHABLE, BEHIND_THE_MAST = 39, "hari+gone", "maya"
TEMPLATE = {
    "name": "flood-warning",
    "text": "{{ name }}, the river rises in {{ town }}. Go to {{ shelter }}{% if hour %} by {{ hour }}{% endif %}.",
    "variables": {
        "name": "text",
        "town": "text",
        "shelter": "text",
        "hour": {"type": "text", "required": False},
    },
}
BROADCAST = {
    "name": "Flood warning",
    "channel": "sms",
    "template": "flood-warning",
    "variables": {"shelter": "the school", "hour": "six"},
    "recipients": "upload",
    "trigger": "SCHEDULED",
    "in": "3s",
    "per_second": 8,
    "maxAttempts": 3,
}


def main() -> int:
    """Tell the story; 0 when everybody who can be reached got the warning exactly once."""
    with tempfile.TemporaryDirectory(prefix="relief-") as place:
        folder = Path(place)
        shutil.copy(HERE / "tidings.toml", folder)
        with engine(folder) as running:
            broken = call(running.phone, "/sandbox/faults", {"kind": "500", "recipient": BEHIND_THE_MAST})
            broadcast = Broadcast(running.url, folder)
            broadcast.begin()
            broadcast.rest()
            broadcast.finish("36 of them on the first try, two on the third")
            call(running.phone, f"/sandbox/faults/{broken['id']}", method="DELETE")
            print("The mast is mended.")
            broadcast.mend()
        return verdict(folder)
