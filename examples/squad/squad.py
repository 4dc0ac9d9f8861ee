"""Five squads run their shifts in one group chat: a week of talk, and the calendar that has to come of it.

The engine runs in a temporary folder, on free ports; people speak in the simulated GroupMe, and the rules do
the understanding. Lines that begin with > in chat.txt are what the bot has to answer there, calendar.csv is
how the week has to look in the end. What differs is printed, and the exit code is 1.
"""

from __future__ import annotations

import csv
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
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

HERE = Path(__file__).parent
PATIENCE = 30  # seconds
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
GROUP, STRANGER = "9", "9999"


def main() -> int:
    """Tell the story; 0 when every answer was the right one and the week looks as it should."""
    monday = next_monday()
    with tempfile.TemporaryDirectory(prefix="squad-") as place:
        folder = Path(place)
        shutil.copy(HERE / "tidings.toml", folder)
        with engine(folder) as running:
            chat = Chat(running, folder, monday)
            try:
                said = chat.play(HERE / "chat.txt")
            except (Wrong, TimeoutError) as wrong:
                print(wrong)
                return 1
            print(f"\n{said} messages: {decisions(running.url)}.")
            return verdict(running.url, monday)


class Wrong(Exception):
    """The bot did not say what it has to."""


class Chat:
    """The group: people speak, and the bot answers on the simulated phone."""

    def __init__(self, running: Running, folder: Path, monday: date) -> None:
        self._running = running
        self._folder = folder
        self._days = {name: said_day(monday + timedelta(n)) for n, name in enumerate(DAYS)}
        with (HERE / "people.csv").open() as file:
            self._people = {row["name"]: row for row in csv.DictReader(file)}
        for person in self._people.values():
            call(running.url + "/v1/roster", person, method="PUT")
        print(f"{len(self._people)} people of five squads are on the roster.")
        self._said = self._answered = 0

    def play(self, script: Path) -> int:
        """Read the script aloud; gives how many messages people wrote."""
        lines = [line for line in script.read_text(encoding="utf-8").splitlines() if line]
        for mark, some in groupby(lines, key=lambda line: line[0] if line[0] in "=>" else ""):
            if mark == "=":
                print(*(f"\n{line.removeprefix('== ')}" for line in some))
            elif mark == ">":
                self._hear([line.removeprefix("> ") for line in some])
            else:
                for line in some:
                    self._say(*line.format(**self._days).split(": ", 1))
        until(self._is_quiet, "everything that was said is worked through")
        self._hear([])
        return self._said

    def _say(self, name: str, text: str) -> None:
        person = self._people.get(name, {"sender": STRANGER, "squad": "not on the roster"})
        line = {"channel": "groupme", "chat": GROUP, "sender": person["sender"], "name": name, "text": text}
        call(self._running.phone + "/sandbox/said", line)
        self._said += 1
        print(f"  {name} ({person['squad']}): {text}")

    def _hear(self, wanted: list[str]) -> None:
        """The bot's next answers: these and no others, in whatever order."""
        with suppress(TimeoutError):
            until(lambda: len(self._new()) >= len(wanted), "the bot answers")
        answers = self._new()
        self._answered += len(answers)
        for answer in answers:
            print(f"    Tidings: {answer}")
        left = list(answers)
        for fragment in wanted:
            found = next((answer for answer in left if fragment in answer), None)
            if found is None:
                raise Wrong(f"The bot should have said: {fragment}")
            left.remove(found)
        if left:
            raise Wrong(f"The bot should not have said: {left[0]}")

    def _new(self) -> list[str]:
        """What arrived in the group since the last look, a line each."""
        ledger = self._folder / "data" / "sandbox.jsonl"
        lines = ledger.read_text(encoding="utf-8").splitlines() if ledger.exists() else []
        got = [entry for entry in map(json.loads, lines) if entry["copy"] > 0 and entry["to"] == GROUP]
        return [" ".join(entry["text"].split()) for entry in got[self._answered :]]

    def _is_quiet(self) -> bool:
        inbox = call(self._running.url + "/v1/inbox?limit=100")["items"]
        return sum(message["state"] in ("done", "skipped") for message in inbox) == self._said


def decisions(url: str) -> str:
    """What became of the messages, counted."""
    found = Counter(
        line["decision"] for line in call(f"{url}/v1/conversations/crew/{GROUP}")["lines"] if line["kind"] == "message"
    )
    skipped = len(call(url + "/v1/inbox?state=skipped")["items"])
    return ", ".join(f"{count} {word}" for word, count in [*found.most_common(), ("skipped", skipped)])


def verdict(url: str, monday: date) -> int:
    """Print the week, and what of it is not as it should be."""
    with (HERE / "calendar.csv").open() as file:
        wanted = [
            Shift(said_day(monday + timedelta(DAYS.index(row.pop("day")))), **row) for row in csv.DictReader(file)
        ]
    found = [
        Shift(said_day(monday + timedelta(n)), squad, piece["start"], piece["end"], yes_or_no(piece["crew"]))
        for n, day in enumerate(call(f"{url}/v1/calendar?week={monday}")["days"])
        for squad, pieces in sorted(day["squads"].items())
        for piece in pieces
    ]
    print("The calendar:")
    for shift in found:
        print(f"  {shift}")
    for shift in wanted:
        if shift not in found:
            print(f"Missing: {shift}")
    for shift in found:
        if shift not in wanted:
            print(f"Wrong: {shift}")
    is_right = sorted(found) == sorted(wanted)
    print("It is the right one." if is_right else "It is not the right one.")
    return 0 if is_right else 1


class Shift(NamedTuple):
    """One piece of the calendar."""

    day: str
    squad: str
    start: str
    end: str
    crew: str

    def __str__(self) -> str:
        """As it is printed."""
        return f"{self.day:10}  {self.squad}  {self.start}-{self.end}  {'' if self.crew == 'yes' else 'no '}crew"


def yes_or_no(crew: bool) -> str:
    """As in calendar.csv."""
    return "yes" if crew else "no"


def next_monday() -> date:
    """Everything is about next week, so that nothing of it is over."""
    today = datetime.now(UTC).date()
    return today + timedelta(7 - today.weekday())


def said_day(day: date) -> str:
    """A day as people write it: Sat Nov 28."""
    return f"{day:%a %b} {day.day}"


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
    asked = Request(url, data, {"content-type": "application/json"}, method=method)
    with urlopen(asked, timeout=10) as answer:
        return json.load(answer)


def until(look: Callable[[], object], what: str) -> None:
    """Look every now and then until it is so."""
    give_up = time.monotonic() + PATIENCE
    while not look():
        if time.monotonic() > give_up:
            raise TimeoutError(f"waited in vain until {what}")
        time.sleep(0.05)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def surroundings(phone: str) -> dict[str, str]:
    """Our environment without Tidings settings; a token that the simulated GroupMe takes."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TIDINGS_")}
    more = {"GROUPME_TOKEN": "a-token-for-the-sandbox", "GROUPME_URL": f"{phone}/v3", "PYTHONUTF8": "1"}
    return {**clean, **more, "TIDINGS_SANDBOX_PORT": phone.rpartition(":")[2]}


if __name__ == "__main__":
    sys.exit(main())
