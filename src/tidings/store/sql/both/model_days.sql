-- What was spent from a day on, newest day first.
select day, model, prompt, version, calls, tokens_in, tokens_out, cost from model_days
where day >= :since order by day desc, model, prompt, version limit :limit
