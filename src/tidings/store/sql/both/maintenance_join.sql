-- Make a duty known.
insert into maintenance (name) values (:name) on conflict (name) do nothing
