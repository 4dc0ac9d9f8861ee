"""Connection problems of the broker, as text with a remedy. Pure.

Problems with a remedy do not go away by waiting: they prevent a start, and are logged if they occur later.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from ..model.errors import Misconfigured


class BrokerProblem(NamedTuple):
    """Why there is no connection; `remedy` is set if only a person can fix it."""

    problem: str
    remedy: str | None = None


def broker_address(url: str) -> str:
    """Return the host and port of a broker's URL, which may be shown."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or (5671 if parts.scheme == 'amqps' else 5672)}"


def worst_problem(found: Mapping[str, BrokerProblem]) -> BrokerProblem:
    """Return why none of the brokers can be used, by URL; problems with a remedy come first."""
    urls = sorted(found, key=lambda url: found[url].remedy is None)
    if len(urls) == 1:
        return found[urls[0]]
    return BrokerProblem(
        "; ".join(f"{broker_address(url)}: {found[url].problem}" for url in urls), found[urls[0]].remedy
    )


def describe_error(error: BaseException, url: str) -> BrokerProblem:
    """Describe an error of the client library, by class name, because the library is optional."""
    if isinstance(error, Misconfigured):
        return BrokerProblem(error.problem, error.remedy)
    names = {kind.__name__ for kind in type(error).__mro__}
    text = str(error)
    if names & {"AuthenticationError", "ProbableAuthenticationError"}:
        return BrokerProblem("RabbitMQ rejected the user or password", "check them in the URL of broker")
    if "ConnectionNotAllowed" in names or ("InvalidFrameError" in names and "Connection.OpenOk" in text):
        host = unquote(urlsplit(url).path.removeprefix("/")) or "/"
        remedy = "create it, grant the user permissions on it, or correct the path in the URL of broker"
        return BrokerProblem(f"RabbitMQ has no virtual host {host!r} for this user", remedy)
    if "ChannelNotFoundEntity" in names:
        what = "".join(re.findall(r"'(tidings\.[^']*)'", text)[:1]) or "required queue"
        return BrokerProblem(f"RabbitMQ has no {what} yet: a dispatcher with this channel creates it when it starts")
    if "ChannelAccessRefused" in names:
        return BrokerProblem(f"RabbitMQ denied the user a permission ({text})", "correct the user's permissions")
    detail = re.sub(r"^\[Errno -?\d+\] ", "", text) or "timed out"
    kind = "" if "OSError" in names else f"{type(error).__name__}: "
    return BrokerProblem(f"RabbitMQ does not respond ({kind}{detail})")
