-- What claimed tasks are to do to a calendar. Own file: arrays.
select task, key, plan, tenant, calendar, day, squad, action, begins, ends, conversation, state, pre, expected, reported
from effects where task = any(:ids::bigint[])
