-- What was done to take a command back, newest first.
select key, plan, state from effects where undoes = :key order by task desc
