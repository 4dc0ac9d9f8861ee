-- Records that are in the target, without more to say: place, target's id, hash. Own file: a list goes in as JSON, which
-- each database reads in its own way.
update job_records set state = 'written', target_id = r.value ->> 1, hash = r.value ->> 2, due_at = 0, claimed_at = null,
  mapped = null, links = false, failure = null, field = null, fingerprint = null, reason = null,
    changed_at = coalesce(cast(:now as bigint), tidings_now())
from json_array_elements(cast(:rows as json)) r where job_records.seq = cast(r.value ->> 0 as bigint)
