-- How these ended, as far as their tasks have moved: a lost claim changes nothing.
-- Own file: a list goes in as JSON, which each database reads in its own way.
update inbox set ended = g.value ->> 'ended', reason = g.value ->> 'reason'
from json_each(:moves) g, tasks t
where inbox.task = g.value ->> 'task' and inbox.ended is null and t.id = g.value ->> 'task'
  and t.claim_no = g.value ->> 'claim_no' and t.state = g.value ->> 'state'
