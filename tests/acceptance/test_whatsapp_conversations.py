"""A WhatsApp conversation with the program as users start it: `tidings serve`, its sandbox, both databases."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from .program import free_port, get, post, run, serving, until

ADA, HIDDEN = "+15551234567", "US.13491208655302741918"
CONFIG = """
public_url = "http://127.0.0.1:{port}"

[channels.wa]
kind = "whatsapp_cloud"
phone_number_id = "106540352242922"
access_token = "EAAG-token"
app_secret = "app-secret-of-ours"
verify_token = "verify-token"
per_recipient = "1ms"
base_url = "http://127.0.0.1:{sandbox}"

[inbound]
enabled = true
squads = ["42", "43"]

[inbound.sources.business]
kind = "whatsapp_cloud"
channel = "wa"
help_text = "Shifts of squad 42. Reply STOP to stop."
"""


class Conversation:
    """What people write, and what they get."""

    def __init__(self, folder: Path, port: int, sandbox: int) -> None:
        self.folder, self.url, self.sandbox = folder, f"http://127.0.0.1:{port}", f"http://127.0.0.1:{sandbox}"

    def say(self, text: str, sender: str = ADA, **more: Any) -> int:
        """Write to the business number; return the number of the message."""
        said = {"channel": "whatsapp_cloud", "account": "106540352242922", "chat": sender, "sender": sender, **more}
        return int(post(f"{self.sandbox}/sandbox/said", {**said, "text": text})["n"])

    def received(self, sender: str = ADA) -> list[str]:
        """The texts that the simulated WhatsApp delivered to a person."""
        found = get(f"{self.sandbox}/sandbox/ledger?limit=1000")["entries"]
        return [entry["text"] for entry in found if entry["to"] == sender]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command."""
        return run(*words, folder=self.folder)

    def items(self, *words: str) -> list[dict[str, Any]]:
        """The rows of a list."""
        return list(json.loads(self.run(*words, "--json").stdout)["items"])

    def inbox(self, text: str) -> dict[str, Any]:
        """The inbox row with this text, once it has ended."""
        rows = until(
            lambda: [
                row
                for row in self.items("inbox", "list")
                if row["text"] == text and row["state"] in ("done", "skipped")
            ],
            f"{text} in the inbox",
        )
        return rows[0]


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_a_whatsapp_conversation_is_answered_edited_and_opted_out_of(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    """Replies reach a phone number and a user id; STOP, START and HELP work for people on no roster (D11)."""
    port, sandbox = free_port(), free_port()
    config = CONFIG.format(port=port, sandbox=sandbox)
    if database == "postgres":
        config = f'database = "{request.getfixturevalue("postgres_url")}"\n{config}'
    (tmp_path / "tidings.toml").write_text(config)
    (tmp_path / "tidings.toml").chmod(0o600)  # it contains tokens
    here = Conversation(tmp_path, port, sandbox)
    with serving(tmp_path, "--port", str(port), env={"TIDINGS_SANDBOX_PORT": str(sandbox)}):
        for sender, name in ((ADA, "Ada"), (HIDDEN, "Hidden")):
            assert here.run("roster", "add", sender, "--name", name, "--squad", "42").returncode == 0
        address = {"channel": "whatsapp_cloud", "account": "106540352242922", "url": f"{here.url}/callbacks/wa"}
        post(
            f"{here.sandbox}/sandbox/callbacks",
            {**address, "secret": "app-secret-of-ours", "verify_token": "verify-token"},
        )

        here.say("no crew saturday night")
        until(lambda: any("Done:" in text for text in here.received()), "the reply to a phone number")
        here.say("no crew sunday night", HIDDEN)
        until(lambda: any("Done:" in text for text in here.received(HIDDEN)), "the reply to a user id")

        first = here.say("lunch is ready")
        here.say("lunch is at noon", edits=first)
        here.inbox("lunch is ready")
        edited = until(lambda: [r for r in here.items("inbox", "list") if r["edited_text"]], "the edit")
        assert edited[0]["edited_text"] == "lunch is at noon"

        stranger = "+15557654321"
        here.say("HELP", stranger)
        until(lambda: here.received(stranger) == ["Shifts of squad 42. Reply STOP to stop."], "the answer to HELP")
        here.say("Stop.", stranger)
        stopped = here.inbox("Stop.")
        (out, other) = here.items("suppressions", "list")
        assert (stopped["reason"], out["channel"], out["reason"]) == ("STOP: opted out of wa", "wa", "sent Stop.")
        assert {out["address"], other["address"]} >= {stranger} and out["evidence"] == f"inbox {stopped['id']}"
        sent = json.loads(here.run("send", "--channel", "wa", "--to", stranger, "--text", "sale", "--json").stdout)
        shown = until(lambda: _ended(here, sent["id"]), "the message to a suppressed person")
        assert shown["state"] == "skipped" and "sent Stop." in json.dumps(shown)
        here.say("START", stranger)
        here.inbox("START")
        assert here.items("suppressions", "list") == []


def _ended(here: Conversation, id_: str) -> dict[str, Any] | None:
    shown = json.loads(here.run("messages", "show", id_, "--json").stdout)
    return None if shown["state"] in ("pending", "processing") else shown
