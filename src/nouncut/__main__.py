"""``python -m nouncut`` is the command ``nouncut``."""

from nouncut.cli import main

if __name__ == "__main__":
    main()
