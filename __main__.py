"""`python -m scrimp` is the command `scrimp`."""

from .cli import main

if __name__ == "__main__":
    main()
