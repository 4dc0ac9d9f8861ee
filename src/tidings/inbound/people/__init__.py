"""People: what admins are told, and the cases that a person takes over."""
