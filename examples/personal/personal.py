"""Personal reminders on WhatsApp: once, every day, every birthday; and the engine is killed in between.

The engine runs in a temporary folder, on free ports, and is called over its HTTP API. It is killed with -9
after the first reminder, and is down while the other two come due. Meanwhile the WhatsApp session is stopped,
as after a restart of its server; the engine starts it again. The ledger of the simulated WAHA server, which
records every request, shows that each reminder arrived once.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

PATIENCE = 30  # seconds
ONCE, DAILY, BIRTHDAY = "The oven!", "Take your medicine", "It is Bo's birthday"
CONFIG = """
sandbox_port = {port}

[channels.whatsapp]
kind = "whatsapp_session"
base_url = "http://127.0.0.1:{port}/waha"
api_key = "env:WAHA_KEY"
"""


def main() -> int:
    """Run the example; 0 if each reminder arrived exactly once."""
    with tempfile.TemporaryDirectory(prefix="personal-") as place:
        folder, sandbox = Path(place), f"http://127.0.0.1:{(port := free_port())}"
        (folder / "tidings.toml").write_text(CONFIG.format(port=port))
        with engine(folder) as running:
            print("The engine runs.")
            last = plan(running.url)
            until(lambda: ONCE in sent(running.url), f"{ONCE!r} is sent")
            print(f"Sent: {ONCE}")
            call(sandbox, "/sandbox/waha/default", {"status": "STOPPED"})
            running.process.kill()
            running.process.wait()
        print("The engine was killed with -9, and is down while the others come due. The WhatsApp session is stopped.")
        until(lambda: datetime.now(UTC) > last + timedelta(seconds=1), "their time has passed")
        with engine(folder) as running:
            print("The engine runs again, starts the session and catches up the missed runs.")
            until(lambda: len(sent(running.url)) == 3, "all three are sent")
            foretell(running.url)
        copies = arrived(folder)
        for text in (ONCE, DAILY, BIRTHDAY):
            print(f"WhatsApp got {text!r} {copies[text]} time{'s' if copies[text] != 1 else ''}.")
        return 0 if copies == Counter([ONCE, DAILY, BIRTHDAY]) else 1


def plan(url: str) -> datetime:
    """Three reminders for the next seconds; gives the time of the last one."""
    first = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=3)
    second, last = first + timedelta(seconds=4), first + timedelta(seconds=5)
    call(url, "/v1/messages", reminder(ONCE) | {"at": first.isoformat()})
    print(f"  once, at {first:%H:%M:%S}: {ONCE}")
    for text, rule in ((DAILY, {"daily": f"{second:%H:%M:%S}"}), (BIRTHDAY, {"yearly": f"{last:%m-%d %H:%M:%S}"})):
        made = call(url, "/v1/schedules", {"rule": rule, "timezone": "UTC", "message": reminder(text)})
        print(f"  {made['rule_in_words']}: {text}")
    return last


def reminder(text: str) -> dict[str, str]:
    """A message to oneself."""
    return {"channel": "whatsapp", "to": "+15551234567", "text": text}


def sent(url: str) -> list[str]:
    """What the engine has written down as sent: none of it ever goes out again."""
    return [message["text"] for message in call(url, "/v1/messages?state=sent")["items"]]


def foretell(url: str) -> None:
    """When those that come again do so."""
    for schedule in reversed(call(url, "/v1/schedules")["items"]):
        print(f"  next at {schedule['next_at']}: {schedule['message']['text']}")


def arrived(folder: Path) -> Counter[str]:
    """What the simulated server accepted, and how often."""
    lines = (folder / "data" / "sandbox.jsonl").read_text().splitlines()
    return Counter(entry["text"] for entry in map(json.loads, lines) if entry["copy"] > 0)


class Running(NamedTuple):
    """An engine that is ready, and where it answers."""

    process: subprocess.Popen[str]
    url: str


@contextmanager
def engine(folder: Path) -> Iterator[Running]:
    """`tidings serve`, from the moment it says that it is ready; gone when the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tidings.cli", "serve", "--port", "0"], cwd=folder, env=surroundings(),
        text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    said = ""
    try:
        while "Ctrl-C to stop" not in said:
            line = process.stdout.readline()
            if not line:
                raise RuntimeError("tidings serve did not start; run it by hand to see why")
            said += line
        page = re.search(r"dashboard +(http://\S+?)/?\s", said)
        assert page is not None
        yield Running(process, page[1])
    finally:
        process.kill()
        process.wait()


def call(url: str, path: str, body: object = None) -> Any:
    """What the API answers; with a body, to a POST."""
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url + path, data, {"content-type": "application/json"}), timeout=10) as answer:
        return json.load(answer)


def until(look: Callable[[], object], what: str) -> None:
    """Look every now and then until it is so."""
    give_up = time.monotonic() + PATIENCE
    while not look():
        if time.monotonic() > give_up:
            raise RuntimeError(f"waited in vain until {what}")
        time.sleep(0.1)


def surroundings() -> dict[str, str]:
    """Our environment without Tidings settings, and a key for the simulated server."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TIDINGS_")}
    return {**clean, "WAHA_KEY": "any"}


def free_port() -> int:
    """A port that nothing uses."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
