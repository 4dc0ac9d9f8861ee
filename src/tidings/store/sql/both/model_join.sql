-- Make an endpoint known, or change its rate.
insert into model_endpoints as e (name, interval) values (:name, :interval)
on conflict (name) do update set interval = excluded.interval where e.interval <> excluded.interval
