"""A freight company moves its contacts from one CRM to another, is cut off in the middle, and loses nobody.

A simulated Affinity has companies, people and notes, one person in fifty is invalid. A simulated Attio takes
them: it allows fewer writes a second than are asked for, and for one write in fifty it cuts the line after it
has done it. `tidings migrate run` is killed half way and started again. What could not be moved is exported,
repaired and uploaded. The proof is not the engine's own word but the content of the simulated Attio, compared
with what must be in it. `freight.py 20000` moves as many people; without a number it is a quick 150.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

HERE = Path(__file__).parent
PATIENCE = 60  # seconds without any progress
COMMAND = (sys.executable, "-m", "tidings.cli")


def main() -> int:
    """Tell the story; 0 when everything is in the target exactly once, and nothing else."""
    people = int(sys.argv[1]) if len(sys.argv) > 1 else 150
    with tempfile.TemporaryDirectory(prefix="freight-") as place:
        folder = Path(place)
        with sandbox(folder) as crm:
            bad = fill(crm, people)
            (folder / "job.toml").write_text((HERE / "job.toml").read_text().replace("http://127.0.0.1:8025", crm))
            job = half_way(folder, crm, people)
            done = tidings(folder, "migrate", "run", job, "--json")
            print(f"Run again, to the end: {told(done['counts'])}")
            causes(folder, job)
            repair(folder, job, crm, bad)
            return verdict(crm) or verified(folder, job, bad)


def fill(crm: str, people: int) -> dict[str, str]:
    """Content for the source, limits and lost answers for the target; gives who is bad, and how."""
    made = {"organizations": max(5, people // 10), "persons": people, "notes": people // 2, "bad_every": 50}
    call(f"{crm}/sandbox/affinity", {**made, "per_minute": 100_000})
    call(f"{crm}/sandbox/attio", {"writes_per_second": 40})
    call(f"{crm}/sandbox/faults", {"kind": "lost", "channel": "attio", "recipient": "notes", "rate": 0.02})
    call(f"{crm}/sandbox/faults", {"kind": "lost", "channel": "attio", "recipient": "people", "rate": 0.02})
    bad: dict[str, str] = call(f"{crm}/sandbox/affinity")["bad"]
    print(f"{people} people in {made['organizations']} companies, {made['notes']} notes; {len(bad)} are bad.")
    return bad


def half_way(folder: Path, crm: str, people: int) -> str:
    """Begin, and be killed when half of the people are there; gives the job's id."""
    job: str = tidings(folder, "migrate", "create", "job.toml", "--json")["id"]
    process = subprocess.Popen(
        [*COMMAND, "migrate", "run", job], cwd=folder, env=surroundings(), stdout=subprocess.DEVNULL
    )
    try:
        until(lambda: call(f"{crm}/sandbox/attio?counts")["counts"]["people"] >= people // 2, "half are there")
    finally:
        process.kill()  # as a power cut would
        process.wait()
    print(f"Killed with {call(f'{crm}/sandbox/attio?counts')['counts']['people']} people in the target.")
    return job


def causes(folder: Path, job: str) -> None:
    """What was quarantined, and why."""
    for cause in tidings(folder, "migrate", "dead", job, "--json")["items"]:
        print(f"  {cause['count']} {cause['type']} {cause['state']}: {cause['reason'][:90]}")


def repair(folder: Path, job: str, crm: str, bad: dict[str, str]) -> None:
    """Export what was quarantined, repair it, and give it back: only these are written."""
    call(f"{crm}/sandbox/faults", method="DELETE")
    tidings(folder, "migrate", "export", job, "-o", "bad.ndjson")
    held = {str(one["id"]): one for one in call(f"{crm}/sandbox/affinity")["content"]["persons"]}
    rows = [json.loads(line) for line in (folder / "bad.ndjson").read_text().splitlines()]
    rows = [{**row, "fields": repaired(row["id"], held[row["id"]], bad[row["id"]])} for row in rows if row["id"] in bad]
    (folder / "repaired.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    first = tidings(folder, "migrate", "replay", job, "--file", "repaired.ndjson", "--json")["opened"]
    rest = tidings(folder, "migrate", "replay", job, "--json")
    print(f"{first} repaired and uploaded, then {rest['opened']} that waited: {told(rest['counts'])}")


def repaired(id_: str, person: dict[str, Any], way: str) -> dict[str, Any]:
    """Return the corrected fields of a person."""
    match way:
        case "no_email" | "broken_email":
            return {**person, "emails": [f"repaired-{id_}@example.org"]}
        case "null_byte":
            return {**person, "last_name": person["last_name"].replace("\0", " ")}
    number = person["emails"][0].partition("@company-")[2].partition(".")[0]
    return {**person, "current_organization_ids": [100_000 + int(number)]}  # the company of their address


def verified(folder: Path, job: str, bad: dict[str, str]) -> int:
    """The engine's own comparison: every record as the source has it, or as it was repaired."""
    report = tidings(folder, "migrate", "verify", job, "--json")
    same = sum(one["same"] for one in report["types"])
    notes = [note for one in report["types"] for note in one["notes"]]
    print(f"Verified: {same} records match; {'; '.join(notes)}.")
    is_whole = report["passed"] and not any(one["differences"] for one in report["types"])
    return 0 if is_whole and notes[0].startswith(f"{len(bad):,} records were repaired") else 1


def verdict(crm: str) -> int:
    """The target's content, person by person and note by note, against what must be there."""
    source, target = (call(f"{crm}/sandbox/{name}") for name in ("affinity", "attio"))
    content, bad = target["content"], source["bad"]
    companies = {one["id"]: one["values"]["affinity_id"][0] for one in content["companies"] if not one["auto"]}
    persons = {one["id"]: one["values"]["affinity_id"][0] for one in content["people"]}
    found = sorted(
        (one["values"]["affinity_id"][0], one["values"]["email_addresses"][0], company_of(one, companies))
        for one in content["people"]
    )
    wanted = sorted(expected(one, bad) for one in source["content"]["persons"])
    notes = sorted((persons.get(one["parent_record_id"]), one["content_plaintext"]) for one in content["notes"])
    meant = sorted(expected_notes(source["content"]["notes"]))
    print(f"The target has {len(companies)} companies, {len(found)} people and {len(notes)} notes;")
    print(f"{target['refused']} writes exceeded its rate limit and were refused.")
    is_right = found == wanted and notes == meant and len(companies) == len(source["content"]["organizations"])
    print(
        "This matches the source: every record is there, exactly once."
        if is_right
        else "That is NOT what must be there."
    )
    return 0 if is_right else 1


def expected(person: dict[str, Any], bad: dict[str, str]) -> tuple[str, str, str | None]:
    """A person as the target must have them: id, address, company."""
    id_ = str(person["id"])
    fields = repaired(id_, person, bad[id_]) if id_ in bad else person
    company = str(fields["current_organization_ids"][0]) if fields["current_organization_ids"] else None
    return id_, fields["emails"][0], company


def expected_notes(notes: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Notes as the target must have them: as text, and a reply with the person of the note it answers."""
    known = {one["id"]: one for one in notes}
    for one in notes:
        subject = known.get(one["parent_id"], one)["person_ids"][0]
        yield str(subject), re.sub(r"</?p>", "", one["content"])


def company_of(person: dict[str, Any], companies: dict[str, str]) -> str | None:
    """The source's id of the company that a person of the target is linked to."""
    links = person["values"].get("company") or []
    return companies.get(links[0]["target_record_id"]) if links else None


def told(counts: dict[str, int]) -> str:
    """Counts in words."""
    return ", ".join(f"{count} {word}" for word, count in counts.items())


def tidings(folder: Path, *words: str) -> Any:
    """One command to its end; its answer, if it is JSON."""
    done = subprocess.run(
        [*COMMAND, *words], cwd=folder, env=surroundings(), capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1) or (done.returncode and not done.stdout):
        raise RuntimeError(f"tidings {' '.join(words)}: {done.stderr}")
    return json.loads(done.stdout) if "--json" in words else None


@contextmanager
def sandbox(folder: Path) -> Iterator[str]:
    """Both CRMs, apart from the engine; gives their address."""
    process = subprocess.Popen(
        [*COMMAND, "sandbox", "--port", "0", "--mail-port", "0"], cwd=folder, env=surroundings(), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        place = re.search(r"http://\S+?(?=/?\s*$)", process.stdout.readline())
        if place is None:
            raise RuntimeError("tidings sandbox did not start; run it by hand to see why")
        until(lambda: answers(place[0]), "the sandbox answers")
        yield place[0]
    finally:
        process.kill()
        process.wait()


def answers(url: str) -> bool:
    """Whether somebody is there."""
    try:
        call(f"{url}/sandbox/faults")
    except OSError:
        return False
    return True


def call(url: str, body: Any = None, *, method: str | None = None) -> Any:
    """What an address answers; with a body, to a POST."""
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data, {"content-type": "application/json"}, method=method), timeout=30) as answer:
        return json.load(answer)


def until(look: Callable[[], object], what: str) -> None:
    """Look every now and then until it is so."""
    give_up = time.monotonic() + PATIENCE
    while not look():
        if time.monotonic() > give_up:
            raise RuntimeError(f"waited in vain until {what}")
        time.sleep(0.1)


def surroundings() -> dict[str, str]:
    """Our environment without settings that somebody made, and the keys that the job names."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TIDINGS_")}
    return {**clean, "AFFINITY_KEY": "simulated", "ATTIO_KEY": "simulated"}


if __name__ == "__main__":
    sys.exit(main())
