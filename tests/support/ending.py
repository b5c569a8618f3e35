"""The end of everything: whatever a test has done, nothing is left but what is listed."""

from kvvmm_model.vocabulary import Standing

from support.bench import Bench, close, reclaim, retire, trim


def everything_ends(bench: Bench) -> None:
    """Reclaim, close, retire and trim without faults; then the driver holds nothing.

    What an injected fault has hidden is ended first by ``settle``, for nobody can name it.
    """
    _ = bench.done(reclaim())
    for view in list(bench.observe().ranges.values()):
        if view.standing is Standing.OPEN:
            _ = bench.done(close(view.reservation))
    for prefix in list(bench.observe().prefixes):
        _ = bench.done(retire(prefix))
    _ = bench.done(trim(1 << 20))
    _ = bench.done(reclaim())
    now = bench.observe()
    ledger = now.ledger
    assert ledger.charged == ledger.quarantined + ledger.unattributed
    assert (ledger.mapped, ledger.held, ledger.pooled) == (0, 0, 0)
    assert {view.standing for view in now.ranges.values()} <= {Standing.QUARANTINED}
    bench.settle()
    assert bench.physical == 0
    assert dict(bench.driver.live_ranges()) == {}
