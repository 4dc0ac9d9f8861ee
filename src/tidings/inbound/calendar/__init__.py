"""The shift calendar: what a day says, the built-in one, and one behind an address."""
