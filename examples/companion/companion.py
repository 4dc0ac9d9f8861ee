"""A companion reminds people on Telegram and WhatsApp, while Telegram breaks down and comes back.

The engine runs in a temporary folder, on free ports, and is spoken to over its HTTP API; the simulated phone
stands in for both services, with their own protocols. The proof is not the engine's own word but the ledger
of the simulated phone, which writes down every request it gets.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
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
BUSY = "+15551230002"  # whose WhatsApp fails twice before it works
LATER = (  # accepted while Telegram is down: priority 0 goes first, 9 last
    ("Water the plants", 9),
    ("Dinner with Bo at seven", 5),
    ("Take your insulin now", 0),
)


def main() -> int:
    """Tell the story; 0 when every reminder arrived exactly once, the urgent one first."""
    with tempfile.TemporaryDirectory(prefix="companion-") as place:
        folder = Path(place)
        shutil.copy(HERE / "tidings.toml", folder)
        with engine(folder) as running:
            fault = {"kind": "500", "channel": "telegram"}
            down = call(running.phone + "/sandbox/faults", fault)["id"]
            call(running.phone + "/sandbox/faults", {"kind": "500", "recipient": BUSY, "times": 2})
            trip(running.url)
            go_round(running.url)
            call(f"{running.phone}/sandbox/faults/{down}", method="DELETE")
            print("Telegram works again.")
            heal(running.url)
        return verdict(folder)


def trip(url: str) -> None:
    """Five failures in a row open the breaker; what comes after costs no try."""
    for number in range(5):
        remind(url, "telegram", str(1001 + number), "Drink a glass of water")
    until(lambda: breaker(url) == "open", "Telegram's breaker opens")
    print("Telegram fails five times in a row: its breaker is open.")
    waiting = [remind(url, "telegram", "1000", text, priority) for text, priority in LATER]
    attempts = {call(f"{url}/v1/messages/{id_}")["attempts"] for id_ in waiting}
    print(f"{len(waiting)} more reminders wait, with {max(attempts)} attempts each:")
    print(f"  {call(f'{url}/v1/messages/{waiting[-1]}/why')['why']}")


def go_round(url: str) -> None:
    """WhatsApp does not notice; one person's phone is busy twice and gets it on the third try."""
    ids = [remind(url, "whatsapp", to, "Your train leaves at 18:04") for to in ("+15551230001", BUSY)]
    until(lambda: all(state(url, id_) == "sent" for id_ in ids), "WhatsApp has sent both")
    attempts = [call(f"{url}/v1/messages/{id_}")["attempts"] for id_ in ids]
    print(f"WhatsApp sends meanwhile: attempt {attempts[0]}, and attempt {attempts[1]} to the busy phone.")


def heal(url: str) -> None:
    """After its pause one message tries Telegram again; it succeeds, and the others follow."""
    until(lambda: len(call(f"{url}/v1/messages?state=sent")["items"]) == 10, "all ten are sent")
    print(f"All ten reminders are sent; Telegram's breaker is {breaker(url)}.")


def verdict(folder: Path) -> int:
    """What the phone says of it."""
    lines = (folder / "data" / "sandbox.jsonl").read_text().splitlines()
    got = [entry for entry in map(json.loads, lines) if entry["copy"] > 0]
    copies = Counter((entry["channel"], entry["to"], entry["text"]) for entry in got)
    late = [entry["text"] for entry in got if entry["to"] == "1000"]
    print(f"The phone got {len(got)} reminders, {len(got) - len(copies)} of them twice.")
    print(f"First of those that waited: {late[0]}")
    return 0 if len(copies) == len(got) == 10 and late[0] == LATER[-1][0] else 1


def remind(url: str, way: str, to: str, text: str, priority: int = 5) -> str:
    """Accept one reminder; gives its id."""
    body = {"channel": way, "to": to, "text": text, "priority": priority}
    return str(call(url + "/v1/messages", body)["id"])


def state(url: str, id_: str) -> str:
    """Where a reminder stands."""
    return str(call(f"{url}/v1/messages/{id_}")["state"])


def breaker(url: str) -> str:
    """How Telegram's breaker stands."""
    return str(call(url + "/v1/channels/telegram")["breaker"])


class Running(NamedTuple):
    """Where the engine and the simulated phone answer."""

    url: str
    phone: str


@contextmanager
def engine(folder: Path) -> Iterator[Running]:
    """`tidings serve`, from the moment it says that it is ready; gone when the block ends."""
    phone = f"http://127.0.0.1:{free_port()}"
    process = subprocess.Popen(
        [sys.executable, "-m", "tidings.cli", "serve", "--port", "0"], cwd=folder, env=surroundings(phone),
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
        yield Running(page[1], phone)
    finally:
        process.kill()
        process.wait()


def call(url: str, body: Any = None, *, method: str | None = None) -> Any:
    """What an address answers; with a body, to a POST."""
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data, {"content-type": "application/json"}, method=method), timeout=10) as answer:
        return json.load(answer)


def until(look: Callable[[], object], what: str) -> None:
    """Look every now and then until it is so."""
    give_up = time.monotonic() + PATIENCE
    while not look():
        if time.monotonic() > give_up:
            raise RuntimeError(f"waited in vain until {what}")
        time.sleep(0.1)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def surroundings(phone: str) -> dict[str, str]:
    """Our environment without Tidings settings; tokens that the simulated services take."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TIDINGS_")}
    tokens = {"BOT_TOKEN": "110201543:simulated", "WHATSAPP_TOKEN": "simulated", "SANDBOX_URL": phone}
    return {**clean, **tokens, "TIDINGS_SANDBOX_PORT": phone.rpartition(":")[2]}


if __name__ == "__main__":
    sys.exit(main())
