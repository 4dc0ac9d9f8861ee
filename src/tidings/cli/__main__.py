"""`python -m tidings.cli`, where the script `tidings` is not on the path."""

from . import main

main()
