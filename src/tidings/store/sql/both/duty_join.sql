-- Make a duty known.
insert into duties (name) values (:name) on conflict (name) do nothing
