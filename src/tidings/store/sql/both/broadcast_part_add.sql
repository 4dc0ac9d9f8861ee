-- More recipients of one part.
insert into broadcast_parts (lot, part, zone, total) values (:lot, :part, :zone, :added)
on conflict (lot, part) do update set total = broadcast_parts.total + excluded.total
