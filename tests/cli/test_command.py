"""The command: options, output, files and exit codes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import kvvmm_cuda
from cli.deadly import Wide
from kvvmm_cuda.cli import commands
from kvvmm_model.conformance import campaign
from kvvmm_model.conformance.canary import Canary
from kvvmm_model.conformance.run import fails, simulated
from kvvmm_model.trace import load

CLOSING = re.compile(
    r"kvvmm: ops=(\d+) faults=(\d+)/(\d+) states=(\d+)/(\d+) diverged=([01])"
    r" canary=(caught|missed|unfinished)( interrupted=1)?"
)
SEED = "9"
"""Its planted bug is one that either form finds at once."""
WIDE = "--subject=cli.deadly:Wide"

KEYS = [
    "kvvmm_report",
    "form",
    "driver",
    "gpu",
    "gpu_uuid",
    "driver_version",
    "cuda_version",
    "bindings_version",
    "python_version",
    "kvvmm_version",
    "date",
    "seed",
    "seconds",
    "sequences",
    "operations",
    "driver_calls",
    "faults_planned",
    "faults_fired",
    "diverged",
    "canary",
    "canary_caught",
    "never",
    "free_bytes_before",
    "free_bytes_after",
    "calls",
    "outcomes",
    "refusals",
    "fault_points",
    "states",
    "finding",
]


@pytest.fixture(autouse=True)
def _somewhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def kvvmm(*arguments: str) -> Result:
    return CliRunner().invoke(commands.kvvmm, arguments)


def closing(output: str) -> re.Match[str]:
    found = CLOSING.fullmatch(output.rstrip("\n").split("\n")[-1])
    assert found is not None, output
    return found


def start(*arguments: str) -> subprocess.Popen[str]:
    root = str(Path(kvvmm_cuda.__file__).parent.parent)
    return subprocess.Popen(
        [sys.executable, "-m", "kvvmm_cuda.cli.main", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": root},
    )


# --- runs that end well -------------------------------------------------------------------------


def test_soak_exits_0_with_a_closing_line() -> None:
    result = kvvmm("soak", "--driver", "sim", "--count", "2000", "--seed", SEED)
    assert result.exit_code == 0, result.output
    found = closing(result.stdout)
    assert int(found[1]) >= 2000
    assert found[6] == "0"
    assert found[7] == "caught"
    assert "driver: sim" in result.stdout


def test_fuzz_for_two_seconds_exits_0() -> None:
    begin = time.monotonic()
    result = kvvmm("fuzz", "--driver", "sim", "--seconds", "2", "--seed", SEED)
    assert result.exit_code == 0, result.output
    assert time.monotonic() - begin < 15
    assert int(closing(result.stdout)[1]) > 100


def test_soak_without_faults_fires_none() -> None:
    result = kvvmm("soak", "--driver", "sim", "--count", "300", "--seed", SEED, "--no-faults")
    assert result.exit_code == 0, result.output
    assert closing(result.stdout).group(2, 3) == ("0", "0")


@pytest.mark.parametrize("form", ["soak", "fuzz"])
def test_same_seed_and_count_give_the_same_numbers(form: str) -> None:
    arguments = (form, "--driver", "sim", "--count", "800", "--seed", SEED)
    first, second = kvvmm(*arguments), kvvmm(*arguments)
    assert closing(first.stdout)[0] == closing(second.stdout)[0]


def test_report_has_every_key_and_no_gpu_on_the_simulated_driver() -> None:
    result = kvvmm("soak", "--driver=sim", "--count=500", f"--seed={SEED}", "--report=out.json")
    assert result.exit_code == 0, result.output
    report = json.loads(Path("out.json").read_text(encoding="utf-8"))
    assert set(KEYS) <= set(report)
    assert report["kvvmm_report"] == 1
    assert report["gpu"] is report["free_bytes_before"] is report["finding"] is None
    assert report["operations"] == int(closing(result.stdout)[1])
    made = sum(entry["count"] for entry in report["calls"].values())
    assert made == report["driver_calls"]
    assert report["calls"]["map"]["median_us"] > 0


# --- a divergence -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["soak", "fuzz"])
def test_divergence_exits_1_and_leaves_a_trace_that_fails_again(
    form: str,
) -> None:
    result = kvvmm(form, "--driver", "sim", "--count", "99999", "--seed", SEED, WIDE)
    assert result.exit_code == 1, result.output
    assert closing(result.stdout)[6] == "1"
    assert "DIVERGED" in result.stdout
    trace = f"kvvmm-{form}-{SEED}.trace.json"
    assert fails(Wide, simulated, load(Path(trace).read_text(encoding="utf-8"))) is not None

    again = kvvmm("replay", trace, "--driver", "sim", WIDE)
    assert again.exit_code == 1
    assert "DIVERGED" in again.stdout
    assert "address_reserve(" in again.stdout


def test_replay_of_what_does_not_fail_exits_0() -> None:
    soaked = kvvmm("soak", "--driver=sim", f"--seed={SEED}", "--trace=it.json", WIDE)
    assert soaked.exit_code == 1
    result = kvvmm("replay", "it.json", "--driver", "sim")
    assert result.exit_code == 0, result.output
    assert "no divergence" in result.stdout


# --- what proves nothing ------------------------------------------------------------------------


def test_missed_canary_exits_2(monkeypatch: pytest.MonkeyPatch) -> None:
    harmless = Canary("harmless", lambda make: make)

    def only_harmless(*, faults: bool) -> tuple[Canary, ...]:
        _ = faults
        return (harmless,)

    monkeypatch.setattr(campaign, "canaries", only_harmless)
    monkeypatch.setattr(campaign, "CANARY_SEQUENCES", 5)
    result = kvvmm("soak", "--driver", "sim", "--count", "100")
    assert result.exit_code == 2
    assert closing(result.stdout)[7] == "missed"
    assert "VOID" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--limit", "64MB"), "'64MB' is no size"),
        (("--limit", "4096"), "--limit 4096 is less than one granule"),
        (("--seconds", "1", "--count", "2"), "give one of them"),
        (("--seconds", "0"), "--seconds"),
        (("--driver", "metal"), "metal"),
        (("--report", "nowhere/out.json"), "nowhere/out.json cannot be written"),
    ],
)
def test_bad_option_exits_2_and_names_it(arguments: tuple[str, ...], said: str) -> None:
    result = kvvmm("soak", "--driver", "sim", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr


def test_replay_of_no_trace_exits_2() -> None:
    _ = Path("it.json").write_text('{"kvvmm_trace": 99}', encoding="utf-8")
    result = kvvmm("replay", "it.json", "--driver", "sim")
    assert result.exit_code == 2
    assert "version 99" in result.stderr


# --- as a process -------------------------------------------------------------------------------


def test_command_without_its_tools_says_what_to_install(tmp_path: Path) -> None:
    _ = (tmp_path / "click.py").write_text(
        "raise ModuleNotFoundError('no click', name='click')\n", encoding="utf-8"
    )
    root = Path(kvvmm_cuda.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-m", "kvvmm_cuda.cli.main", "soak"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{root}"},
    )
    assert done.returncode == 2
    assert "kvvmm[fuzz]" in done.stderr
    assert "Traceback" not in done.stderr


def test_interrupted_soak_exits_130_soon_with_a_closing_line() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a child keeps "ignored"
    try:
        process = start("soak", "--driver", "sim", "--seconds", "60", "--seed", SEED)
    finally:
        _ = signal.signal(signal.SIGINT, before)
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=5)
    assert process.returncode == 130, err
    found = closing(out)
    assert found[8]
    assert int(found[1]) > 0
    assert "Traceback" not in err


def test_output_into_a_broken_pipe_ends_quietly() -> None:
    process = start("soak", "--driver", "sim", "--count", "200", "--seed", SEED)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait() == 0
