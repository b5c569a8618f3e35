"""Where the ``kvvmm`` command begins; it needs nothing that may be missing.

Exit codes: 0 all well, 1 a divergence, 2 nothing was proved or asked for properly, 3 the driver or
the manager died or hung, 130 Ctrl-C.
"""

import sys
import traceback
from collections.abc import Sequence

from kvvmm_cuda.cli.doctor import doctor

__all__ = ["main"]

_NEEDED = frozenset({"click", "hypothesis", "rich"})


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command, and exit with its code."""
    sys.exit(_code(arguments))


def _code(arguments: Sequence[str] | None) -> int:
    try:
        from kvvmm_cuda.cli.running import code  # noqa: PLC0415 - its tools may be missing
    except ModuleNotFoundError as error:
        if error.name not in _NEEDED:
            raise
        given = sys.argv[1:] if arguments is None else list(arguments)
        if given[:1] == ["doctor"]:
            return doctor(as_data="--json" in given)
        print(
            f"kvvmm: {error.name} is not installed; the command needs:"
            " python -m pip install 'kvvmm[fuzz]'",
            file=sys.stderr,
        )
        return 2
    except KeyboardInterrupt:
        return 130
    try:
        return code(arguments)
    except Exception:  # noqa: BLE001 - Python's own exit code would read as a divergence
        traceback.print_exc()
        return 2


if __name__ == "__main__":
    main()
