-- Versions of a template, newest first.
select version, content, variables, created_at from template_versions
where template = :template and version < :before
order by version desc limit :limit
