"""`python -m leadline` is the command `leadline`."""

from leadline.cli import main

if __name__ == "__main__":
    main()
