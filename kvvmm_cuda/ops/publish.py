"""publish: an owner's leading memory becomes a prefix.  Makes no driver call."""

from collections.abc import Sequence

from kvvmm_cuda.checks import byte_range, first_hole, named, quarantined, rights_unknown, stale
from kvvmm_cuda.handle import Handle
from kvvmm_cuda.records import Mapping, Prefix, Records, Reservation
from kvvmm_model.vocabulary import Done, Outcome, Refusal, Refused, Standing, refused


def publish(records: Records, reservation: object, size_bytes: object) -> Outcome:
    """Publish the whole handles in the first ``size_bytes``; ``Done`` carries the serial."""
    # REFUSALS
    found = named(records, reservation)
    if isinstance(found, Refused):
        return found
    with found.lock:
        if found.standing is not Standing.OPEN:
            return stale(reservation)
        wanted = byte_range(records, found, 0, size_bytes)
        if isinstance(wanted, Refused):
            return wanted
        unit = records.settings.granularity_bytes
        end = wanted[1] // unit
        leading = found.overlapping(0, max(1, end))
        barred = _straddling(unit, leading, end)
        if barred is None:
            barred = (
                quarantined(records, leading)
                or rights_unknown(records, leading)
                or _repeated(unit, leading)
                or _hole(unit, leading, end)
            )
        if barred is not None:
            return barred
        # STEPS: none.
        # LEDGER: the prefix holds a reference on each of its handles.
        return Done(_hold(records, found, leading))
        # UNWIND: nothing to undo.


def _straddling(unit: int, leading: Sequence[Mapping], end: int) -> Refused | None:
    """No handle reaches over the end, and at least one window lies before it."""
    last = leading[-1] if leading else None
    if last is not None and last.end > end:
        return refused(
            Refusal.STRADDLING, fits_bytes=last.window * unit, next_bytes=last.end * unit
        )
    return refused(Refusal.STRADDLING, fits_bytes=0, next_bytes=unit) if end == 0 else None


def _repeated(unit: int, leading: Sequence[Mapping]) -> Refused | None:
    """No handle lies there twice."""
    seen: set[Handle] = set()
    for mapping in leading:
        if mapping.handle in seen:
            return refused(Refusal.REPEATED, fits_bytes=mapping.window * unit)
        seen.add(mapping.handle)
    return None


def _hole(unit: int, leading: Sequence[Mapping], end: int) -> Refused | None:
    """Every window up to the end is backed."""
    hole = first_hole(leading, end)
    return refused(Refusal.NOT_COMMITTED, offset_bytes=hole * unit) if hole is not None else None


def _hold(records: Records, found: Reservation, leading: Sequence[Mapping]) -> int:
    with records.lock:
        records.last_prefix += 1
        made = Prefix(records.last_prefix, found, tuple(mapping.handle for mapping in leading))
        records.prefixes[made.serial] = made
        found.unsealed.append(made)
        for handle in made.handles:
            handle.references += 1  # mapped as well, so that nothing is held by this alone
    return made.serial
