"""Errors, cut by what the caller should do next.

    TidingsError
      CallerError        fix the request: HTTP 4xx, exit code 2
        Invalid            a field is wrong (422)
        Forbidden          the caller's key does not cover it (403)
        NotFound           no such thing (404)
        Conflict           the thing is in a state that does not allow it (409)
        InProgress         the same call is under way (409, Retry-After)
        TooLarge           over a limit (413)
        RateLimited        over a rate (429, Retry-After)
      TemporaryError     the same call may succeed later: 503, exit code 75
        StoreUnavailable   the database does not answer
          StoreRefused       it answers, and refuses to work for us
        StoreFull          the disk is full
      OperatorError      a person must look: 500, exit code 70
        StoreUnusable      the database cannot be used as it is
      Misconfigured      the start is refused: exit code 78

Each says what happened, to what, and what to do next.
"""

from __future__ import annotations


class TidingsError(Exception):
    """The root. `problem` says what happened, `remedy` what to do next."""

    code = "error"
    status = 500
    exit_code = 70

    def __init__(self, problem: str, *, remedy: str = "", field: str | None = None) -> None:
        super().__init__(f"{problem}. {remedy}" if remedy else problem)
        self.problem = problem
        self.remedy = remedy
        self.field = field


class CallerError(TidingsError):
    """Fix the request."""

    code = "bad_request"
    status = 400
    exit_code = 2


class Invalid(CallerError):
    """A field has a value that cannot be used."""

    code = "invalid"
    status = 422


class Forbidden(CallerError):
    """The request comes from where none may come, or its key does not cover it."""

    code = "forbidden"
    status = 403


class NotFound(CallerError):
    """There is no such thing, or it belongs to somebody else."""

    code = "not_found"
    status = 404


class Conflict(CallerError):
    """The thing exists, but its state does not allow this."""

    code = "conflict"
    status = 409


class InProgress(CallerError):
    """The same call with the same key is still under way."""

    code = "in_progress"
    status = 409


class TooLarge(CallerError):
    """Over a stated limit."""

    code = "too_large"
    status = 413


class RateLimited(CallerError):
    """Over a stated rate; `seconds` is when to call again."""

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
    """The database does not answer."""

    code = "store_unavailable"


class StoreRefused(StoreUnavailable):
    """The database answers, and refuses to work for us; `reason` names neither hosts nor files."""

    def __init__(self, problem: str, *, remedy: str, reason: str) -> None:
        super().__init__(problem, remedy=remedy)
        self.reason = reason


class StoreFull(TemporaryError):
    """The disk under the database is full."""

    code = "store_full"
    status = 507
    reason = "disk full"


class OperatorError(TidingsError):
    """A person must look."""

    code = "operator_error"


class StoreUnusable(OperatorError):
    """The database cannot be used as it is: newer schema, changed migration, read-only disk."""

    code = "store_unusable"


class Misconfigured(TidingsError):
    """The configuration is refused before anything starts."""

    code = "misconfigured"
    exit_code = 78


def error_text(error: BaseException) -> str:
    """Any error in one line: what ours say happened, or the kind and words of a surprise."""
    return error.problem if isinstance(error, TidingsError) else f"{type(error).__name__}: {error}"
