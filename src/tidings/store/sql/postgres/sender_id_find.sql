-- The known addresses of these user ids.
-- Own file: a list goes in as JSON, which each database reads in its own way.
select s.user_id, s.address from json_array_elements_text(cast(:user_ids as json)) g
  cross join lateral (select * from sender_ids where source = :source and user_id = g.value offset 0) s
