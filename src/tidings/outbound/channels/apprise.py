"""Everything else that Apprise knows: one URL of its per channel. An extra, imported only when it is used.

Apprise says yes or no, and why in words meant for people. Where its words have an HTTP status in them, that
status decides; where they have none, nobody can say whether the message left, and it is held. An Apprise URL
is a credential as a whole: no part of it is ever shown.
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
from ...wire.http_client import MAX_SHOWN
from ...wire.ssrf_guard import has_dot_segments
from ..markup import Markup, MarkupSpot
from .base import BaseChannelSettings, traits_of
from .long_text import LongText, long_text
from .options import ChannelKind, text
from .provider_api import ProviderReply, outcome_by_status
from .provider_fields import provider_fields_of

DEFAULT = "default"  # the recipient, where the URL names everybody already
TO = "{to}"
THREADS = 8  # Apprise blocks

_STATUS = re.compile(r"\berror=([1-5]\d\d)\b")
_SHORT = 4  # what is shorter is no credential, and would be hidden everywhere
_DATA: Mapping[str, Field] = {
    "type": Field("string", "info, success, warning or failure", "warning"),
    "format": Field("string", "what the text is: text, markdown or html", "markdown"),
}
_CHOICES = {"type": ("info", "success", "warning", "failure"), "format": ("text", "markdown", "html")}


@dataclass(frozen=True, slots=True)
class AppriseSettings(BaseChannelSettings):
    """One service. `{to}` in the URL stands for the recipient."""

    secret_url: str = field(repr=False)  # called so that the configuration hides it
    long_text: LongText = LongText.REFUSE
    deadline: timedelta = field(default=timedelta(seconds=30), kw_only=True)


class AppriseChannel:
    """Sends through Apprise, in threads of its own."""

    kind: ClassVar[str] = "apprise"

    def __init__(self, settings: AppriseSettings) -> None:
        self._settings = settings
        self._hide = hidden(settings.secret_url)
        plugin = _plugin(settings.secret_url.replace(TO, "default"))
        self.traits = traits_of(
            settings,
            OnUnknown.HOLD,
            "Apprise says yes or no, and a no may be an answer that was lost",
            per_second=_pace(plugin),
            max_text=int(getattr(plugin, "body_maxlen", 0) or 32_768),
        )
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="apprise")
        self._closed = False
        _silence()

    def check(self, recipient: str, content: dict[str, object]) -> None:
        """Refuse a recipient that makes no URL, and a text that is too long."""
        self._url(recipient)
        _extras(content)
        said = str(content.get("text") or "")
        if not said.strip():
            raise Invalid("There is nothing to say", remedy="Give text", field="text")
        if self._settings.long_text is LongText.REFUSE and len(said) > self.traits.max_text:
            remedy = f"Shorten it to {self.traits.max_text}, or set long_text = 'split' for the channel"
            raise Invalid(f"The text has {len(said)} characters", remedy=remedy, field="text")

    def markup(self, spot: MarkupSpot) -> Markup | None:
        """The text, where the message says that it is HTML."""
        return Markup.HTML if spot.place == "text" and spot.data.get("format") == "html" else None

    async def send(self, message: Message) -> Outcome:
        """Hand it to Apprise once."""
        if self._closed:
            return Retry(Category.TEMPORARY, "not sent: the channel is closed")
        try:
            url, extras = self._url(message.recipient), _extras(message.content)
        except Invalid as error:
            return Reject(Category.VALIDATION, error.problem)
        work = self._threads.submit(self._notify, url, message, extras)
        return await self._wait(work)

    async def lookup(self, message: Message) -> Outcome:
        """Nobody can be asked."""
        return Unknown("Apprise keeps no record of what it sent")

    async def close(self) -> None:
        """Let the threads end; what is under way in them ends by itself."""
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
        """In a thread. A fresh plugin each time: the engine paces, so the plugin need not sleep."""
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
                raise Invalid("This channel's URL names its recipient", remedy=remedy, field="to")
            return url
        filled = url.replace(TO, quote(recipient, safe=""))
        if not recipient.strip() or has_dot_segments(filled) or _plugin(filled) is None:
            remedy = "Write it as this service writes its recipients"
            raise Invalid("Apprise does not understand this recipient", remedy=remedy, field="to")
        return filled


def outcome_of(words: Sequence[str], *, hide: Sequence[str], partly: bool) -> Outcome:
    """What Apprise's no means, by its own words. One text in several parts may have gone out partly."""
    reason = _shown("; ".join(words) or "Apprise said no", hide)
    status = _STATUS.search(" ".join(words))
    if partly or status is None:
        return Unknown(reason)
    return outcome_by_status(ProviderReply(int(status[1]), None, reason, None, False), reason, certain=False)


def hidden(url: str) -> Sequence[str]:
    """Every part of a URL that may be a credential: all but scheme and host, as they stand and decoded."""
    rest = re.split(r"[/:@?&=,]+", url.partition("://")[2])
    host = urlsplit(url).hostname if TO not in url and "://" in url else None
    parts = {one for part in rest for one in (part, unquote(part)) if len(one) >= _SHORT and one != host}
    return sorted({url, *parts}, key=len, reverse=True)


def _shown(said: str, hide: Sequence[str]) -> str:
    for secret in hide:
        said = said.replace(secret, "[hidden]")
    return repr(said.strip()[:MAX_SHOWN])[1:-1]


def _extras(content: Mapping[str, Any]) -> Mapping[str, Any]:
    found = provider_fields_of(content, _DATA, "Apprise")
    for name, value in found.items():
        if value not in _CHOICES[name]:
            remedy = f"Use {', '.join(_CHOICES[name])}"
            raise Invalid(f"data.{name} has an unknown value", remedy=remedy, field=f"data.{name}")
    return found


def _plugin(url: str) -> Any:
    """The service that a URL names; None if Apprise knows none."""
    from apprise import Apprise

    return Apprise.instantiate(url)


def _pace(plugin: Any) -> float | None:
    """What Apprise keeps to for this service; it counts in seconds between two calls, whatever its name."""
    gap = float(getattr(plugin, "request_rate_per_sec", 0) or 0)
    return 1 / gap if gap > 0 else None


def _silence() -> None:
    """Both libraries write URLs into their logs, and with them credentials; we tell what matters."""
    for name in ("apprise", "urllib3"):
        logger = logging.getLogger(name)
        logger.propagate = False
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())


def _judge(settings: AppriseSettings) -> None:
    """The package must be there, and know the URL."""
    _silence()
    try:
        plugin = _plugin(settings.secret_url.replace(TO, "default"))
    except ImportError as error:
        raise ValueError("kind", "Apprise is not installed", "pip install 'tidings[apprise]'") from error
    if plugin is None:
        remedy = "See Apprise's own list of services for how its URLs are written"
        raise ValueError("secret_url", "Apprise does not understand it", remedy)


KIND = ChannelKind(
    AppriseSettings,
    lambda settings, now: AppriseChannel(settings),
    {"secret_url": text, "long_text": long_text},
    _judge,
)
