"""Any service that Apprise supports: one Apprise URL per channel. An optional dependency, imported on use.

Apprise reports success or failure with a log text. An HTTP status in that text decides the outcome; without
one the outcome is unknown and the message is held. An Apprise URL is a credential: no part of it is shown.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar
from urllib.parse import quote, unquote, urlsplit

from ...inputs.fields import Field
from ...model.errors import Invalid
from ...model.message import Message
from ...model.outcome import Done, Outcome, Reject, Retry, Unknown
from ...model.task import Category, OnUnknown
from ...wire.ssrf_guard import has_dot_segments
from ..markup import Markup, MarkupSpot
from .base import BaseChannelSettings, NoLookup, traits_of
from .long_text import LongText
from .options import channel_kind
from .provider_api import ProviderReply, masked, outcome_by_status, provider_fields_of

DEFAULT = "default"  # the recipient if the URL already names it
TO = "{to}"
THREADS = 8  # Apprise is synchronous

_STATUS = re.compile(r"\berror=([1-5]\d\d)\b")
_SHORT = 4  # shorter parts are not credentials
_DATA: Mapping[str, Field] = {
    "type": Field("string", "info, success, warning or failure", "warning"),
    "format": Field("string", "format of the text: text, markdown or html", "markdown"),
}
_CHOICES = {"type": ("info", "success", "warning", "failure"), "format": ("text", "markdown", "html")}


@dataclass(frozen=True, slots=True)
class AppriseSettings(BaseChannelSettings):
    """Settings of one service; `{to}` in the URL is the recipient."""

    secret_url: str = field(repr=False)  # the name makes the configuration mask it
    long_text: LongText = LongText.REFUSE
    deadline: timedelta = field(default=timedelta(seconds=30), kw_only=True)


class AppriseChannel(NoLookup):
    """Sends through Apprise in a thread pool."""

    kind: ClassVar[str] = "apprise"
    no_lookup = "Apprise keeps no record of sent messages"

    def __init__(self, settings: AppriseSettings) -> None:
        self._settings = settings
        self._hide = hidden(settings.secret_url)
        plugin = _plugin(settings.secret_url.replace(TO, "default"))
        self.traits = traits_of(
            settings,
            OnUnknown.HOLD,
            "Apprise reports only success or failure, and a failure may be a lost answer",
            per_second=_pace(plugin),
            max_text=int(getattr(plugin, "body_maxlen", 0) or 32_768),
        )
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="apprise")
        self._closed = False
        _silence()

    def check(self, recipient: str, content: dict[str, object]) -> None:
        """Raise Invalid for a recipient that gives no valid URL, and for an empty or too long text."""
        self._url(recipient)
        _extras(content)
        said = str(content.get("text") or "")
        if not said.strip():
            raise Invalid("The message is empty", remedy="Give a text", field="text")
        if self._settings.long_text is LongText.REFUSE and len(said) > self.traits.max_text:
            remedy = f"Shorten it to {self.traits.max_text}, or set long_text = 'split' for the channel"
            raise Invalid(f"The text has {len(said)} characters", remedy=remedy, field="text")

    def markup(self, spot: MarkupSpot) -> Markup | None:
        """HTML for the text if `format` is html."""
        return Markup.HTML if spot.place == "text" and spot.data.get("format") == "html" else None

    async def send(self, message: Message) -> Outcome:
        """Call Apprise once."""
        if self._closed:
            return Retry(Category.TEMPORARY, "not sent: the channel is closed")
        try:
            url, extras = self._url(message.recipient), _extras(message.content)
        except Invalid as error:
            return Reject(Category.VALIDATION, error.problem)
        work = self._threads.submit(self._notify, url, message, extras)
        return await self._wait(work)

    async def close(self) -> None:
        """Shut down the thread pool without waiting for running calls."""
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _wait(self, work: Future[Outcome]) -> Outcome:
        try:
            async with asyncio.timeout(self._settings.deadline.total_seconds()):
                return await asyncio.shield(asyncio.wrap_future(work))
        except TimeoutError:
            if work.cancel():
                return Retry(Category.TEMPORARY, "not sent: no thread was free in time")
            return Unknown("no answer within the deadline")

    def _notify(self, url: str, message: Message, extras: Mapping[str, Any]) -> Outcome:
        """Runs in a thread. A fresh plugin each time avoids its own rate limiter; the engine paces."""
        from apprise import Apprise

        plugin = _plugin(url)
        if plugin is None:
            return Reject(Category.VALIDATION, "Apprise does not understand this recipient")
        split = self._settings.long_text is LongText.SPLIT
        if split:
            plugin.overflow_mode = "split"
        said: list[str] = []
        service = Apprise()
        service.add(plugin)
        done = service.notify(
            body=message.text,
            title=str(message.content.get("subject") or ""),
            notify_type=extras.get("type", "info"),
            body_format=extras.get("format"),
            log_callback=lambda entry, _service: said.append(f"{entry.level}: {entry.message}"),
        )
        if done:
            return Done()
        words = [one.partition(": ")[2] for one in said if not one.startswith(("INFO", "DEBUG"))]
        return outcome_of(words, hide=self._hide, partly=split and len(message.text) > self.traits.max_text)

    def _url(self, recipient: str) -> str:
        url = self._settings.secret_url
        if TO not in url:
            if recipient != DEFAULT:
                remedy = "Use 'default', or put {to} into the channel's secret_url"
                raise Invalid("This channel's URL already has its recipient", remedy=remedy, field="to")
            return url
        filled = url.replace(TO, quote(recipient, safe=""))
        if not recipient.strip() or has_dot_segments(filled) or _plugin(filled) is None:
            remedy = "Use the recipient format of this service"
            raise Invalid("Apprise does not understand this recipient", remedy=remedy, field="to")
        return filled


def outcome_of(words: Sequence[str], *, hide: Sequence[str], partly: bool) -> Outcome:
    """The outcome of a failure by its log text. A split text may have been sent partly."""
    reason = masked("; ".join(words) or "Apprise reported a failure", hide)
    status = _STATUS.search(" ".join(words))
    if partly or status is None:
        return Unknown(reason)
    return outcome_by_status(ProviderReply(int(status[1]), None, reason, None, False), reason, certain=False)


def hidden(url: str) -> Sequence[str]:
    """All parts of a URL that may be credentials: everything but scheme and host, raw and decoded."""
    rest = re.split(r"[/:@?&=,]+", url.partition("://")[2])
    host = urlsplit(url).hostname if TO not in url and "://" in url else None
    parts = {one for part in rest for one in (part, unquote(part)) if len(one) >= _SHORT and one != host}
    return sorted({url, *parts}, key=len, reverse=True)


def _extras(content: Mapping[str, Any]) -> Mapping[str, Any]:
    found = provider_fields_of(content, _DATA, "Apprise")
    for name, value in found.items():
        if value not in _CHOICES[name]:
            remedy = f"Use {', '.join(_CHOICES[name])}"
            raise Invalid(f"data.{name} has an unknown value", remedy=remedy, field=f"data.{name}")
    return found


def _plugin(url: str) -> Any:
    """The Apprise plugin of a URL; None if it is unknown."""
    from apprise import Apprise

    return Apprise.instantiate(url)


def _pace(plugin: Any) -> float | None:
    """Apprise's rate for this service; despite its name the attribute is seconds between calls."""
    gap = float(getattr(plugin, "request_rate_per_sec", 0) or 0)
    return 1 / gap if gap > 0 else None


def _silence() -> None:
    """Silence the logs of both libraries, which contain URLs with credentials."""
    for name in ("apprise", "urllib3"):
        logger = logging.getLogger(name)
        logger.propagate = False
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())


def _judge(settings: AppriseSettings) -> None:
    """Check that Apprise is installed and knows the URL."""
    _silence()
    try:
        plugin = _plugin(settings.secret_url.replace(TO, "default"))
    except ImportError as error:
        raise ValueError("kind", "Apprise is not installed", "pip install 'tidings[apprise]'") from error
    if plugin is None:
        remedy = "See Apprise's list of services for its URL formats"
        raise ValueError("secret_url", "Apprise does not know this URL", remedy)


KIND = channel_kind(AppriseSettings, lambda settings, now: AppriseChannel(settings), _judge)
