"""Commands for callbacks: set the callback URL of an account, or send a receipt."""

from __future__ import annotations

from collections.abc import Mapping

from tidings.model.errors import Invalid, NotFound

from .callbacks import PROVIDERS, SandboxCallbacks
from .receipts import RECEIPT_KINDS
from .simulator import SandboxSimulator

_ADDRESS = ("channel", "account", "url", "secret", "verify_token")


async def set_callback_target(callbacks: SandboxCallbacks, body: Mapping[str, object]) -> None:
    """Set the callback URL of an account ("*" for all of a provider), or `auto`, the automatic receipts."""
    if "auto" in body:
        callbacks.auto = _auto(body)
        return
    _refuse_unknown(body, _ADDRESS)
    given = {name: _text(body, name) for name in _ADDRESS}
    if given["channel"] not in PROVIDERS:
        remedy = f"Use one of {', '.join(PROVIDERS)}"
        raise Invalid(f"{given['channel']!r} has no callbacks", remedy=remedy, field="channel")
    url, token = given["url"], given["verify_token"]
    if url and given["channel"] == "whatsapp_cloud" and not await callbacks.is_theirs(url, token):
        problem = "The URL did not answer the challenge"
        raise Invalid(problem, remedy="Check url, verify_token and that it is running", field="url")
    callbacks.point(given["channel"], given["account"] or "*", url, given["secret"])


def send_receipt(world: SandboxSimulator, body: Mapping[str, object]) -> dict[str, object]:
    """Send a receipt: {"n": 12, "what": "read"}, or {"id": "...", "what": "failed", "code": 30003}."""
    _refuse_unknown(body, ("n", "id", "what", "code"))
    n, code = body.get("n"), body.get("code")
    if n is None:
        n = _number_of(world, _text(body, "id"))
    if type(n) is not int or not isinstance(code, int | None) or isinstance(code, bool):
        raise Invalid("n and code must be integers", field="n")
    what = _text(body, "what")
    world.callbacks.tell(n, what, code)
    return {"n": n, "what": what}


def _number_of(world: SandboxSimulator, id_: str) -> int:
    """Return the newest delivered ledger entry with the sender's id."""
    for entry in reversed(world.recent):
        if entry.id == id_ and entry.delivered:
            return entry.n
    raise NotFound(f"Unknown message {id_!r}", remedy="Use its number n from the ledger", field="id")


def _auto(body: Mapping[str, object]) -> tuple[str, ...]:
    _refuse_unknown(body, ("auto",))
    auto = body["auto"]
    if not isinstance(auto, list) or not all(what in RECEIPT_KINDS for what in auto):
        problem = "auto must be a list of receipts"
        raise Invalid(problem, remedy=f"Use some of {', '.join(RECEIPT_KINDS)}", field="auto")
    return tuple(auto)


def _text(body: Mapping[str, object], field: str) -> str:
    value = body.get(field, "")
    if not isinstance(value, str) or len(value) > 4000:
        raise Invalid(f"{field} must be a text", field=field)
    return value


def _refuse_unknown(body: Mapping[str, object], known: tuple[str, ...]) -> None:
    unknown = sorted(set(body) - set(known))
    if unknown:
        raise Invalid(f"Unknown field {unknown[0]!r}", remedy=f"Use {', '.join(known)}", field=unknown[0])
