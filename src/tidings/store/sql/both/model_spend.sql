-- Add one answered call to what its day has cost.
insert into model_days as d (day, model, prompt, version, calls, tokens_in, tokens_out, cost)
values (:day, :model, :prompt, :version, 1, :tokens_in, :tokens_out, :cost)
on conflict (day, model, prompt, version) do update set calls = d.calls + 1,
  tokens_in = d.tokens_in + excluded.tokens_in, tokens_out = d.tokens_out + excluded.tokens_out,
  cost = d.cost + excluded.cost
