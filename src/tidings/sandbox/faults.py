"""Fault injection: which fault a request meets. Pure, without I/O or a clock.

A fault comes from the recipient's name (`flaky-3`, `ada+flaky-3`, `flaky-3@…`), without any setup, or from a
rule: for everyone or one recipient, always or at a rate, for a duration or a number of times; a rate limit
(429 with `per_second`) hits only requests above it. The name comes first, then the rules, newest first; a
request meets at most one fault.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from tidings.model.errors import Invalid


class FaultKind(StrEnum):
    """What was done with a request; the value is stored in the ledger."""

    OK = "ok"
    ERROR = "500"
    THROTTLED = "429"
    GONE = "404"
    LOST = "lost"  # delivered, then the connection is cut: unknown to the sender
    CUT = "cut"  # not delivered, connection cut: looks the same to the sender
    SLOW = "slow"  # delivered, answered late
    DRIP = "drip"  # delivered, answered byte by byte
    HTML = "html"  # not delivered: a proxy's HTML page instead of the provider's answer
    HUGE = "huge"  # not delivered: a 10 MB error page
    REFUSED = "error"  # not delivered: the provider's own error, by its code
    BANNED = "banned"  # the account is banned; becomes REFUSED with the provider's code
    LOGGED_OUT = "logged_out"  # its credentials are invalid; becomes REFUSED
    INVALID = "400"  # invalid request; never set by a fault
    SAID = "said"  # not a request: a person's message


DELIVERS = frozenset({FaultKind.OK, FaultKind.LOST, FaultKind.SLOW, FaultKind.DRIP})
CUTS = frozenset({FaultKind.LOST, FaultKind.CUT})
ON_COMMAND = tuple(one for one in FaultKind if one not in (FaultKind.OK, FaultKind.INVALID, FaultKind.SAID))

# Each provider's code for a banned account and for invalid credentials.
PROVIDER_CODES: Mapping[str, Mapping[FaultKind, str]] = {
    "telegram": {FaultKind.BANNED: "unauthorized", FaultKind.LOGGED_OUT: "logged_out"},
    "whatsapp_cloud": {FaultKind.BANNED: "131031", FaultKind.LOGGED_OUT: "190"},
    "waha": {FaultKind.BANNED: "FAILED", FaultKind.LOGGED_OUT: "SCAN_QR_CODE"},
    "gateway": {FaultKind.BANNED: "the_account_is_banned", FaultKind.LOGGED_OUT: "logged_out"},
    "evolution": {FaultKind.BANNED: "403", FaultKind.LOGGED_OUT: "401"},
    "groupme": {FaultKind.BANNED: "403", FaultKind.LOGGED_OUT: "401"},
    "twilio": {FaultKind.BANNED: "30002", FaultKind.LOGGED_OUT: "20003"},
    "slack": {FaultKind.BANNED: "account_inactive", FaultKind.LOGGED_OUT: "token_revoked"},
    "discord": {FaultKind.BANNED: "10015", FaultKind.LOGGED_OUT: "50027"},
    "email": {FaultKind.BANNED: "554", FaultKind.LOGGED_OUT: "535"},
}
_ANYBODYS_WORDS = {FaultKind.BANNED: "403", FaultKind.LOGGED_OUT: "401"}

# Recipient name -> what happens; shown on the phone page.
RECIPIENT_FAULTS: Mapping[str, str] = {
    "flaky-3": "answers 500 until attempt 3",
    "throttle-5": "429 with Retry-After 5; a later attempt succeeds",
    "lost": "delivered, then the connection is cut without an answer",
    "lost-2": "the same, until attempt 2",
    "slow-2": "answers after 2 s",
    "drip-2": "answers byte by byte over 2 s",
    "down": "always answers 500",
    "cut": "the connection is cut before delivery",
    "gone": "404, unknown recipient",
    "html": "an HTML page instead of the provider's answer",
    "huge": "a 10 MB error page",
    "banned": "the account is banned, with the provider's error",
    "error-21610": "the provider's error with that code or name",
}

DEFAULT_SECONDS: Mapping[FaultKind, float] = {FaultKind.THROTTLED: 5.0, FaultKind.SLOW: 2.0, FaultKind.DRIP: 30.0}
MAX_RULES = 100
MAX_SLOW = 600.0
MAX_WAIT = 86_400.0

_WORD = re.compile(
    r"(?:^|[+@])(?:(flaky|throttle|slow|drip|lost)[-_](\d{1,5})|(down|lost|gone|cut|html|huge|banned)"
    r"|(error)[-_](\w{1,64}))(?=$|@)",
    re.ASCII,
)
_PLAIN_FAULTS = {
    **{"down": FaultKind.ERROR, "gone": FaultKind.GONE, "cut": FaultKind.CUT},
    **{"html": FaultKind.HTML, "huge": FaultKind.HUGE, "banned": FaultKind.BANNED},
}
_CODE = re.compile(r"\w{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class SandboxFault:
    """One fault for one request; `seconds` is the delay if slow, the Retry-After if throttled.

    `code` is the provider's code or name of the error to answer with.
    """

    kind: FaultKind
    seconds: float = 0.0
    code: str = ""


NONE = SandboxFault(FaultKind.OK)


@dataclass(frozen=True, slots=True)
class FaultContext:
    """What a decision needs to know about a request."""

    channel: str
    to: str
    attempt: int
    waited: float | None = None  # seconds since this message was first refused; None if it never was


@dataclass(frozen=True, slots=True)
class FaultRule:
    """A fault set by command."""

    id: int
    kind: FaultKind
    seconds: float = 0.0
    rate: float = 1.0
    until: float | None = None  # in ticks; None = until cleared
    times: int | None = None  # how many more requests; None = any number
    recipient: str | None = None
    channel: str | None = None
    code: str = ""
    per_second: float | None = None  # hits only requests above this rate
    free_at: float = 0.0  # in ticks: the rate is used up until then


FaultRules = tuple[FaultRule, ...]


def decide(
    call: FaultContext, rules: FaultRules, *, now: float, draw: Callable[[], float]
) -> tuple[SandboxFault, FaultRule | None]:
    """Return the fault for a request, and the rule that caused it, if any."""
    by_name = recipient_fault(call)
    if by_name is not None:
        return as_provider_code(by_name, call.channel), None
    for rule in rules:
        if _applies(rule, call, now) and (rule.rate >= 1 or draw() < rule.rate):
            if _has_room(rule, now):
                return NONE, rule
            return as_provider_code(SandboxFault(rule.kind, rule.seconds, rule.code), call.channel), rule
    return NONE, None


def as_provider_code(fault: SandboxFault, channel: str) -> SandboxFault:
    """Return a ban or invalid credentials as the provider's own error."""
    if fault.kind not in _ANYBODYS_WORDS:
        return fault
    return SandboxFault(FaultKind.REFUSED, code=PROVIDER_CODES.get(channel, _ANYBODYS_WORDS)[fault.kind])


