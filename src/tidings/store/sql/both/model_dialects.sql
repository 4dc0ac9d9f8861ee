-- The request dialects that an endpoint's models accept.
select dialects from model_endpoints where name = :endpoint
