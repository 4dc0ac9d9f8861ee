-- What a day has cost so far.
select coalesce(cast(sum(cost) as bigint), 0) as cost from model_days where day = :day
