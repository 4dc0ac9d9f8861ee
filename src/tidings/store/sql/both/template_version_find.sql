-- One version of a template.
select version, content, variables, created_at from template_versions
where template = :template and version = :version
