"""``kvvmm plan``: its answers, its refusals, and what it says to options that cannot be meant."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.command import kvvmm, start

WORKED = {"--layers": "48", "--kv-heads": "8", "--head-dim": "128", "--dtype": "fp16"}
ASKED = {**WORKED, "--prefix": "2000", "--granularity": "2MiB"}


def words(options: dict[str, str], **changed: str | None) -> list[str]:
    """Options as arguments; ``None`` leaves one out."""
    given: dict[str, str | None] = {**options}
    given.update({f"--{name.replace('_', '-')}": value for name, value in changed.items()})
    return [word for name, value in given.items() if value is not None for word in (name, value)]


def plan(**changed: str | None) -> str:
    result = kvvmm("plan", *words(ASKED, **changed))
    assert result.exit_code == 0, result.output
    return result.stdout


def data(**changed: str | None) -> Any:
    result = kvvmm("plan", "--json", *words(ASKED, **changed))
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(**changed: str | None) -> str:
    """What stderr says, on one line."""
    result = kvvmm("plan", *words(ASKED, **changed))
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    return " ".join(result.stderr.split())


# --- answers ------------------------------------------------------------------------------------


def test_data_of_the_worked_model() -> None:
    found = data()
    assert found["token_bytes"] == 196_608
    assert found["prefix_bytes"] == 393_216_000
    head, seq, token = (
        found["layouts"][name] for name in ("head-major", "seq-major", "token-major")
    )
    assert head["shareable"] is False
    assert head["refused"] == "SHORT"
    assert head["remedies"] == {
        "layouts": ["seq-major", "token-major"],
        "prefix_tokens": 8192,
        "tokens_more": 6192,
        "granularity_bytes": 262_144,
    }
    assert seq["shareable"] is True
    assert (seq["whole_windows"], seq["map_operations"]) == ([1, 1], 96)
    assert (token["map_operations"], token["boundary_bytes"]) == (187, 1_048_576)
    assert [each["floor_windows"] for each in (head, seq, token)] == [768, 96, 1]
    assert [each["requests"] for each in (head, seq, token)] == [None, None, None]
    assert found["note"] is None


def test_data_names_the_fragments() -> None:
    found = data(v_head_dim="64")["layouts"]
    assert found["seq-major"]["fragments"] == [
        {"holds": "K", "count": 48, "bytes_per_token": 2048},
        {"holds": "V", "count": 48, "bytes_per_token": 1024},
    ]
    assert found["token-major"]["fragments"] == [
        {"holds": "K+V", "count": 1, "bytes_per_token": 48 * 8 * 192 * 2}
    ]


def test_a_layout_that_cannot_share_says_why_and_what_would_do() -> None:
    text = " ".join(plan().split())
    assert "head-major cannot share: no fragment is as long as a window" in text
    assert "512,000 bytes, a window 2,097,152" in text
    assert "layout seq-major or token-major; a prefix of 8,192 tokens, 6,192 more" in text
    assert "seq-major cannot" not in text


def test_a_prefix_that_no_layout_can_share_is_an_answer() -> None:
    text = plan(prefix="1")
    assert text.count("cannot share") == 3
    assert "layout" not in text.split("token-major cannot share")[1]


def test_k_and_v_of_two_widths_stand_side_by_side() -> None:
    text = plan(head_dim="192", v_head_dim="128", prefix="6000")
    assert "width 192 K / 128 V" in text
    assert "1 K / 0 V" in text


def test_requests_that_fit() -> None:
    found = data(budget="40GiB", private="500")
    assert found["layouts"]["head-major"]["requests"] == {
        "apart": 26,
        "sharing": 0,
        "bounded": True,
    }
    assert found["layouts"]["token-major"]["requests"] == {
        "apart": (40 << 30) // (470 << 20),
        "sharing": 1 + ((40 << 30) - (374 << 20)) // (96 << 20),
        "bounded": True,
    }


def test_requests_that_cost_nothing_have_no_bound() -> None:
    exact = {"prefix": "8192", "private": "0", "budget": "40GiB"}
    assert "any number" in plan(**exact)
    found = data(**exact)["layouts"]["head-major"]
    assert (found["own_bytes"], found["requests"]["sharing"]) == (0, None)
    assert found["requests"]["bounded"] is False


def test_a_budget_of_nothing_holds_nobody() -> None:
    found = data(budget="0", private="1")["layouts"]["token-major"]
    assert (found["requests"]["apart"], found["requests"]["sharing"]) == (0, 0)


@pytest.mark.parametrize(
    ("name", "bits"),
    [("fp32", 32), ("bfloat16", 16), ("torch.float16", 16), ("FP8", 8), ("int4", 4)],
)
def test_element_types_by_their_names(name: str, bits: int) -> None:
    assert data(dtype=name)["element_bits"] == bits


def test_in_a_process_of_its_own_it_exits_with_its_codes() -> None:
    for changed, code in (({}, 0), ({"prefix": "0"}, 2)):
        process = start("plan", *words(ASKED, **changed))
        _ = process.communicate(timeout=60)
        assert process.returncode == code


# --- options that cannot be meant ---------------------------------------------------------------


@pytest.mark.parametrize("option", ["layers", "kv_heads", "head_dim", "v_head_dim", "prefix"])
@pytest.mark.parametrize("value", ["0", "-3", "1.5", "eight", "9" * 5000])
def test_a_bad_number_names_the_option(option: str, value: str) -> None:
    assert f"'--{option.replace('_', '-')}'" in refused(**{option: value})


@pytest.mark.parametrize(
    "option", ["layers", "kv_heads", "head_dim", "v_head_dim", "prefix", "private"]
)
def test_a_vast_number_is_refused(option: str) -> None:
    text = refused(**{"budget": "1GiB", "private": "0", option: str(1 << 70)})
    assert f"--{option.replace('_', '-')}" in text
    assert "2**63" in text


def test_numbers_that_are_too_much_together_are_refused() -> None:
    assert "in bytes is an integer of" in refused(layers=str(1 << 40), kv_heads=str(1 << 40))
    assert "at most 46912496118442 tokens" in refused(prefix=str(1 << 50))
    text = refused(prefix=str(1 << 45), budget="1GiB", private=str(1 << 45))
    assert "--prefix and --private together" in text


@pytest.mark.parametrize("value", ["0", "-1", "2 parsecs", "2MB", "", "1" * 5000])
def test_a_bad_granularity_is_refused(value: str) -> None:
    assert "--granularity" in refused(granularity=value)


def test_a_missing_granularity_says_where_to_find_it() -> None:
    assert "kvvmm doctor" in refused(granularity=None)


@pytest.mark.parametrize("option", ["layers", "kv_heads", "head_dim", "dtype"])
def test_a_missing_option_is_named(option: str) -> None:
    text = refused(**{option: None})
    assert f"give --{option.replace('_', '-')}, or a model's config.json" in text


def test_an_unknown_element_type_is_refused_with_those_there_are() -> None:
    assert "'fp17' is none of fp32, bf16, fp16" in refused(dtype="fp17")


def test_a_head_that_fills_no_whole_bytes_is_refused() -> None:
    assert "--head-dim is 127: at 4 bits" in refused(dtype="int4", head_dim="127")


@pytest.mark.parametrize("given", [{"budget": "1GiB"}, {"private": "10"}])
def test_budget_and_private_tokens_go_together(given: dict[str, str]) -> None:
    assert "give both, or neither" in refused(**given)


# --- a model's file -----------------------------------------------------------------------------


@pytest.fixture
def llama(tmp_path: Path) -> str:
    path = tmp_path / "config.json"
    numbers = {
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "num_key_value_heads": 8,
        "torch_dtype": "bfloat16",
        "sliding_window": 4096,
    }
    _ = path.write_text(json.dumps(numbers), encoding="utf-8")
    return str(path)


def from_file(path: str, *more: str) -> Any:
    asked = ("--prefix", "2000", "--granularity", "2MiB", "--json")
    result = kvvmm("plan", "--config", path, *asked, *more)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_config_has_the_geometry(llama: str) -> None:
    found = from_file(llama)
    names = ("layers", "kv_heads", "k_width", "v_width", "element_bits")
    assert [found[name] for name in names] == [32, 8, 128, 128, 16]


def test_options_take_the_place_of_what_is_in_the_file(llama: str) -> None:
    found = from_file(llama, "--layers", "16", "--dtype", "fp8", "--v-head-dim", "64")
    names = ("layers", "kv_heads", "k_width", "v_width", "element_bits")
    assert [found[name] for name in names] == [16, 8, 128, 64, 8]


def test_a_sliding_window_is_noted_where_tokens_go_beyond_it(llama: str) -> None:
    more = ("--budget", "1GiB", "--private")
    assert from_file(llama, *more, "2096")["note"] is None
    assert "4,096 tokens only" in from_file(llama, *more, "2097")["note"]
    result = kvvmm("plan", "--config", llama, "--prefix", "5000", "--granularity", "2MiB")
    assert "note: some or all layers" in result.stdout


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "does not exist" in refused(config=str(tmp_path / "none.json"))


def test_a_file_that_does_not_say_enough_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    _ = path.write_text('{"num_hidden_layers": 27, "kv_lora_rank": 512}', encoding="utf-8")
    text = refused(config=str(path), kv_heads=None)
    assert "(MLA)" in text
    assert "--kv-heads 1, --head-dim kv_lora_rank" in text


def test_a_compressed_cache_can_be_asked_for_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    _ = path.write_text('{"num_hidden_layers": 27, "kv_lora_rank": 512}', encoding="utf-8")
    found = data(config=str(path), layers=None, kv_heads="1", head_dim="512", v_head_dim="64")
    assert found["token_bytes"] == 27 * (512 + 64) * 2
