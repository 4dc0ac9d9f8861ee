"""The language model: prompts, any OpenAI-compatible endpoint, rate limit, budget, journal and fallback.

answer_validation: checks an answer against its schema and closed lists (prompt injection). Pure.
chat_completions: request and response bodies of /chat/completions. Pure.
dialect: which API, parameters and values a model accepts, learned from its rejections. Pure.
endpoint: one HTTP call to the endpoint; the switch that forbids remote calls.
errors: why the model gave no answer: unavailable, throttled, over budget, refused, unusable.
factory: builds the interpreter from the settings.
fallback: the fallback chain: the model, then the rules, then a person.
http_response: classifies a response: an answer, a Retry-After, a rejected parameter, a failure. Pure.
journal: every call, recorded before and after it; answers, tokens and cost.
json_schema: the subset of JSON Schema that prompts may use.
model_call: calls and their answers, independent of the API. Pure.
model_client: answers from the journal, or within the daily budget and rate limit from the endpoint.
model_interpreter: the interpreter that asks the model, with one correction of an unusable answer.
prompt: prompt files: loading, checks, hash.
prompt_renderer: renders a prompt; user text is quoted as JSON (prompt injection). Pure.
rate_limiter: rate limit, Retry-After and pause after failures of an endpoint, across processes.
recordings: recorded answers from a cassette or the journal, for replays and tests.
responses_api: request and response bodies of /responses. Pure.
settings: the settings table [inbound.model].
"""
