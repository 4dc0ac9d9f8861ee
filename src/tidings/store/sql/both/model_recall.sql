-- The first answer to exactly this question.
select raw from model_calls where key = :key and state = 'answered' order by id limit 1
