"""Print the shell block of a README that has a given number, from 1."""

import re
import sys
from pathlib import Path

BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def main(readme: str, number: str) -> int:
    """Print the block to standard output; the exit status."""
    blocks = BLOCK.findall(Path(readme).read_text(encoding="utf-8"))
    if not 1 <= int(number) <= len(blocks):
        print(f"{readme} has {len(blocks)} sh blocks, no number {number}", file=sys.stderr)
        return 1
    print(blocks[int(number) - 1], end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
