"""`python -m pyvosti` is the command line."""

from pyvosti.cli import main

if __name__ == "__main__":
    main()
