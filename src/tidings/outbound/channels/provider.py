"""One request to a provider's API, and what the answers of all providers have in common.

The base URL is the operator's own, so it is called as it is, loopback included. A URL may carry a token in its
path: neither it nor any secret gets into a reason, a receipt or an error. An answer's body is read up to a cap
and only ever as a small JSON object; what is no such object is judged by its status alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, Protocol

import orjson

from ...model.outcome import Outcome, Reject, Retry, Unknown
from ...model.task import Category, OnUnknown
from ..addresses import Forbidden, Rules, check_url
from ..http import SHOWN, Answer, HttpClient, MaybeSent, NotSent
from .base import Traits

ANY_HOST = Rules(allow_private=True, allow_http=True)
MAX_ANSWER = 65_536
JSON_HEADERS: Mapping[str, str] = {"content-type": "application/json; charset=utf-8"}

_WRONG = frozenset({400, 405, 406, 411, 413, 414, 415, 422})
_ACCOUNT = frozenset({401, 402, 403, 407})
_THROTTLED = frozenset({420, 429})
_NOT_DONE = frozenset({408, 425, 503})  # the other side says that it did not even begin


class Said(NamedTuple):
    """An answer, read: its status, its JSON object (empty if it has none), and what may be shown of it."""

    status: int
    fields: Mapping[str, Any]
    reason: str
    wait: str | None  # the Retry-After header as it came
    answer: Answer

    @property
    def is_foreign(self) -> bool:
        """Whether somebody else than the provider answered: a page for people, as proxies and portals do."""
        kind = self.answer.header("content-type") or ""
        return not self.fields and ("html" in kind or self.answer.body_prefix.lstrip()[:1] == b"<")


class Provider:
    """A provider's API below one base URL. `hide` are the secrets that no answer may give away."""

    def __init__(self, name: str, base: str, *, deadline: timedelta, hide: Sequence[str] = ()) -> None:
        self.name = name
        self._base = base.rstrip("/")
        self._deadline = deadline
        self._hide = tuple(secret for secret in hide if secret)
        self._http = HttpClient(connect_within=deadline / 2)

    async def post(
        self, path: str, body: bytes, headers: Mapping[str, str], *, within: timedelta | None = None
    ) -> Said | Retry | Unknown:
        """POST once; what did not come to an answer is an outcome already."""
        return await self._call("POST", path, headers, body, within)

    async def get(self, path: str, headers: Mapping[str, str]) -> Said | Retry | Unknown:
        """Ask for something; nothing changes over there."""
        return await self._call("GET", path, headers, None, None)

    async def close(self) -> None:
        """Let go of connections."""
        await self._http.close()

    async def _call(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None,
        within: timedelta | None,
    ) -> Said | Retry | Unknown:
        deadline = self._deadline if within is None else within
        if deadline <= timedelta():
            return Retry(Category.TEMPORARY, "not sent: no time was left")
        try:
            answer = await self._http.request(
                method,
                check_url(self._base + path, ANY_HOST).url,
                headers=headers,
                body=body,
                deadline=deadline,
                pinned=None,
                max_answer=MAX_ANSWER,
            )
        except Forbidden as error:
            return Retry(Category.SYSTEM, f"not sent: {error}")
        except NotSent as error:
            return Retry(Category.TEMPORARY, f"not sent: {error}")
        except MaybeSent as error:
            return Unknown(f"no answer after the request left: {error}")
        return self._read(answer)

    def _read(self, answer: Answer) -> Said:
        fields = json_object(answer.body_prefix)
        shown = answer.shown(hide=self._hide)
        reason = f"{self.name} answered HTTP {answer.status}{': ' if shown else ''}{shown}"
        return Said(answer.status, fields, reason, answer.header("retry-after"), answer)

    def worded(self, said: Said, code: object, text: object = "") -> str:
        """A reason in the provider's own words: its code and its sentence, short and without secrets."""
        words = f"{code}: {text}" if isinstance(text, str) and text.strip() else str(code)
        for secret in self._hide:
            words = words.replace(secret, "[hidden]")
        return f"{self.name} answered HTTP {said.status}, {repr(words.strip()[:SHOWN])[1:-1]}"


def json_object(body: bytes) -> Mapping[str, Any]:
    """The JSON object in a body; empty when it is anything else, or cut."""
    if body.lstrip()[:1] != b"{":
        return {}
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def by_status(said: Said, *, after: timedelta | None, reason: str | None = None) -> Outcome:
    """What an answer means when nothing more specific is known of it.

    A write that nobody can repeat safely and that ends in 500, 502 or 504 may have happened: a doubt.
    """
    status, reason = said.status, reason or said.reason
    if status in _THROTTLED:
        return Retry(Category.THROTTLING, reason, after=after, whole_channel=True)
    if status in _NOT_DONE:
        return Retry(Category.TEMPORARY, reason, after=after)
    if status >= 500 or 200 <= status < 300:
        return Unknown(reason)
    if status in _WRONG:
        return Reject(Category.VALIDATION, reason)
    if status in _ACCOUNT:
        return account_fault(reason)
    if status < 400:
        return account_fault(f"{reason} (a redirect is never followed: is url right?)")
    return Reject(Category.PERMANENT, reason)


def account_fault(reason: str) -> Reject:
    """The credential, a permission or the account's state: the channel is paused, its messages wait."""
    return Reject(Category.PERMANENT, reason, whole_channel=True)


class Common(Protocol):
    """The options that every channel has."""

    @property
    def deadline(self) -> timedelta: ...
    @property
    def policy(self) -> str: ...
    @property
    def per_second(self) -> float | None: ...
    @property
    def per_recipient(self) -> timedelta | None: ...


def traits_of(
    settings: Common,
    *,
    on_unknown: OnUnknown | None,
    default: OnUnknown,
    why: str,
    per_second: float | None = None,
    per_recipient: timedelta | None = None,
    max_text: int = 65_536,
) -> Traits:
    """The traits of a kind: its defaults, where the settings say nothing else."""
    return Traits(
        on_unknown=on_unknown or default,
        why_on_unknown=why if on_unknown in (None, default) else "chosen in the configuration",
        deadline=settings.deadline,
        policy=settings.policy,
        per_second=settings.per_second or per_second,
        per_recipient=settings.per_recipient or per_recipient,
        max_text=max_text,
    )


def judge_url(option: str, url: str) -> None:
    """Refuse a base URL that is none; raises ValueError(option, problem, remedy)."""
    try:
        target = check_url(url, ANY_HOST)
    except Forbidden as error:
        raise ValueError(option, str(error), "Leave it out, or use the sandbox's address") from error
    if target.url.query_string or target.url.fragment:
        raise ValueError(option, "the URL has a query or a fragment", "Give the beginning of the URL only")
