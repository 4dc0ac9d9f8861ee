"""The interpreter that answers by rules, offline and deterministically."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from ..domain import Extraction, Intent, InterpreterContext, Utterance, WorkflowRelation
from . import relation
from .agreement import agree
from .classifier import classify
from .confidence import MEASURED, VERDICTS, ConfidenceGround, confidence_ground
from .features import build_token_row
from .language_detection import is_foreign
from .normalization import LONGEST, normalize
from .parser import ParsedMessage, ParserAgreement, moment_of, parse_scanned
from .scanner import scan
from .shift_words import shift_words
from .threads import RequestThread, apply_utterance
from .tokens import ParserContext
from .weights import Weights, load_weights

NAME = relation.NAME
_REMEMBERED = 256  # cached lines: each is parsed for intent, relation and extraction


class RuleInterpreter:
    """An interpreter without a model."""

    name = NAME

    def __init__(self, shifts: Mapping[str, tuple[str, str]] | None = None, weights: Weights | None = None) -> None:
        """`shifts`: shift words with their hours, such as {"night": ("1900", "0700")}, over the defaults."""
        self._shifts = shift_words(shifts)
        self._weights = weights or load_weights()
        self._heard = lru_cache(maxsize=_REMEMBERED)(self._understood)

    async def intent(self, context: InterpreterContext) -> Intent:
        said = self._read(context)
        why = confidence_ground(said)
        if VERDICTS[why] is False and is_foreign(context.text[:LONGEST]):
            why = ConfidenceGround.FOREIGN
        return Intent(VERDICTS[why], said.days, MEASURED[why], f"it {why}", self.name)

    async def relate(self, context: InterpreterContext) -> WorkflowRelation:
        known = context.open_requests or self._thread(context).requests
        return relation.relate(context.text, self._read(context), known, context.asked, quotes=context.quotes)

    async def extract(self, context: InterpreterContext) -> Extraction:
        thread = self._thread(context)
        current = Utterance(
            context.speaker.name, context.speaker.squad, context.now, context.text, role=context.speaker.role
        )
        said = self._read(context)
        apply_utterance(thread, current, said, context.squads, context.asked)
        unknown = any(r.squad is not None and r.squad not in context.squads for r in thread.requests)
        missing = [*(["squad"] if unknown and "squad" not in thread.missing else []), *thread.missing]
        is_cut = len(context.text) > LONGEST
        if is_cut:
            thread.warnings.append(f"only the first {LONGEST} characters were read")
        return Extraction(
            tuple(thread.requests),
            tuple(thread.warnings),
            tuple(missing),
            _reasoning(thread),
            self.name,
            is_loose=bool(said.requests) and (is_cut or said.accord is ParserAgreement.LOOSE),
        )

    def _thread(self, context: InterpreterContext) -> RequestThread:
        """Return the requests before this message: the known ones, or by parsing the thread."""
        lines = [line for line in context.thread if not line.is_ours]
        owner = lines[0].squad if lines else context.speaker.squad
        thread = RequestThread(owner, list(context.open_requests))
        for line in lines if not context.open_requests else ():
            said = self._heard(line.text, line.at, line.squad, context.timezone, tuple(context.squads))
            apply_utterance(thread, line, said, context.squads, None)
        return thread

    def _read(self, context: InterpreterContext) -> ParsedMessage:
        return self._heard(context.text, context.now, context.speaker.squad, context.timezone, tuple(context.squads))

    def _understood(
        self, text: str, at: int, squad: str | None, timezone: str, squads: tuple[str, ...]
    ) -> ParsedMessage:
        own = squad if squad in squads else None
        setting = ParserContext(moment_of(at, timezone), own, squads, self._shifts)
        plain = normalize(text)
        scanned = scan(plain, setting)
        second = classify(build_token_row(plain, scanned, setting), self._weights)
        return agree(parse_scanned(plain, scanned, setting), second)


def _reasoning(thread: RequestThread) -> str:
    """Summarize who said what, in order."""
    if thread.notes:
        return "; then ".join(thread.notes)
    return "it adds nothing new" if thread.requests else "it contains no request"
