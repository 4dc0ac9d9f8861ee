"""Classifies the HTTP response of an endpoint: an answer, a Retry-After, a rejected parameter, a failure. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

import orjson

from ...model import durations
from ...wire.http_client import MAX_SHOWN, HttpResponse
from ...wire.retry_after import MAX_RETRY_AFTER, retry_after
from .model_call import Completion, ModelFailure, ModelFailureKind

DEFAULT_RETRY_AFTER = timedelta(seconds=20)  # for a 429 without Retry-After


def read_response(
    answer: HttpResponse, parse: Callable[[Mapping[str, Any]], Completion], *, now: int, hide: str = ""
) -> Completion | ModelFailure:
    """Classify any response. `hide` is the API key, which is redacted from errors."""
    try:
        said = orjson.loads(answer.body_prefix)
    except orjson.JSONDecodeError:
        said = None
    if answer.status == 200:
        return _completion(said, parse)
    error = _Error.of(said)
    words = _shown(f"HTTP {answer.status}: {error.message or answer.shown()}", hide)
    wait = _wait(answer, now)
    match answer.status:
        case 429 if error.code != "insufficient_quota" and error.type != "insufficient_quota":
            return ModelFailure(ModelFailureKind.BUSY, words, wait or DEFAULT_RETRY_AFTER)
        case 503 if wait is not None:
            return ModelFailure(ModelFailureKind.BUSY, words, wait)
        case 408 | 409 | 425:
            return ModelFailure(ModelFailureKind.LOST, words)
        case 400 | 413 | 422:
            return ModelFailure(ModelFailureKind.UNFIT, words, param=error.param, message=error.message)
        case status if status >= 500:
            return ModelFailure(ModelFailureKind.LOST, words)
    return ModelFailure(ModelFailureKind.WRONG, words, param=error.param, message=error.message)


class _Error(NamedTuple):
    message: str = ""
    type: str = ""
    code: str = ""
    param: str = ""

    @classmethod
    def of(cls, said: object) -> _Error:
        """Parse an error given as an object or a string; codes may be strings or numbers."""
        if not isinstance(said, dict):
            return cls()
        error = said.get("error") or said.get("detail") or said
        if not isinstance(error, dict):
            return cls(str(error))
        return cls(*(str(error.get(name) or "") for name in cls._fields))


def _completion(said: object, parse: Callable[[Mapping[str, Any]], Completion]) -> Completion | ModelFailure:
    try:
        if isinstance(said, dict):
            return parse(said)
    except (AttributeError, LookupError, TypeError):
        pass
    return ModelFailure(ModelFailureKind.LOST, "the response is truncated or not a completion")


def _wait(answer: HttpResponse, now: int) -> timedelta | None:
    exact = answer.header("retry-after-ms") or ""
    if exact.isascii() and exact.isdigit() and len(exact) < 12:
        return min(timedelta(milliseconds=int(exact)), MAX_RETRY_AFTER)
    wait = retry_after(answer.header("retry-after"), now=now)
    if wait is not None:
        return wait
    resets = [answer.header(f"x-ratelimit-reset-{of}") for of in ("requests", "tokens")]
    return max((reset for value in resets if (reset := _duration(value)) is not None), default=None)


def _duration(value: str | None) -> timedelta | None:
    try:
        return None if value is None else min(durations.parse(value), MAX_RETRY_AFTER)
    except ValueError:
        return None


def _shown(text: str, hide: str) -> str:
    text = text.replace(hide, "[hidden]") if hide else text
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text.strip()[:MAX_SHOWN])
