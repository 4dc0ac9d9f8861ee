-- Make a source known; what is known of it stays.
insert into sources (name, kind, known_at) values (:name, :kind, coalesce(cast(:now as bigint), tidings_now()))
on conflict (name) do nothing
