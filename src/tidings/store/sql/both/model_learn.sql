-- Remember the request dialects that an endpoint's models accept.
update model_endpoints set dialects = :dialects where name = :name
