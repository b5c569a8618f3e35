"""Run the fuzzers on a real GPU, each in a process of its own, and write one report.

    python tests/gpu/campaign.py --out DIRECTORY [--soak N] [--fuzz N] [--batch N] [--seeds K]

Every run is the ``kvvmm`` command as a user has it.  This process makes no CUDA call: it asks the
management library for free memory before a worker starts and after it has ended, so that what the
worker's process may have left behind would show.
"""

import argparse
import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

STEPS = (
    "address_reserve",
    "create",
    "map",
    "set_access",
    "clear",
    "unmap",
    "release",
    "address_free",
    "fence",
    "query",
    "copy",
)

Json = dict[str, Any]


def free_bytes(device: int) -> int:
    """Free memory as the management library sees it."""
    nvml: Any = import_module("pynvml")  # only where there is a GPU; ships no types
    _ = nvml.nvmlInit()
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(device)
        return int(nvml.nvmlDeviceGetMemoryInfo(handle).free)
    finally:
        _ = nvml.nvmlShutdown()


def settled_free_bytes(device: int, wanted: int) -> int:
    """Free memory, given a moment to come back after a process has ended."""
    for _ in range(50):
        found = free_bytes(device)
        if found >= wanted:
            return found
        time.sleep(0.1)
    return free_bytes(device)


def run(form: str, seed: int, count: int, limit: str, device: int, out: Path) -> Json:
    """One run of the command; its report with what this process saw around it."""
    report = out / f"{form}-{seed}.json"
    before = free_bytes(device)
    command = [sys.executable, "-m", "kvvmm_cuda.cli.main", form]
    options = {
        "--driver": "cuda",
        "--device": device,
        "--count": count,
        "--seed": seed,
        "--limit": limit,
        "--report": report,
        "--trace": out / f"{form}-{seed}.trace.json",
    }
    for name, value in options.items():
        command += [name, str(value)]
    began = time.monotonic()
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    print(f"{form} seed {seed}: {time.monotonic() - began:.0f} s, exit code {ended.returncode}")
    print(ended.stdout.strip().splitlines()[-1:] or ended.stderr[-2000:], flush=True)
    found: Json = json.loads(report.read_text()) if report.exists() else {"seed": seed}
    found["exit_code"] = ended.returncode
    found["free_bytes_before_process"] = before
    found["free_bytes_after_process"] = settled_free_bytes(device, before)
    if ended.returncode:
        found["output"] = (ended.stdout + ended.stderr)[-4000:]
    return found


def summary(runs: list[Json]) -> Json:
    """All runs as one; free memory as the parent saw it around all of them."""
    first = runs[0]
    told = ("gpu", "gpu_uuid", "driver_version", "cuda_version", "bindings_version")
    added = ("seconds", "sequences", "operations", "driver_calls", "faults_planned", "faults_fired")
    return {
        **{key: first.get(key) for key in (*told, "python_version", "kvvmm_version")},
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        **{key: sum(each.get(key, 0) for each in runs) for key in (*added, "diverged")},
        "free_bytes_before": first["free_bytes_before_process"],
        "free_bytes_after": runs[-1]["free_bytes_after_process"],
        "operations_by_policy": _by_policy(runs),
        "calls": {step: _calls(runs, step) for step in STEPS},
        "exit_codes": [each["exit_code"] for each in runs],
        "runs": runs,
    }


def _by_policy(runs: list[Json]) -> dict[str, int]:
    names = {name for each in runs for name in each.get("operations_by_policy", {})}
    return {
        n: sum(r.get("operations_by_policy", {}).get(n, 0) for r in runs) for n in sorted(names)
    }


def _calls(runs: list[Json], step: str) -> Json:
    """The count of all runs; the median of their medians."""
    found = [each["calls"][step] for each in runs if "calls" in each]
    medians = sorted(each["median_us"] for each in found if each["median_us"] is not None)
    return {
        "count": sum(each["count"] for each in found),
        "median_us": medians[len(medians) // 2] if medians else None,
    }


def table(whole: Json) -> str:
    """The summary for people."""
    versions = (
        f"CUDA {whole['cuda_version']}, cuda-bindings {whole['bindings_version']},"
        f" Python {whole['python_version']}, kvvmm {whole['kvvmm_version']}."
    )
    head = (
        "| run | seconds | sequences | operations | driver calls | faults fired | diverged |"
        " canary | free, after less before, in the process | around the process |"
    )
    title = f"# {whole['gpu']}, driver {whole['driver_version']}, {whole['date']}"
    lines = [title, "", versions, "", head, "|---|---|---|---|---|---|---|---|---|---|"]
    for each in whole["runs"]:
        inside = each.get("free_bytes_after", 0) - each.get("free_bytes_before", 0)
        around = each["free_bytes_after_process"] - each["free_bytes_before_process"]
        lines.append(
            f"| {each.get('form')} {each['seed']} | {each.get('seconds')} |"
            f" {each.get('sequences')} | {each.get('operations')} | {each.get('driver_calls')} |"
            f" {each.get('faults_fired')} | {each.get('diverged')} |"
            f" {'caught' if each.get('canary_caught') else 'missed'}: {each.get('canary')} |"
            f" {inside} | {around} |"
        )
    total = (
        f"| **all** | {whole['seconds']:.0f} | {whole['sequences']} | {whole['operations']} |"
        f" {whole['driver_calls']} | {whole['faults_fired']} | {whole['diverged']} | |"
        f" | {whole['free_bytes_after'] - whole['free_bytes_before']} |"
    )
    lines += [
        total,
        "",
        f"Operations by policy: {whole['operations_by_policy']}.",
        "",
        "| driver call | count | median µs |",
        "|---|---|---|",
    ]
    for step, calls in whole["calls"].items():
        lines.append(f"| {step} | {calls['count']} | {calls['median_us']} |")
    never = sorted({name for each in whole["runs"] for name in each.get("never", [])})
    in_all = [
        name for name in never if all(name in each.get("never", []) for each in whole["runs"])
    ]
    lines += ["", f"Reached by no run: {', '.join(in_all) or 'nothing'}."]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run everything; the exit code is the worst of the runs'."""
    parser = argparse.ArgumentParser(description=__doc__)
    _ = parser.add_argument("--out", type=Path, required=True)
    _ = parser.add_argument("--name", default="campaign")
    _ = parser.add_argument("--soak", type=int, default=50_000, help="operations a soak run")
    _ = parser.add_argument("--fuzz", type=int, default=5_000, help="operations a fuzz run")
    _ = parser.add_argument("--batch", type=int, default=0, help="operations a batch run")
    _ = parser.add_argument("--seeds", type=int, default=5)
    _ = parser.add_argument("--limit", default="256MiB")
    _ = parser.add_argument("--device", type=int, default=0)
    chosen = parser.parse_args()
    work: Path = chosen.out / "runs"
    work.mkdir(parents=True, exist_ok=True)
    runs = [
        run(form, seed, count, chosen.limit, chosen.device, work)
        for seed in range(1, chosen.seeds + 1)
        for form, count in (("soak", chosen.soak), ("fuzz", chosen.fuzz), ("batch", chosen.batch))
        if count
    ]
    whole = summary(runs)
    _ = (chosen.out / f"{chosen.name}.json").write_text(json.dumps(whole, indent=1) + "\n")
    text = table(whole)
    _ = (chosen.out / f"{chosen.name}.md").write_text(text)
    print(text)
    return max(int(each["exit_code"]) for each in runs)


if __name__ == "__main__":
    sys.exit(main())
