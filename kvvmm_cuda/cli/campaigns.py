"""A run, from its options to its exit code: here or in workers, with what is told and saved."""

import secrets
import sys
from functools import partial

import click
from attrs import evolve, frozen

from kvvmm_cuda.cli.choosing import Chosen, choose
from kvvmm_cuda.cli.earlier import again
from kvvmm_cuda.cli.options import DEFAULT_SECONDS, Asked
from kvvmm_cuda.cli.printing import around_text, memory_text, progress, result_text, say
from kvvmm_cuda.cli.saving import Places, places, save_findings, save_results
from kvvmm_cuda.cli.trying import chosen_driver, chosen_subject
from kvvmm_cuda.cli.version import version
from kvvmm_cuda.drivers import DriverUnavailable
from kvvmm_model.conformance.campaign import campaign
from kvvmm_model.conformance.report import Around, Earlier, Machine, closing_line, exit_code
from kvvmm_model.conformance.results import Plan, Result
from kvvmm_model.conformance.stopping import terminable
from kvvmm_model.conformance.subject import MakeSubject
from kvvmm_model.conformance.worker_campaign import Casualties, supervised
from kvvmm_model.conformance.worker_job import Place, Spell
from kvvmm_model.conformance.worker_launch import Launch, WorkerDeclined

__all__ = ["run"]

_COMMAND = (sys.executable, "-P", "-m", "kvvmm_cuda.cli.worker")
"""A worker; ``-P``: a directory called ``cuda`` where the command is run is not the bindings."""


@frozen
class _Setting:
    """What a run needs besides its options; ``make`` is None where a worker runs it."""

    form: str
    seed: int
    chosen: Chosen
    make: MakeSubject | None
    launch: Launch
    place: Place
    where: Places


def run(form: str, asked: Asked) -> int:
    """Run a form; the exit code."""
    chosen = chosen_driver(asked.driver, asked.device)
    say(f"driver: {chosen.name}: {chosen.why}")
    try:
        setting = _setting(form, asked, chosen)
        say(f"{form}: seed {setting.seed}, faults {'on' if asked.faults else 'off'}")
        machine = _machine(chosen)
        with terminable():
            if setting.make is None:
                chosen.close()  # the device is the workers' now, and its context can be lost there
            earlier = _earlier(setting)
            result, casualties = _run(setting, asked)
            machine = evolve(machine, free_bytes_after=_free_after(chosen, setting, asked))
    except WorkerDeclined as error:
        raise click.UsageError(str(error)) from error
    finally:
        chosen.close()
    around = save_findings(result, Around(casualties=casualties, earlier=earlier), setting.where)
    _tell(result, machine, around, setting.where)
    return exit_code(result, around)


def _setting(form: str, asked: Asked, chosen: Chosen) -> _Setting:
    unit = chosen.granularity_bytes
    if asked.limit is not None and asked.limit < unit:
        raise click.UsageError(
            f"--limit {asked.limit} is less than one granule: give at least {unit} bytes"
        )
    worker = chosen.name != "sim" if asked.worker is None else asked.worker
    seed = secrets.randbelow(1 << 32) if asked.seed is None else asked.seed
    return _Setting(
        form=form,
        seed=seed,
        chosen=chosen,
        make=None if worker else chosen_subject(asked.subject),
        launch=Launch(_COMMAND, asked.patience, asked.restarts, asked.trials),
        place=Place(asked.subject, chosen.name, asked.device),
        where=places(asked, form, seed),
    )


# --- here or in workers -------------------------------------------------------------------------


def _run(setting: _Setting, asked: Asked) -> tuple[Result, Casualties | None]:
    endless = asked.seconds is None and asked.count is None
    seconds = DEFAULT_SECONDS if endless else asked.seconds
    most = None if asked.limit is None else asked.limit // setting.chosen.granularity_bytes
    with progress() as show:
        if setting.make is None:
            spell = Spell(setting.place, setting.form, setting.seed, asked.faults)
            spell = evolve(spell, seconds=seconds, count=asked.count, most=most)
            return supervised(spell, setting.launch, show, partial(click.echo, err=True))
        plan = Plan(
            setting.make,
            setting.chosen.open_driver,
            setting.chosen.granularity_bytes,
            setting.seed,
            faults=asked.faults,
            seconds=seconds,
            count=asked.count,
            most=most,
        )
        return campaign(setting.form, plan, show), None


def _earlier(setting: _Setting) -> tuple[Earlier, ...]:
    findings = setting.where.findings
    if findings is None:
        return ()
    found: list[Earlier] = []
    for each in again(findings, setting.chosen, setting.make, setting.launch, setting.place):
        say(f"earlier: {each.name}: {each.verdict}: {each.words}")
        found.append(each)
    return tuple(found)


# --- the machine --------------------------------------------------------------------------------


def _machine(chosen: Chosen) -> Machine:
    if chosen.device is None:
        return Machine(chosen.name, version())
    facts = chosen.device.describe()
    return Machine(
        chosen.name,
        version(),
        gpu=facts["gpu"],
        gpu_uuid=facts["uuid"],
        driver_version=facts["driver_version"],
        cuda_version=facts["cuda_version"],
        bindings_version=facts["bindings_version"],
        free_bytes_before=chosen.free_bytes(),
    )


def _free_after(chosen: Chosen, setting: _Setting, asked: Asked) -> int | None:
    """Free memory now that no worker is left, as the same kind of process saw it before."""
    if setting.make is not None or chosen.device is None:
        return chosen.free_bytes()
    try:
        anew = choose(chosen.name, asked.device)
    except DriverUnavailable:
        return None
    try:
        return anew.free_bytes()
    finally:
        anew.close()


# --- what is told -------------------------------------------------------------------------------


def _tell(result: Result, machine: Machine, around: Around, where: Places) -> None:
    """Files first, for a pipe may break; the closing line last."""
    told = [result_text(result), around_text(result, around), memory_text(machine)]
    if result.void:
        told.append(f"\nVOID, this proves nothing: {result.void}")
    line = closing_line(result, around.casualties)
    table = "\n".join([*(text for text in told if text), line])
    save_results(result, machine, around, table, where)
    say(table)
