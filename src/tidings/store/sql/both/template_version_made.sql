-- Which version one call made: a twin of the same moment and content is as good.
select version from template_versions
where template = :template and created_at = :at and content = :content and variables = :variables
order by version desc limit 1
