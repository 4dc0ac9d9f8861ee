-- What models were asked because of these messages, in order.
-- Own file: JSON as rows.
select id, trace, at, prompt, version, model, state, tokens_in, tokens_out, cost, ms, error
from model_calls where trace in (select json_array_elements_text(cast(:traces as json))) order by id
