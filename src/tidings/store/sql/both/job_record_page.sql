-- Records of a job in the order in which they were read.
select seq, type, source_id, state, key, target_id, action, changes, failure, field, fingerprint, reason, due_at, changed_at
from job_records
where job = :job and seq > :after and round = :round and (cast(:type as text) is null or type = :type)
  and (cast(:state as text) is null or state = :state) and (cast(:action as text) is null or action = :action)
order by seq limit :limit
