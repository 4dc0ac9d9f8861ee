"""Human handoff: what needs a person, the cases, and the messages to the admins.

cases: cases that a person claims, answers, hands back or closes; notices and their acknowledgement.
failed_messages: opens a case when an inbound message has failed for good.
notifier: sends notices to the admins as outbound messages.
reasons: the reasons for an escalation, and the text of its notice. Pure.
writer: writes the case and the notice of an escalation in the transaction that caused it.
"""
