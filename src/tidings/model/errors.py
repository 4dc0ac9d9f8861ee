"""Errors, grouped by what the caller should do next.

    TidingsError
      CallerError        fix the request: HTTP 4xx, exit code 2
        Invalid            a field is wrong (422)
        Forbidden          the caller's key does not cover it (403)
        NotFound           no such object (404)
        Conflict           the object's state does not allow it (409)
        InProgress         the same call is in progress (409, Retry-After)
        TooLarge           over a limit (413)
        RateLimited        over a rate limit (429, Retry-After)
      TemporaryError     the same call may succeed later: 503, exit code 75
        StoreUnavailable   the database does not respond
          StoreRefused       it responds, and refuses to work
        StoreFull          the disk is full
      OperatorError      an operator must look: 500, exit code 70
        StoreUnusable      the database cannot be used as it is
      Misconfigured      the start is refused: exit code 78

Each error says what happened, to which object, and what to do next.
"""

from __future__ import annotations

import traceback


class TidingsError(Exception):
    """The root of all errors. `problem` says what happened, `remedy` what to do next."""

    code = "error"
    status = 500
    exit_code = 70

    def __init__(self, problem: str, *, remedy: str = "", field: str | None = None) -> None:
        super().__init__(f"{problem}. {remedy}" if remedy else problem)
        self.problem = problem
        self.remedy = remedy
        self.field = field


class CallerError(TidingsError):
    """The request must be fixed."""

    code = "bad_request"
    status = 400
    exit_code = 2


class Invalid(CallerError):
    """A field has an invalid value."""

    code = "invalid"
    status = 422


class Forbidden(CallerError):
    """The request comes from a forbidden origin, or its key does not cover it."""

    code = "forbidden"
    status = 403


class NotFound(CallerError):
    """The object does not exist, or belongs to another tenant."""

    code = "not_found"
    status = 404


class Conflict(CallerError):
    """The object's state does not allow this."""

    code = "conflict"
    status = 409


class InProgress(CallerError):
    """The same call with the same idempotency key is in progress."""

    code = "in_progress"
    status = 409


class TooLarge(CallerError):
    """The request exceeds a limit."""

    code = "too_large"
    status = 413


class RateLimited(CallerError):
    """The request exceeds a rate limit; `seconds` is when to call again."""

    code = "rate_limited"
    status = 429

    def __init__(self, problem: str, *, seconds: int, remedy: str = "") -> None:
        super().__init__(problem, remedy=remedy or f"call again in {seconds} s")
        self.seconds = seconds


class TemporaryError(TidingsError):
    """The same call may succeed later."""

    code = "unavailable"
    status = 503
    exit_code = 75


class StoreUnavailable(TemporaryError):
    """The database does not respond."""

    code = "store_unavailable"


class StoreRefused(StoreUnavailable):
    """The database refuses to work; `reason` names neither hosts nor files."""

    def __init__(self, problem: str, *, remedy: str, reason: str) -> None:
        super().__init__(problem, remedy=remedy)
        self.reason = reason


class StoreFull(TemporaryError):
    """The database's disk is full."""

    code = "store_full"
    status = 507
    reason = "disk full"


class OperatorError(TidingsError):
    """An operator must look."""

    code = "operator_error"


class StoreUnusable(OperatorError):
    """The database cannot be used: newer schema, changed migration, read-only disk."""

    code = "store_unusable"


class Misconfigured(TidingsError):
    """The configuration is invalid; nothing is started."""

    code = "misconfigured"
    exit_code = 78


def traceback_text(error: BaseException | None) -> str | None:
    """Return the traceback of an unexpected error; None for our own errors, whose text is enough."""
    if error is None or isinstance(error, TidingsError):
        return None
    return "".join(traceback.format_exception(error)).rstrip()


def error_text(error: BaseException) -> str:
    """Return any error in one line: the problem, or the type and text of an unexpected error."""
    return error.problem if isinstance(error, TidingsError) else f"{type(error).__name__}: {error}"
