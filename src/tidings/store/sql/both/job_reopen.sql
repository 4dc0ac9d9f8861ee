-- Open records again in a batch of their own: what was set aside, or waited.
update job_records set state = 'ready', batch = :batch, due_at = 0, claimed_at = null, tries = '{}', failure = null,
  field = null,
  fingerprint = null, reason = null, changed_at = coalesce(cast(:now as bigint), tidings_now())
where seq in (select seq from job_records
              where job = :job and fingerprint is not null and type = :type and round = :round and seq > :after and seq <= :last
                and (state = :state or (cast(:state as text) is null and state in ('rejected', 'failed', 'conflict',
                  'waiting')))
                and (cast(:fingerprint as text) is null or fingerprint = :fingerprint) and raw is not null
                and (cast(:tag as text) is null or batch = :tag)
              order by seq limit :limit)
returning seq
