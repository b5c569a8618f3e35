"""Mappings that lie side by side."""

from collections.abc import Iterable

from kvvmm_cuda.records import Mapping


def contiguous(mappings: Iterable[Mapping]) -> list[list[Mapping]]:
    """Mappings in window order, as runs without a gap."""
    runs: list[list[Mapping]] = []
    end = -1
    for mapping in mappings:
        if mapping.window == end:
            runs[-1].append(mapping)
        else:
            runs.append([mapping])
        end = mapping.end
    return runs
