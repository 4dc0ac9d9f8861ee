-- What a model answered, and what was made of it. No row back: it was written before.
update model_calls set state = 'answered', raw = :raw, parsed = :parsed, error = :error, tokens_in = :tokens_in,
  tokens_out = :tokens_out, cost = :cost, ms = :ms
where id = :id and state = 'asked'
returning id
