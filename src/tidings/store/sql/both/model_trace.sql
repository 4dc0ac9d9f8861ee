-- The calls that one message caused, oldest first.
select id, at, trace, key, attempt, prompt, version, prompt_hash, input_hash, endpoint, model, settings, state, raw,
  parsed, tokens_in, tokens_out, cost, ms, error
from model_calls where trace = :trace order by id limit :limit
