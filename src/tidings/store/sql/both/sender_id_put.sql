-- The address of a user id; the newest wins.
insert into sender_ids (source, user_id, address, changed_at) values (:source, :user_id, :address, :at)
on conflict (source, user_id) do update set address = excluded.address, changed_at = excluded.changed_at
