-- A secret of the engine itself; the first one stays.
insert into secrets (name, value) values (:name, :value) on conflict (name) do nothing
