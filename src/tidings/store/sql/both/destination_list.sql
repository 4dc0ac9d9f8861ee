-- The destinations that are left alone, or were lately.
select queue, tenant, host, failures, opened_at, until_at, reason from destinations order by queue, tenant, host
