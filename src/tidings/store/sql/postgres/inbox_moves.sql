-- How these ended, as far as their tasks have moved: a lost claim changes nothing. Most ends are there already.
-- Own file: a list goes in as JSON, which each database reads in its own way.
with moved as materialized (
  select i.n, g.ended, g.reason
  from json_to_recordset(cast(:moves as json)) g(task bigint, claim_no int, state text, ended text, reason text)
    cross join lateral (select n from inbox where task = g.task and ended is null offset 0) i
    cross join lateral (select id from tasks
      where id = g.task and claim_no = g.claim_no and state is not distinct from g.state offset 0) t
)
update inbox i set ended = (select ended from moved where n = i.n), reason = (select reason from moved where n = i.n)
where i.n = any(array(select n from moved)) and i.ended is null
