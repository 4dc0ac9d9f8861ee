"""The rules mind: understands shift talk by a grammar, offline, the same every time."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from ..domain import Extraction, Intent, InterpreterContext, Utterance, WorkflowRelation
from . import relation
from .agreement import agree
from .classifier import classify
from .confidence import MEASURED, VERDICTS, ConfidenceGround, confidence_ground
from .language_detection import is_foreign
from .normalization import LONGEST, normalize
from .parser import ParsedMessage, ParserAgreement, ParserContext, moment_of, parse_scanned
from .scanner import Vocabulary, scan
from .shift_words import shift_words
from .threads import RequestThread, apply_utterance
from .token_row import build_token_row
from .weights import Weights, load_weights

NAME = relation.NAME
_REMEMBERED = 256  # lines: the same one is read for intent, relation and extraction


class RuleInterpreter:
    """A `Mind` without a model. It knows the squads' shift words and nothing else."""

    name = NAME

    def __init__(
        self, shifts: Mapping[str, tuple[str, str]] | None = None, weights: Weights | None = None
    ) -> None:
        """`shifts`: words with their hours, such as {"night": ("1900", "0700")}; the rest as by default."""
        self._shifts = shift_words(shifts)
        self._weights = weights or load_weights()
        self._heard = lru_cache(maxsize=_REMEMBERED)(self._understood)

    async def intent(self, scene: InterpreterContext) -> Intent:
        """Is this a request? None: perhaps."""
        said = self._read(scene)
        why = confidence_ground(said)
        if VERDICTS[why] is False and is_foreign(scene.text[:LONGEST]):
            why = ConfidenceGround.FOREIGN
        return Intent(VERDICTS[why], said.days, MEASURED[why], f"it {why}", self.name)

    async def relate(self, scene: InterpreterContext) -> WorkflowRelation:
        """Does this go on with the open workflow? None: only a model or a person can tell."""
        known = scene.open_requests or self._thread(scene).requests
        return relation.relate(scene.text, self._read(scene), known, scene.asked, quotes=scene.quotes)

    async def extract(self, scene: InterpreterContext) -> Extraction:
        """What the thread and this message ask for."""
        thread = self._thread(scene)
        current = Utterance(
            scene.speaker.name, scene.speaker.squad, scene.now, scene.text, role=scene.speaker.role
        )
        said = self._read(scene)
        apply_utterance(thread, current, said, scene.squads, scene.asked)
        unknown = any(r.squad is not None and r.squad not in scene.squads for r in thread.requests)
        missing = [*(["squad"] if unknown and "squad" not in thread.missing else []), *thread.missing]
        is_cut = len(scene.text) > LONGEST
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

    def _thread(self, scene: InterpreterContext) -> RequestThread:
        """What was asked for before this message: as it is known, or by reading the lines again."""
        lines = [line for line in scene.thread if not line.is_ours]
        owner = lines[0].squad if lines else scene.speaker.squad
        thread = RequestThread(owner, list(scene.open_requests))
        for line in lines if not scene.open_requests else ():
            said = self._heard(line.text, line.at, line.squad, scene.timezone, tuple(scene.squads))
            apply_utterance(thread, line, said, scene.squads, None)
        return thread

    def _read(self, scene: InterpreterContext) -> ParsedMessage:
        return self._heard(scene.text, scene.now, scene.speaker.squad, scene.timezone, tuple(scene.squads))

    def _understood(
        self, text: str, at: int, squad: str | None, timezone: str, squads: tuple[str, ...]
    ) -> ParsedMessage:
        own = squad if squad in squads else None
        setting = ParserContext(moment_of(at, timezone), own, squads, self._shifts)
        plain = normalize(text)
        scanned = scan(plain, setting.now, Vocabulary(squads, self._shifts))
        second = classify(build_token_row(plain, scanned, setting.now, own, squads), self._weights)
        return agree(parse_scanned(plain, scanned, setting), second)


def _reasoning(thread: RequestThread) -> str:
    """Who said what, in the order in which it was said."""
    if thread.notes:
        return "; then ".join(thread.notes)
    return "it adds nothing to what is known" if thread.requests else "nothing in it asks for a shift"
