"""The startup banner of `serve`: addresses, database, and a command to paste."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from urllib.parse import urlsplit

from .. import __version__
from ..app import App
from ..config import Settings, mask_url
from ..dispatch.roles import ProcessRole, ProcessShare
from . import output
from .ports import display_host
from .sandbox_phone import SandboxPhone


def show(
    app: App,
    phone: SandboxPhone | None,
    metrics: str | None,
    *,
    share: ProcessShare,
    config: Path | None,
    is_open: bool,
) -> None:
    """Print the addresses, the database, whether this process sends, and a `tidings send` command."""
    settings = app.settings
    lines = [
        ("dashboard", f"http://{display_host(settings.host)}:{settings.port}/", ""),
        ("database", mask_url(settings.database), ""),
        ("sending", *_sending(app, share)),
        ("access", *_access(is_open=is_open)),
    ]
    if metrics is not None:
        lines.append(("metrics", metrics, "no API key needed"))
    if phone is not None:
        about = "simulated phone: test messages arrive here" if phone.is_ours else "run by another process"
        lines.insert(1, ("sandbox", f"{phone.url}/", about))
    output.say(("Tidings ", "bold"), (__version__, "bold"), " is ready.")
    output.say()
    for name, value, about in lines:
        style = "cyan" if "://" in value else ""
        output.say((f"  {name:<10}", "dim"), (value, style), (f"  {about}" if about else "", "dim"))
    output.say()
    output.say("  Send a message from another terminal:")
    output.say(("    " + send_line(settings, config), "bold green"))
    output.say()
    output.say(("  Press Ctrl-C to stop.", "dim"))
    sys.stdout.flush()


def show_roles(settings: Settings, share: ProcessShare, problem: str | None, metrics: str | None) -> None:
    """Print the roles of a process without the API, or why it is not ready yet."""
    state = " is ready: " if problem is None else " is waiting for its broker: "
    output.say(("Tidings ", "bold"), (__version__, "bold"), state, ", ".join(sorted(share.roles)))
    if share.needs_database:
        output.say(("  database  ", "dim"), mask_url(settings.database))
    if settings.broker:
        output.say(("  broker    ", "dim"), ", ".join(map(mask_url, settings.broker)))
    if metrics is not None:
        output.say(("  metrics   ", "dim"), metrics)
    if problem is not None:
        output.say(("  waiting   ", "dim"), problem)
    if share.queues is not None:
        output.say(("  channels  ", "dim"), ", ".join(sorted(share.queues)))
    sys.stdout.flush()


def stopping() -> None:
    """Print that a graceful shutdown has begun."""
    output.say("\nStopping gracefully. Press Ctrl-C again to stop immediately.")
    sys.stdout.flush()


def stopped() -> None:
    """Print that the shutdown is complete."""
    output.say("Stopped.")


def send_line(settings: Settings, config: Path | None) -> str:
    """Return a `tidings send` command that works in a terminal in the same folder."""
    channel = next((name for name in ("phone", *settings.channels) if name in settings.channels), "phone")
    words = [*program(), "send"]
    if config is not None:
        words += ["--config", str(config)]
    if settings.origins.get("database") == "--database":
        url = settings.database
        words += ["--database", mask_url(url) if urlsplit(url).password or "password" in url else url]
    known = settings.channels.get(channel)
    to = "https://example.org/hook" if known is not None and known.kind == "webhook" else "ada"
    words += ["--channel", channel, "--to", to, "--text", "hello", "--in", "10s"]
    return shlex.join(words)


def program() -> list[str]:
    """Return the words that start this program: its name if that is on the path, otherwise its path."""
    called = Path(sys.argv[0])
    found = shutil.which(called.name)
    if called.name == "__main__.py":
        return [sys.executable, "-m", "tidings.cli"]
    if found is not None and Path(found).resolve() == called.resolve():
        return [called.name]
    here = os.path.relpath(called)
    return [str(called) if here.startswith("..") else here]


def _access(*, is_open: bool) -> tuple[str, str]:
    if is_open:
        return "no API key needed on this machine", "to require one: tidings keys create NAME --role admin"
    return "API key required", ""


def _sending(app: App, share: ProcessShare) -> tuple[str, str]:
    if not share.works:
        return "no", "API only"
    if not share.roles & {ProcessRole.WORKER, ProcessRole.DISPATCHER}:
        return ", ".join(sorted(share.roles)), "needs the role worker or dispatcher to send"
    if app.store.may_work():
        return f"up to {app.settings.concurrency:,} messages concurrently", ""
    return "standby", "another process is active; this one takes over when it ends"
