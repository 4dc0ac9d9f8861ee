-- What claimed tasks are to do to a calendar. Own file: a list goes in as an array in memory.
select task, key, plan, tenant, calendar, day, squad, action, begins, ends, conversation, state, pre, expected, reported
from effects where task in (select value from carray(:ids))
