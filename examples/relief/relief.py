"""A relief organization warns 39 people: a scheduled broadcast that is paused, resumed, and repaired by hand.

The engine runs in a temporary folder, on free ports, and is spoken to over its HTTP API. Some people can be
reached on the third try only, one never, and one sits behind a broken mast. The proof is not the engine's own
word but the ledger of the simulated phone, which writes down every request it gets.
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
    "text": "{{ name }}, the river rises in {{ town|upper }}. Go to {{ shelter }} by {{ hour }}.",
    "variables": {"name": "text", "town": "text", "shelter": "text", "hour": {"default": "nightfall"}},
}
BROADCAST = {
    "name": "Flood warning",
    "channel": "sms",
    "template": "flood-warning",
    "variables": {"shelter": "the school"},
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
            fault = {"kind": "500", "recipient": BEHIND_THE_MAST}
            broken = call(running.phone + "/sandbox/faults", fault)["id"]
            broadcast = begin(running.url)
            rest(broadcast, folder)
            finish(broadcast)
            letters(running.url)
            call(f"{running.phone}/sandbox/faults/{broken}", method="DELETE")
            print("The provider works again; the failed messages are retried.")
            call(broadcast + "/retry", {})
            finish(broadcast)
        return verdict(folder)


def begin(url: str) -> str:
    """A template, a broadcast made of it for three seconds from now, and its people; gives its address."""
    call(url + "/v1/templates", TEMPLATE)
    made = call(url + "/v1/broadcasts", BROADCAST)
    broadcast = f"{url}/v1/broadcasts/{made['id']}"
    frozen = call(broadcast + "/recipients", (HERE / "people.csv").read_bytes(), kind="text/csv")
    print(f"{frozen['total']} people, {frozen['duplicates']} named twice; starts at {frozen['scheduled_at']}.")
    return broadcast


def rest(broadcast: str, folder: Path) -> None:
    """Pause in the middle: nothing goes out until it is resumed."""
    until(lambda: tally(broadcast)["sent"] >= 10, "ten have got it")
    call(broadcast + "/pause", {})
    until(lambda: tally(broadcast)["processing"] == 0, "nobody is being written to")
    before = arrived(folder)
    print(f"Paused: {told(tally(broadcast))}")
    time.sleep(1.5)
    if arrived(folder) != before:
        raise RuntimeError("something was sent during the pause")
    call(broadcast + "/resume", {})
    print("Resumed.")


def finish(broadcast: str) -> None:
    """Wait until every recipient has ended."""
    until(lambda: call(broadcast)["state"] in ("completed", "failed"), "it is over")
    print(f"Over: {told(tally(broadcast))}")


def letters(url: str) -> None:
    """Who could not be reached, and why."""
    for letter in call(url + "/v1/dead")["items"]:
        print(f"  {letter['to']}: {letter['error'].partition(':')[0]}, attempt {letter['attempts']}")


def verdict(folder: Path) -> int:
    """What the phone says of it."""
    copies = arrived(folder)
    print(f"The phone got {copies.total()} warnings for {len(copies)} people.")
    is_right = len(copies) == PEOPLE - 1 and set(copies.values()) == {1} and UNREACHABLE not in copies
    return 0 if is_right else 1


def tally(broadcast: str) -> dict[str, int]:
    """How many stand where; at every look they add up to all of them."""
    shown = call(broadcast)
    counts: dict[str, int] = shown["counts"]
    if sum(counts.values()) != shown["total"]:
        raise RuntimeError(f"the tally does not add up: {shown}")
    return counts


def told(counts: dict[str, int]) -> str:
    """A tally in words, without what is nought."""
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def arrived(folder: Path) -> Counter[str]:
    """Whom the simulated phone took it for, and how often."""
    ledger = folder / "data" / "sandbox.jsonl"
    lines = ledger.read_text().splitlines() if ledger.exists() else []
    return Counter(entry["to"] for entry in map(json.loads, lines) if entry["copy"] > 0)


class Running(NamedTuple):
    """Where the engine and the simulated phone answer."""

    url: str
    phone: str


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
        places = dict(re.findall(r"(dashboard|sandbox) +(http://\S+?)/?\s", said))
        yield Running(places["dashboard"], places["sandbox"])
    finally:
        process.kill()
        process.wait()


def call(url: str, body: Any = None, *, kind: str = "application/json", method: str | None = None) -> Any:
    """What an address answers; with a body, to a POST."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    with urlopen(Request(url, data, {"content-type": kind}, method=method), timeout=10) as answer:
        return json.load(answer)


def until(look: Callable[[], object], what: str) -> None:
    """Look every now and then until it is so."""
    give_up = time.monotonic() + PATIENCE
    while not look():
        if time.monotonic() > give_up:
            raise RuntimeError(f"waited in vain until {what}")
        time.sleep(0.1)


def surroundings() -> dict[str, str]:
    """Our environment without Tidings settings; the phone takes any free port."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TIDINGS_")}
    return {**clean, "TIDINGS_SANDBOX_PORT": "0"}


if __name__ == "__main__":
    sys.exit(main())
