"""Human handoff: what needs a person, the cases, and the messages to the admins.

cases: cases that a person claims, answers, hands back or closes; notices and their acknowledgement.
failed_messages: opens a case when an inbound message has failed for good.
notifier: sends notices to the admins as outbound messages.
reasons: the reasons for an escalation, the text of its notice, and the steps that write both. Pure.
"""
