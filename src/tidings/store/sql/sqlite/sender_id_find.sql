-- The known addresses of these user ids.
-- Own file: a list goes in as JSON, which each database reads in its own way.
select s.user_id, s.address from json_each(:user_ids) g
  cross join sender_ids s where s.source = :source and s.user_id = g.value
