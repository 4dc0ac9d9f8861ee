-- A call to a model, written down before it is made.
insert into model_calls (at, trace, key, attempt, prompt, version, prompt_hash, input_hash, endpoint, model, settings)
values (:at, :trace, :key, :attempt, :prompt, :version, :prompt_hash, :input_hash, :endpoint, :model, :settings)
returning id
