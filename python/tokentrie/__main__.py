"""`python -m tokentrie`: the command line, for environments where the script is not on the path."""

import sys

from tokentrie.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
