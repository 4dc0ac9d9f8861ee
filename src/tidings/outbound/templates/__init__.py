"""Templates: contents with variables, in immutable versions.

depth_limit: limits the nesting depth of JSON from callers.
grammar: the allowed subset of Jinja, checked when a template is saved.
jinja_sandbox: the sandboxed Jinja environment: plain values, a few filters, a render budget.
localization: dates and numbers in the recipient's language and time zone.
preview_contacts: the contact that a template is previewed with.
renderer: compiles a template and renders it for each recipient, within its budget.
service: creates, revises, retires, previews and lists templates; fills drafts.
variables: declared variables: types, defaults, and checks of the given values.
"""
