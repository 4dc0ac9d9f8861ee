"""The language model: prompts, any OpenAI-compatible endpoint, the journal of calls, the ladder."""
