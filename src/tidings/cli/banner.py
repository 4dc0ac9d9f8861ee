"""What `serve` says when it is ready: where to look, and a line to paste."""

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
    app: App, phone: SandboxPhone | None, *, share: ProcessShare, config: Path | None, is_open: bool
) -> None:
    """Addresses, database, whether this process works, and a ready `tidings send` line."""
    settings = app.settings
    lines = [
        ("page", f"http://{display_host(settings.host)}:{settings.port}/", ""),
        ("database", mask_url(settings.database), ""),
        ("working", *_working(app, share)),
        ("access", *_access(is_open=is_open)),
    ]
    if phone is not None:
        about = "messages to the pretend phone arrive here" if phone.is_ours else "run by another process"
        lines.insert(1, ("phone", f"{phone.url}/", about))
    output.say(("Tidings ", "bold"), (__version__, "bold"), " is ready.")
    output.say()
    for name, value, about in lines:
        style = "cyan" if "://" in value else ""
        output.say((f"  {name:<10}", "dim"), (value, style), (f"  {about}" if about else "", "dim"))
    output.say()
    output.say("  Send a message from another terminal:")
    output.say(("    " + send_line(settings, config), "bold green"))
    output.say()
    output.say(("  Ctrl-C stops in order.", "dim"))
    sys.stdout.flush()


def show_roles(settings: Settings, share: ProcessShare, problem: str | None = None) -> None:
    """A process without pages: what it does, and on what; or what it waits for."""
    stands = " is ready: " if problem is None else " waits for its broker: "
    output.say(("Tidings ", "bold"), (__version__, "bold"), stands, ", ".join(sorted(share.roles)))
    if share.needs_database:
        output.say(("  database  ", "dim"), mask_url(settings.database))
    if settings.broker:
        output.say(("  broker    ", "dim"), ", ".join(map(mask_url, settings.broker)))
    if problem is not None:
        output.say(("  waiting   ", "dim"), problem)
    if share.queues is not None:
        output.say(("  channels  ", "dim"), ", ".join(sorted(share.queues)))
    sys.stdout.flush()


def stopping() -> None:
    """The first signal came."""
    output.say("\nStopping: what is in hand is finished or given back. Once more stops at once.")
    sys.stdout.flush()


def stopped() -> None:
    """Everything is down."""
    output.say("Stopped.")


def send_line(settings: Settings, config: Path | None) -> str:
    """A command that works when it is pasted into a terminal in the same folder."""
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
    """How the user would call this program: by its name where that finds it, else by its path."""
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
        return "no key needed on this machine", "`tidings keys create NAME --role admin` ends that"
    return "with a key", ""


def _working(app: App, share: ProcessShare) -> tuple[str, str]:
    if not share.works:
        return "no", "accepts and shows, but sends nothing"
    if not share.roles & {ProcessRole.WORKER, ProcessRole.DISPATCHER}:
        return ", ".join(sorted(share.roles)), "sends nothing: that needs a worker, or a dispatcher"
    if app.store.may_work():
        return f"yes, up to {app.settings.concurrency:,} messages at once", ""
    return "not yet", "another process does; this one accepts and reads, and takes over when that one ends"
