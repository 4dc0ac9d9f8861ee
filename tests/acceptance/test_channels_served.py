"""Mail, sessions and any HTTP API, from the configuration to the pretend phone, in a real process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidings.sandbox import read_ledger

from .program import free_port, run, serving

pytestmark = pytest.mark.crash

SETTINGS = """
sandbox_port = {port}

[channels.mail]
kind = "email"
host = "127.0.0.1"
port = {mail}
security = "none"
sender = "Tidings <hello@example.org>"
username = "desk"
password = "env:MAIL_PASSWORD"

[channels.whatsapp]
kind = "whatsapp_session"
base_url = "http://127.0.0.1:{port}/waha"
api_key = "env:WAHA_KEY"

[channels.gateway]
kind = "whatsapp_session"
server = "gateway"
base_url = "http://127.0.0.1:{port}/gateway"

[channels.api]
kind = "http"
url = "http://127.0.0.1:{port}/sandbox/messages"
allow_http = true
allow_private = true
receipt_path = "receipt"

[channels.api.headers]
Authorization = "env:API_KEY"

[channels.api.body]
id = "{{%message.id%}}"
to = "{{%address%}}"
text = "{{%message.content%}}"
attempt = "{{%message.attempt%}}"
"""
SECRETS = {"MAIL_PASSWORD": "canary-password", "WAHA_KEY": "canary-waha-key", "API_KEY": "Bearer canary-api-key"}
SENT = [
    ("mail", "ada@example.org", "email"),
    ("whatsapp", "+15551234567", "waha"),
    ("gateway", "+15551234567", "gateway"),
    ("api", "ada", "phone"),
]


def test_every_kind_of_channel_delivers_to_the_sandbox_and_shows_no_secret(tmp_path: Path) -> None:
    """Issue 4: configured, tried with `channels test`, sent, seen in the ledger; S9: no secret anywhere."""
    port = free_port()
    (tmp_path / "tidings.toml").write_text(SETTINGS.format(port=port, mail=port + 1))
    env = {**SECRETS, "TIDINGS_SANDBOX_PORT": str(port)}
    shown = ""
    with serving(tmp_path, "--log-level", "debug", env=env) as served:
        for channel, to, _ in SENT:
            words = ("send", "--channel", channel, "--to", to, "--text", f"by {channel}", "--wait")
            sent = run(*words, folder=tmp_path, env=env)
            assert sent.returncode == 0, sent.stdout + sent.stderr
            shown += sent.stdout + sent.stderr
        for command in ("channels test mail", "channels test whatsapp", "config", "messages list --json"):
            answer = run(*command.split(), folder=tmp_path, env=env)
            assert answer.returncode == 0, answer.stdout + answer.stderr
            shown += answer.stdout + answer.stderr
        assert served.stop() == 0
        shown += "\n".join([*served.told, *served.logged])
    ledger = tmp_path / "data" / "sandbox.jsonl"

    assert [(entry.channel, entry.text) for entry in read_ledger(ledger)] == [
        (provider, f"by {channel}") for channel, _, provider in SENT
    ]
    everything = shown + ledger.read_text()
    assert "canary" not in everything
    for path in (tmp_path / "data").iterdir():
        assert b"canary" not in path.read_bytes(), path
