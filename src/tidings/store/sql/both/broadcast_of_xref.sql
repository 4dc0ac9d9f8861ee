-- Broadcasts of one group, newest first.
select * from broadcasts
where tenant = :tenant and xref = :xref and id < :before and (cast(:state as text) is null or state = :state)
order by id desc limit :limit
