"""Training and evaluation of the shift language; not part of the distribution."""
