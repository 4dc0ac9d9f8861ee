"""Understanding shift talk without a model: a small grammar, and a mind that answers by rules.

Pure from end to end: a text, the hour and the roster go in, and what was understood comes out.

    spelling (slips, numbers, courtesy) → scanner (phrases, days) → spans
        → statements (clauses, moods, subjects) → merging → timetable → grammar → rules
"""
