"""``python -m freestone`` is the command line tool."""

from freestone.cli import main

if __name__ == "__main__":
    main()
