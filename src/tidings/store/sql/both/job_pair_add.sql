-- Two systems of a tenant, made known.
insert into job_pairs (tenant, source, target) values (:tenant, :source, :target) on conflict do nothing
