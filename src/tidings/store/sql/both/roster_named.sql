-- Who is called so, in any capitals.
select source, sender, name, squad, role from roster
where tenant = :tenant and lower(name) = lower(:called) and source in (:source, '') order by sender, source limit 2