def _has_room(rule: FaultRule, now: float) -> bool:
    """Return whether a rate limit still has room; bursts of one second are allowed."""
    return rule.per_second is not None and max(rule.free_at, now) - now <= 1 - 1 / rule.per_second


def recipient_fault(call: FaultContext) -> SandboxFault | None:
    """Return the fault that the recipient's name asks for; None for ordinary names."""
    match = _WORD.search(call.to)
    if match is None:
        return None
    number = int(match[2] or 0)
    match match[1] or match[3] or match[4]:
        case "flaky":
            return SandboxFault(FaultKind.ERROR) if call.attempt < number else NONE
        case "throttle":
            left = number - (call.waited or 0.0)
            return SandboxFault(FaultKind.THROTTLED, math.ceil(left)) if left > 0 else NONE
        case "slow" | "drip" as word:
            return SandboxFault(FaultKind(word), min(float(number), MAX_SLOW))
        case "lost":
            return SandboxFault(FaultKind.LOST) if match[2] is None or call.attempt < number else NONE
        case "error":
            return SandboxFault(FaultKind.REFUSED, code=match[5])
        case word:
            return SandboxFault(_PLAIN_FAULTS[word])


def _applies(rule: FaultRule, call: FaultContext, now: float) -> bool:
    return (
        (rule.until is None or now < rule.until)
        and (rule.recipient is None or rule.recipient == call.to)
        and (rule.channel is None or rule.channel == call.channel)
    )


def active(rules: FaultRules, now: float) -> FaultRules:
    """Return the rules that have not expired."""
    return tuple(rule for rule in rules if rule.until is None or now < rule.until)


