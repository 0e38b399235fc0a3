"""`python -m tnsum` is the command `tnsum`."""

from tnsum.cli import main

if __name__ == "__main__":
    main()
