-- More recipients of one part.
insert into broadcast_parts (group_id, part, timezone, total) values (:group_id, :part, :timezone, :added)
on conflict (group_id, part) do update set total = broadcast_parts.total + excluded.total
