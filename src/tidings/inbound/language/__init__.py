"""Rule-based understanding of shift messages: a grammar and a classifier, offline and deterministic. Pure.

    normalization (typos, numbers) → scanner (phrases, day_phrases) → spans
        → statements (clauses, moods, subjects) → resolution → time_windows → parser → rule_interpreter

agreement: combines the results of parser and classifier; where they disagree, a confirmation is needed.
classifier: a linear classifier: actions, and the days, hours and squads that belong to them.
clauses: splits a sentence into clauses with one act each.
confidence: measured confidence of each kind of answer.
day_phrases: days as people name them: "sat", "tomorrow", "the 5th", "in two days".
features: a message as tokens, and the features of the classifier.
holidays: holidays named instead of a date.
language_detection: detects text in another script or language.
moods: the mood of a sentence: statement, question, condition, past.
numbers: number words as digits.
normalization: one spelling: lower case, full forms, corrected typos, no greetings, thanks and wishes.
parser: parses one message into requests.
pattern_literals: literals that a text must contain for a pattern to match; a prefilter.
phrases: phrases that state an action, in the order in which they are tried.
relation: decides whether a message continues an open request.
resolution: completes statements from their neighbors: fragments, missing days, pronouns.
rule_interpreter: the interpreter that answers by these rules.
scanner: cuts a text into tokens.
shift_words: what "night" or "morning" means here (a setting).
spans: joins clock times and days into ranges.
statements: sentences as statements: who wants what, when.
subjects: detects subjects that are not a squad.
tables: the tables of patterns and words.
threads: slot filling over a whole thread; later lines may correct earlier ones.
time_windows: hours on days as windows of operational days, on the grid.
tokens: the token types.
typos: corrects typing errors.
weights: the weights of the classifier (weights.tsv).
"""
