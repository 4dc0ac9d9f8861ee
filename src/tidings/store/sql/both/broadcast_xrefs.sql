-- The groups that have broadcasts, by name; a loose walk along their index.
with recursive found(xref) as (
  select min(xref) from broadcasts where tenant = :tenant and xref is not null and xref > :after
  union all
  select (select min(b.xref) from broadcasts b where b.tenant = :tenant and b.xref is not null and b.xref > f.xref)
  from found f where f.xref is not null
)
select xref from found where xref is not null limit :limit
