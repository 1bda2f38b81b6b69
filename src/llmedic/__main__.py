"""Lets `python -m llmedic` do what the `llmedic` command does."""

from llmedic.cli import main

if __name__ == "__main__":
    main.run()
