-- Calls, newest first, from before a place.
select id, at, trace, key, attempt, prompt, version, prompt_hash, input_hash, endpoint, model, settings, state, raw,
  parsed, tokens_in, tokens_out, cost, ms, error
from model_calls where id < cast(:before as bigint) order by id desc limit :limit
