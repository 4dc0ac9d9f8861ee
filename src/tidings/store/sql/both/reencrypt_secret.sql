-- A secret of the engine itself under another key, unless somebody changed it meanwhile.
update secrets set value = :value where name = :id and value = :before returning name
