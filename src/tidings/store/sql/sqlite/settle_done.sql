-- The common case of settle: done without a doubt. A fence is the id and the last 16 bits of its claim number.
-- Own file: a list goes in as an array in memory.
update tasks set state = 'done', category = null, node = null, changed_at = :now
where id in (select value >> 16 from carray(:fences)) and state = 'processing' and node = :node
  and (id << 16 | (claim_no & 65535)) in (select value from carray(:fences))
