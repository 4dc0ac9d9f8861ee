-- How many messages of a tenant's quota of one day are taken.
select n from tenant_days where tenant = :tenant and day = :day
