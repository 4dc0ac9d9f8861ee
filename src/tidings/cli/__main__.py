"""Run the program as `python -m tidings.cli`."""

from . import main

main()
