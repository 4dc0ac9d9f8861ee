-- What the version says that the template now counts; it is never changed again.
insert into template_versions (template, version, content, variables, created_at)
select id, version, cast(:content as text), cast(:variables as text), cast(:at as bigint)
from templates where id = :id