def with_rule(rules: FaultRules, new: FaultRule) -> FaultRules:
    """Add a rule, newest first; it replaces one of the same kind, recipient and channel."""
    same = (new.kind, new.recipient, new.channel)
    kept = tuple(rule for rule in rules if (rule.kind, rule.recipient, rule.channel) != same)
    return (new, *kept)[:MAX_RULES]


def without_rule(rules: FaultRules, id: int) -> FaultRules:
    """Remove one rule."""
    return tuple(rule for rule in rules if rule.id != id)


def is_spent(rule: FaultRule) -> bool:
    """Return whether a use of this rule has to be counted."""
    return rule.times is not None or rule.per_second is not None


def spend(rules: FaultRules, used: FaultRule, now: float = 0.0) -> FaultRules:
    """Count one use of a rule: the last use removes it; a rate limit counts what it let through."""
    if used.per_second is not None:
        if not _has_room(used, now):
            return rules
        taken = replace(used, free_at=max(used.free_at, now) + 1 / used.per_second)
        return tuple(taken if rule.id == used.id else rule for rule in rules)
    if used.times == 1:
        return without_rule(rules, used.id)
    left = used if used.times is None else replace(used, times=used.times - 1)
    return tuple(left if rule.id == used.id else rule for rule in rules)


def parse_rule(body: object, *, id: int, now: float) -> FaultRule:
    """Parse a command into a rule; raises Invalid with a remedy."""
    if not isinstance(body, dict):
        raise Invalid("A fault is a JSON object", remedy='For example {"kind": "500", "for_seconds": 30}')
    known = ("kind", "seconds", "rate", "for_seconds", "times", "recipient", "channel", "code", "per_second")
    unknown = sorted(set(body) - set(known))
    if unknown:
        problem = f"A fault has no field {unknown[0]!r}"
        raise Invalid(problem, remedy=f"Use {', '.join(known)}", field=str(unknown[0]))
    kind = _kind(body.get("kind"))
    lasts = _number(body, "for_seconds", above=0, most=MAX_WAIT)
    times = _number(body, "times", above=0, most=1_000_000)
    if times is not None and times != int(times):
        raise Invalid("times must be an integer", field="times")
    slow = kind in (FaultKind.SLOW, FaultKind.DRIP)
    seconds = _number(body, "seconds", above=0, most=MAX_SLOW if slow else MAX_WAIT)
    rate = _number(body, "rate", above=0, most=1)
    return FaultRule(
        id=id,
        kind=kind,
        seconds=DEFAULT_SECONDS.get(kind, 0.0) if seconds is None else seconds,
        rate=1.0 if rate is None else rate,
        until=None if lasts is None else now + lasts,
        times=None if times is None else int(times),
        recipient=_name(body, "recipient"),
        channel=_name(body, "channel"),
        code=_code(body) if kind is FaultKind.REFUSED else "",
        per_second=_limit(body, kind),
    )


def _kind(value: object) -> FaultKind:
    try:
        kind = FaultKind(str(value))
    except ValueError:
        kind = FaultKind.OK
    if kind not in ON_COMMAND:
        raise Invalid(f"Unknown fault {value!r}", remedy=f"Use one of {', '.join(ON_COMMAND)}", field="kind")
    return kind


def _limit(body: Mapping[str, object], kind: FaultKind) -> float | None:
    limit = _number(body, "per_second", above=0, most=1_000_000)
    if limit is not None and (limit < 1 or kind is not FaultKind.THROTTLED or body.get("times") is not None):
        problem = "per_second requires kind 429, at least 1, and no times"
        remedy = 'For example {"kind": "429", "seconds": 1, "per_second": 30}'
        raise Invalid(problem, remedy=remedy, field="per_second")
    return limit


def _code(body: Mapping[str, object]) -> str:
    code = str(body.get("code") or "")
    if not _CODE.fullmatch(code):
        problem = "code must be the provider's code or name of an error"
        raise Invalid(problem, remedy='For example {"kind": "error", "code": "21610"}', field="code")
    return code


def _number(body: Mapping[str, object], field: str, *, above: float, most: float) -> float | None:
    value = body.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not above < value <= most:
        raise Invalid(f"{field} must be a number greater than {above:g} and at most {most:g}", field=field)
    return float(value)


def _name(body: Mapping[str, object], field: str) -> str | None:
    value = body.get(field)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise Invalid(f"{field} must be a name", remedy="Omit it to match everyone", field=field)
    return value.strip()
