"""The bench: this engine, its best peers and the raw limits, in one run on one machine.

`python -m bench` prints a table of ratios and, as its last line, the same as one JSON object.
"""
