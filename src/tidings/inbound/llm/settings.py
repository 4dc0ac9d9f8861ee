"""The settings table [inbound.model]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

from ...model import durations
from ...model.errors import Misconfigured
from ...wire import origin_checks
from ...wire.ssrf_guard import api_url
from ..option_parsers import flag, one_of, parse_table, text, whole
from .prompt import ModelRole

TABLE = "inbound.model"
FORMATS = ("schema", "object")
APIS = ("auto", "chat", "responses")
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
BILLION = 1_000_000_000  # costs are stored in whole billionths of your currency
MOST_ROUNDS = 4  # calls per question: the answer, its correction, and tool calls


class Price(NamedTuple):
    """The price of 1,000 tokens, in your currency."""

    input: Decimal
    output: Decimal

    def cost(self, tokens_in: int, tokens_out: int) -> int:
        """Return the cost in whole billionths, rounded up."""
        exact = (self.input * tokens_in + self.output * tokens_out) * BILLION / 1000
        return int(exact.to_integral_value(rounding="ROUND_CEILING"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """An OpenAI-compatible endpoint with its models, limits and budget."""

    base_url: str
    small: str
    large: str
    key: str | None = field(default=None, repr=False)
    timeout: timedelta = timedelta(seconds=30)
    max_wait: timedelta = timedelta(seconds=10)
    per_minute: float | None = None
    budget_per_day: Decimal | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)
    prompts: Path | None = None
    format: str = "schema"
    api: str = "auto"
    reasoning_effort: str | None = None
    reasoning_tokens: int = 8_000
    local_only: bool = False

    def model(self, role: ModelRole) -> str:
        """Return the model of a role."""
        return self.small if role is ModelRole.SMALL else self.large

    @property
    def budget(self) -> int | None:
        """The daily budget in whole billionths."""
        return None if self.budget_per_day is None else int(self.budget_per_day * BILLION)

    @property
    def longest(self) -> timedelta:
        """The maximum duration of one question; the caller's deadline must be longer."""
        return (self.max_wait + 2 * self.timeout) * MOST_ROUNDS

    def describe(self) -> Mapping[str, Any]:
        """Return all options as plain values with the key masked."""
        shown: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        for name in ("budget_per_day", "prompts"):
            shown[name] = None if shown[name] is None else str(shown[name])
        return shown | {
            "key": getattr(self.key, "shown", "***") if self.key else None,
            "timeout": durations.humanize(self.timeout),
            "max_wait": durations.humanize(self.max_wait),
            "prices": {model: [str(one) for one in price] for model, price in self.prices.items()},
        }


def read(table: object, folder: Path) -> ModelSettings:
    """Parse the table; raises Misconfigured. Paths are relative to `folder`."""
    given = parse_table(TABLE, table, OPTIONS)
    if given.get("prompts") is not None:
        given["prompts"] = folder / given["prompts"]
    for name in ("base_url", "small"):
        if name not in given:
            raise _refused(name, "is missing", f"Add {name} to [inbound.model]")
    given.setdefault("large", given["small"])
    settings = ModelSettings(**given)
    for model in (settings.small, settings.large):
        if settings.budget_per_day is not None and model not in settings.prices:
            remedy = f'Add [inbound.model.prices."{model}"] with input and output per 1,000 tokens'
            raise _refused("budget_per_day", f"cannot be enforced: {model!r} has no price", remedy)
    return settings


def is_loopback(url: str) -> bool:
    """Return whether a URL points to this machine."""
    return origin_checks.is_loopback(urlsplit(url).hostname or "")


def _refused(name: str, problem: str, remedy: str) -> Misconfigured:
    return Misconfigured(f"{TABLE}.{name} {problem}", remedy=remedy, field=f"{TABLE}.{name}")


def _key(value: object) -> str:
    """Return the key unchanged, so that a wrapped secret stays wrapped."""
    if not isinstance(value, str) or not value.isascii() or not value.isprintable() or not value:
        raise ValueError("must be a string of printable ASCII characters")
    return value


def _length(value: object) -> timedelta:
    length = durations.parse(cast(str, value))
    if not timedelta() < length <= timedelta(minutes=10):
        raise ValueError("must be greater than zero and at most 10m")
    return length


def _amount(value: object) -> Decimal:
    try:
        amount = Decimal(str(value)) if not isinstance(value, bool) else Decimal("NaN")
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or not 0 <= amount <= 1_000_000:
        raise ValueError("must be a number from 0 to 1000000")
    return amount


def _rate(value: object) -> float:
    rate = float(_amount(value))
    if not rate:
        raise ValueError("must be greater than zero")
    return rate


def _prices(value: object) -> Mapping[str, Price]:
    if not isinstance(value, Mapping):
        raise ValueError("must be a table of models")
    found = {}
    for model, price in value.items():
        if not isinstance(price, Mapping) or set(price) != {"input", "output"}:
            raise ValueError(f"the price of {model!r} must have input and output, per 1,000 tokens")
        found[str(model)] = Price(_amount(price["input"]), _amount(price["output"]))
    return found


OPTIONS: Mapping[str, Callable[[object], Any]] = {
    "base_url": lambda value: api_url(text(value)),
    "key": _key,
    "small": text,
    "large": text,
    "timeout": _length,
    "max_wait": _length,
    "per_minute": _rate,
    "budget_per_day": _amount,
    "prices": _prices,
    "prompts": text,
    "format": one_of(FORMATS),
    "api": one_of(APIS),
    "reasoning_effort": one_of(EFFORTS),
    "reasoning_tokens": whole(0, 100_000),
    "local_only": flag,
}
