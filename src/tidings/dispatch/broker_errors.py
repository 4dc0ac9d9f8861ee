"""What keeps us from the broker, in words. Pure.

Some things never get better by waiting: they are refused at the start, and said loudly when they come later.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from ..model.errors import Misconfigured


class BrokerProblem(NamedTuple):
    """Why there is no connection; `remedy` is there where only a person can help."""

    problem: str
    remedy: str | None = None


def broker_address(url: str) -> str:
    """The host and port of a broker: what may be shown of its URL."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or (5671 if parts.scheme == 'amqps' else 5672)}"


def worst_problem(found: Mapping[str, BrokerProblem]) -> BrokerProblem:
    """Return why none of the brokers can be used, by URL; what needs a person comes before the rest."""
    urls = sorted(found, key=lambda url: found[url].remedy is None)
    if len(urls) == 1:
        return found[urls[0]]
    return BrokerProblem(
        "; ".join(f"{broker_address(url)}: {found[url].problem}" for url in urls), found[urls[0]].remedy
    )


def describe_error(error: BaseException, url: str) -> BrokerProblem:
    """What an error of the client library means. Its classes are known by name, because it is an extra."""
    if isinstance(error, Misconfigured):
        return BrokerProblem(error.problem, error.remedy)
    names = {kind.__name__ for kind in type(error).__mro__}
    said = str(error)
    if names & {"AuthenticationError", "ProbableAuthenticationError"}:
        return BrokerProblem("RabbitMQ refuses this user or password", "check them in the URL of broker")
    if "ConnectionNotAllowed" in names or ("InvalidFrameError" in names and "Connection.OpenOk" in said):
        host = unquote(urlsplit(url).path.removeprefix("/")) or "/"
        remedy = "make it, give the user permissions on it, or correct the path in the URL of broker"
        return BrokerProblem(f"RabbitMQ has no virtual host {host!r} for this user", remedy)
    if "ChannelNotFoundEntity" in names:
        what = "".join(re.findall(r"'(tidings\.[^']*)'", said)[:1]) or "what is needed"
        return BrokerProblem(
            f"RabbitMQ has no {what} yet: a dispatcher that has this channel makes it when it starts"
        )
    if "ChannelAccessRefused" in names:
        return BrokerProblem(
            f"RabbitMQ does not let this user do what it must ({said})", "correct its permissions"
        )
    words = re.sub(r"^\[Errno -?\d+\] ", "", said) or "no answer in time"
    kind = "" if "OSError" in names else f"{type(error).__name__}: "
    return BrokerProblem(f"RabbitMQ does not answer ({kind}{words})")
