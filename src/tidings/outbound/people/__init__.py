"""People: contacts, lists, opt-outs, and how they come in."""
