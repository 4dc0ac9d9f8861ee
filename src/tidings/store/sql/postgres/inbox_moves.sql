-- How these ended, as far as their tasks have moved: a lost claim changes nothing.
-- Own file: a list goes in as JSON, which each database reads in its own way.
update inbox i set ended = g.ended, reason = g.reason
from json_to_recordset(cast(:moves as json)) g(task bigint, claim_no int, state text, ended text, reason text)
  join tasks t on t.id = g.task
where i.task = g.task and i.ended is null and t.claim_no = g.claim_no and t.state = g.state
