"""publish: an owner's leading memory becomes a prefix.  Makes no driver call."""

from kvvmm_model.refusals import byte_range, named, quarantined, rights_unknown
from kvvmm_model.state import Mapping, Reservation, State, Transition
from kvvmm_model.vocabulary import Done, Refusal, Refused, refused


def publish(state: State, reservation: object, size_bytes: object) -> Transition:
    """Publish the whole handles in the first ``size_bytes``; ``Done`` carries the prefix's serial.

    A part of a window at the end stays private, for memory is shared by whole windows.  Nobody can
    attach the prefix before it is sealed.
    """
    # REFUSALS
    found = named(state, reservation)
    if isinstance(found, Refused):
        return Transition(state, found)
    wanted = byte_range(state, found, 0, size_bytes)
    if isinstance(wanted, Refused):
        return Transition(state, wanted)
    end = wanted[1] // state.settings.granularity_bytes
    leading = [mapping for mapping in found.mappings if mapping.end <= end]
    barred = (
        _straddling(state, found, end)
        or quarantined(state, leading)
        or rights_unknown(state, leading)
        or _repeated(state, leading)
        or _hole(state, leading, end)
    )
    if barred is not None:
        return Transition(state, barred)
    # STEPS: none.
    # LEDGER: the prefix holds a reference on each of its handles; nothing more is charged.
    handles = tuple(mapping.handle for mapping in leading)
    # UNWIND: nothing to undo.
    return Transition(state.published(found.serial, handles), Done(state.next_prefix))


def _straddling(state: State, found: Reservation, end: int) -> Refused | None:
    """No handle reaches over the end, and at least one window lies before it."""
    for mapping in found.mappings:
        if mapping.window < end < mapping.end or (end == 0 and mapping.window == 0):
            return refused(
                Refusal.STRADDLING,
                fits_bytes=state.bytes(mapping.window),
                next_bytes=state.bytes(mapping.end),
            )
    if end == 0:
        return refused(Refusal.STRADDLING, fits_bytes=0, next_bytes=state.bytes(1))
    return None


def _repeated(state: State, leading: list[Mapping]) -> Refused | None:
    """No handle lies there twice, as it does where one prefix was attached twice."""
    seen: set[int] = set()
    for mapping in leading:
        if mapping.handle in seen:
            return refused(Refusal.REPEATED, fits_bytes=state.bytes(mapping.window))
        seen.add(mapping.handle)
    return None


def _hole(state: State, leading: list[Mapping], end: int) -> Refused | None:
    """Every window up to the end is backed."""
    at = 0
    for mapping in leading:
        if mapping.window > at:
            break
        at = mapping.end
    return refused(Refusal.NOT_COMMITTED, offset_bytes=state.bytes(at)) if at < end else None
