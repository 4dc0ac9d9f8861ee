-- Rate limits of API keys.
update api_keys set
  free_at = case when free_at > :at
    then free_at - :back else free_at end
where free_at > :at
