"""Completes statements from their neighbors: fragments, missing days and squads, pronouns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..domain import ShiftAction
from .statements import DayHours, Sentence, ShiftStatement, with_more
from .tokens import Act, DayMention

PURE = 2
"""The number of unrelated words from which a fragment or a phrase such as "nobody" does not count."""


def resolve_statements(parts: Sequence[Sentence]) -> list[ShiftStatement]:
    """Return the statements with an act, each with its day, hours and squad as far as known."""
    parts = list(_resolved(parts))
    beside: list[ShiftStatement] = []
    return _inherited(_placed(_changing(_merged(parts, beside)), beside))


_KEEPS = ("keep", "leave")


def _changing(statements: Sequence[ShiftStatement]) -> list[ShiftStatement]:
    """Drop statements about what stays: "take us off sunday night, keep us on saturday"."""
    changes = [s for s in statements if s.act and s.act.action is not ShiftAction.ADD]
    if not changes:
        return list(statements)
    return [s for s in statements if s in changes or not (s.act and s.act.written.startswith(_KEEPS))]


def is_owned(statement: ShiftStatement) -> bool:
    """Return whether the statement has a squad or "we"."""
    return bool(statement.squads) or statement.is_ours


def _resolved(parts: Sequence[Sentence]) -> Iterator[Sentence]:
    """Resolve "they" to the last squad: "42 just phoned. They have no crew"."""
    named: tuple[str, ...] = ()
    for part in parts:
        statements: list[ShiftStatement] = []
        for statement in part.statements:
            if statement.is_theirs and not is_owned(statement) and named:
                statement = replace(statement, squads=named, is_theirs=False)  # noqa: PLW2901
            named = statement.squads or named
            statements.append(statement)
        yield replace(part, statements=tuple(statements))


def _placed(statements: Sequence[ShiftStatement], beside: Sequence[ShiftStatement]) -> list[ShiftStatement]:
    """Give a request without a day the only day of the message: "School is closed Friday! 54 will cover"."""
    days = {day.date for statement in beside for day in statement.days}
    if len(days) != 1 or any(statement.days for statement in statements):
        return list(statements)
    light = next(statement for statement in beside if statement.days)
    return [_in_light(statement, light) for statement in statements]


def _in_light(statement: ShiftStatement, light: ShiftStatement) -> ShiftStatement:
    if statement.act is None or statement.act.action is None:
        return statement
    pairs = _with_days(statement.pairs, light.days) if statement.is_placed else light.pairs
    is_ours = statement.is_ours or (light.is_ours and not statement.squads)
    squads = () if statement.is_ours else light.squads
    return replace(statement, pairs=pairs, squads=statement.squads or squads, is_ours=is_ours)


def _merged(parts: Sequence[Sentence], beside: list[ShiftStatement]) -> list[ShiftStatement]:
    """Merge fragments into the statements that they continue."""
    merged: list[ShiftStatement] = []
    waiting: list[ShiftStatement] = []
    asked: ShiftStatement | None = None
    for part in parts:
        for statement in part.statements:
            if _asks_nothing(part, statement):
                asked = statement if part.mood.is_question and statement.days else asked
                if _gives_light(part, statement):
                    beside.append(statement)
            elif statement.act is None:
                if statement.is_placed and (statement.noise >= PURE or part.stays):
                    beside.append(statement)
                elif statement.is_placed and merged:
                    go_on = _corrected if part.corrects else with_more
                    merged[-1] = go_on(merged[-1], statement)
                elif statement.is_placed:
                    waiting.append(statement)
            else:
                merged.append(_led(statement, waiting, asked))
                waiting, asked = [], None
    return merged


def _gives_light(part: Sentence, statement: ShiftStatement) -> bool:
    """Return whether a request may take the day of this statement; not of a question or condition."""
    if statement.act is not None and statement.act.is_denied:
        return False
    mood = part.mood
    is_firm = not (mood.is_told or mood.is_question or mood.is_condition)
    return statement.is_placed and (part.leads or is_firm)


def _corrected(statement: ShiftStatement, fragment: ShiftStatement) -> ShiftStatement:
    """Apply a correction: "We can cover saturday morning. Correction: saturday afternoon"."""
    if len(statement.pairs) > 1 or len(fragment.pairs) > 1:
        return replace(statement, is_idle=True)
    (old,), (new,) = statement.pairs or (DayHours((), ()),), fragment.pairs
    pair = DayHours(new.days or old.days, new.slots or old.slots)
    return replace(statement, pairs=(pair,), squads=fragment.squads or statement.squads)


def _asks_nothing(part: Sentence, statement: ShiftStatement) -> bool:
    is_of_things = statement.act is None and part.mood.about_things
    return part.mood.asks_nothing or statement.is_idle or is_of_things


def _led(statement: ShiftStatement, waiting: Sequence[ShiftStatement], asked: ShiftStatement | None) -> ShiftStatement:
    """Complete a statement from earlier fragments, or from the question that it answers."""
    if statement.days:
        return statement
    for before in waiting:
        statement = with_more(statement, before)
    takes_back = statement.act is not None and statement.act.action is ShiftAction.REMOVE
    if asked and not statement.is_placed and (is_owned(statement) or is_owned(asked) or takes_back):
        squads = statement.squads or asked.squads
        return replace(statement, pairs=asked.pairs, squads=squads, is_ours=statement.is_ours or asked.is_ours)
    return statement


def _inherited(statements: Sequence[ShiftStatement]) -> list[ShiftStatement]:
    """Resolve inverted acts, and take missing days and squads from neighboring statements."""
    turned = [s for s in (_turned(s, statements[:i]) for i, s in enumerate(statements)) if s]
    turned = _ordered(turned)
    kept = _shared(_echoed(turned)) or turned[:1]
    squads: tuple[str, ...] = ()
    result: list[ShiftStatement] = []
    for i, statement in enumerate(kept):
        if not statement.squads and not statement.is_ours:
            statement = replace(statement, squads=squads)  # noqa: PLW2901
        if not statement.days:
            near = next((s.days for s in [*reversed(result), *kept[i + 1 :]] if s.days), ())
            statement = replace(statement, pairs=_with_days(statement.pairs, near))  # noqa: PLW2901
        squads = statement.squads or squads
        result.append(statement)
    return result


def _ordered(statements: Sequence[ShiftStatement]) -> list[ShiftStatement]:
    """Prefer the instruction to the remark before it, which has the time.

    "That's not happening on wednesday, take it off"; "tonight I have a driver, but that makes no crew".
    """
    if len(statements) != 2:
        return list(statements)
    order, sigh = sorted(statements, key=lambda s: s.is_placed)
    if order.is_placed or not sigh.is_placed or order.act is None or sigh.act is None or sigh.act.is_plain:
        return list(statements)
    wants, sighs = order.act.action, sigh.act.action
    is_lack = wants is ShiftAction.NO_CREW and order.act.is_plain and sighs is ShiftAction.ADD and not is_owned(sigh)
    if not (is_lack or (wants is ShiftAction.REMOVE and sighs is ShiftAction.NO_CREW)):
        return list(statements)
    is_ours = order.is_ours or sigh.is_ours
    return [replace(order, pairs=sigh.pairs, squads=order.squads or sigh.squads, is_ours=is_ours)]


def _echoed(statements: Sequence[ShiftStatement]) -> list[ShiftStatement]:
    """Copy the hours to an echo: "35 needs coverage tonight, 54 has it"."""
    result: list[ShiftStatement] = []
    for statement in statements:
        echoes = statement.act is not None and _echoes(statement.act) and not statement.is_placed
        before = next(
            (s for s in reversed(result) if s.act and s.act.action is ShiftAction.NO_CREW and s.is_placed), None
        )
        if echoes and before and is_owned(statement) and statement.squads != before.squads:
            result.append(replace(statement, pairs=before.pairs))
        else:
            result.append(statement)
    return result


def _echoes(act: Act) -> bool:
    """Return whether an act refers to earlier hours: "54 has it", "54 will cover"."""
    return act.echoes or (act.action is ShiftAction.ADD and act.written.endswith(("cover", "covering")))


def _shared(statements: Sequence[ShiftStatement]) -> list[ShiftStatement]:
    """Keep statements with a time; others pass their owner to the same action ("full crew, we are in")."""
    result = [s for s in statements if s.is_placed]
    for giver in (s for s in statements if not s.is_placed and s.act):
        for i, taker in enumerate(result):
            if giver.act and taker.act and giver.act.action is taker.act.action:
                result[i] = _given(giver, giver.act, taker, taker.act)
    return result


def _given(giver: ShiftStatement, gives: Act, taker: ShiftStatement, takes: Act) -> ShiftStatement:
    """Copy owner and explicitness from a statement without a time."""
    if gives.is_plain and not takes.is_plain:
        taker = replace(taker, act=takes._replace(is_plain=True))
    if takes.is_terse and is_owned(giver):
        taker = replace(taker, act=takes._replace(is_terse=False))
    if not is_owned(giver):
        return taker
    if not is_owned(taker) and not taker.is_theirs:
        return replace(taker, squads=giver.squads, is_ours=giver.is_ours, is_mine=False, is_foreign=False)
    if taker.is_ours and taker.is_mine:
        return replace(taker, is_mine=False)
    if giver.squads and taker.squads and gives.is_plain:
        return replace(taker, squads=tuple(dict.fromkeys((*giver.squads, *taker.squads))))
    return taker


def _turned(statement: ShiftStatement, before: Sequence[ShiftStatement]) -> ShiftStatement | None:
    act = statement.act
    if act is None or not act.turns:
        return statement
    added = any(s.act and s.act.action is ShiftAction.ADD for s in before)
    if not added and not act.written.startswith("can"):
        return None
    return replace(statement, act=Act(ShiftAction.NO_CREW, added, act.written))


def _with_days(pairs: Sequence[DayHours], days: Sequence[DayMention]) -> tuple[DayHours, ...]:
    return tuple(DayHours(tuple(days), pair.slots) for pair in pairs) or (DayHours(tuple(days), ()),)
