-- The roster by name, from a place on.
select tenant, source, sender, name, squad, role, changed_at from roster
where tenant = :tenant and (name, sender, source) > (:after_name, :after_sender, :after_source)
  and (cast(:squad as text) is null or squad = :squad)
order by name, sender, source limit :limit
