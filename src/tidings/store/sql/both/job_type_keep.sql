-- What stays of a type's records: how many stood where.
update job_types set counts = :counts where job = :job and type = :type
