"""A model's ``config.json``: what is read from it, and what is refused rather than guessed."""

import json
from pathlib import Path

import pytest

from kvvmm_cuda.cli.model_config import BadConfig, ModelConfig, element_bits

LLAMA: dict[str, object] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "torch_dtype": "bfloat16",
}


class Write:
    """Writes files; ``None`` leaves a key out."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "config.json"

    def __call__(self, numbers: dict[str, object] = LLAMA, /, **changed: object) -> ModelConfig:
        kept = {key: value for key, value in {**numbers, **changed}.items() if value is not None}
        return self.text(json.dumps(kept))

    def text(self, text: str) -> ModelConfig:
        _ = self.path.write_text(text, encoding="utf-8")
        return ModelConfig(self.path)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    return Write(tmp_path)


def numbers_of(config: ModelConfig) -> tuple[int, int, int, int | None, str]:
    return (
        config.layers(),
        config.kv_heads(),
        config.head_width(),
        config.value_width(),
        config.dtype(),
    )


# --- what is read -------------------------------------------------------------------------------


def test_heads_and_width_follow_from_other_numbers(write: Write) -> None:
    assert numbers_of(write()) == (32, 8, 128, None, "bfloat16")
    assert write(num_key_value_heads=None).kv_heads() == 32


def test_null_is_as_good_as_absent(write: Write) -> None:
    config = write.text(json.dumps({**LLAMA, "head_dim": None, "num_key_value_heads": None}))
    assert (config.kv_heads(), config.head_width()) == (32, 128)


def test_head_dim_goes_before_what_follows_from_the_hidden_size(write: Write) -> None:
    assert write(head_dim=96, v_head_dim=64).head_width() == 96
    assert write(head_dim=96, v_head_dim=64).value_width() == 64


def test_dtype_goes_before_torch_dtype(write: Write) -> None:
    assert write(dtype="float32").dtype() == "float32"


@pytest.mark.parametrize("inner", ["text_config", "llm_config", "language_config"])
def test_a_model_of_several_parts_is_read_at_its_language_model(write: Write, inner: str) -> None:
    config = write({inner: {**LLAMA, "torch_dtype": None}, "num_hidden_layers": 7}, dtype="float16")
    assert numbers_of(config) == (32, 8, 128, None, "float16")


def test_parts_may_lie_in_one_another(write: Write) -> None:
    assert write({"thinker_config": {"text_config": LLAMA}}).layers() == 32


def test_layers_that_slide_keep_keys_and_values_too(write: Write) -> None:
    kinds = ["sliding_attention", "full_attention"] * 16
    assert write(layer_types=kinds, full_attention_interval=2).layers() == 32


@pytest.mark.parametrize(
    ("given", "window"),
    [
        ({"sliding_window": 4096}, 4096),
        ({"sliding_window": 4096, "use_sliding_window": True}, 4096),
        ({"sliding_window": 4096, "use_sliding_window": False}, None),
        ({"sliding_window": "wide"}, None),
        ({}, None),
    ],
)
def test_sliding_window(write: Write, given: dict[str, object], window: int | None) -> None:
    assert write(**given).window_tokens() == window


@pytest.mark.parametrize("name", ["float", "torch.bfloat16", "float8_e4m3fn", " fp16 "])
def test_element_types_have_several_names(name: str) -> None:
    assert element_bits(name) is not None


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {"layer_types": ["full_attention", "linear_attention"]},
        {"layer_types": ["full_attention", {"of": "a kind"}]},
        {"full_attention_interval": 4},
        {"attn_layer_period": 8},
        {"hybrid_override_pattern": "M-M*"},
        {"num_kv_shared_layers": 20},
        {"is_encoder_decoder": True},
        {"cross_attention_layers": [3, 8]},
    ],
)
def test_layers_that_differ_are_refused(write: Write, given: dict[str, object]) -> None:
    with pytest.raises(BadConfig, match=r"give --layers$"):
        _ = write(**given).layers()


def test_layers_that_keep_nothing_are_counted_and_named(write: Write) -> None:
    config = write(layer_types=["linear_attention"] * 3 + ["full_attention"])
    with pytest.raises(BadConfig, match=r'3 of its 4 layers .* by head: "linear_attention"; give'):
        _ = config.layers()


def test_a_compressed_cache_is_refused_with_the_way_to_ask_for_it(write: Write) -> None:
    config = write(kv_lora_rank=512, qk_rope_head_dim=64, v_head_dim=128)
    assert config.layers() == 32
    for ask in (config.kv_heads, config.head_width, config.value_width):
        with pytest.raises(BadConfig, match=r"\(MLA\).*--head-dim kv_lora_rank"):
            _ = ask()


@pytest.mark.parametrize("old", ["multi_query", "num_kv_heads", "n_head_kv"])
def test_old_names_of_kv_heads_are_refused(write: Write, old: str) -> None:
    with pytest.raises(BadConfig, match=f"{old} by rules of its own; give --kv-heads"):
        _ = write(num_key_value_heads=None, **{old: 1}).kv_heads()


@pytest.mark.parametrize("kind", ["gemma3_text", "qwen3_moe", "glm4", "gpt_oss"])
def test_a_width_that_only_the_model_s_code_knows_is_refused(write: Write, kind: str) -> None:
    assert write(model_type=kind, head_dim=256).head_width() == 256
    with pytest.raises(BadConfig, match="give --head-dim"):
        _ = write(model_type=kind).head_width()


def test_heads_that_do_not_divide_the_hidden_size_are_refused(write: Write) -> None:
    with pytest.raises(BadConfig, match="30 heads do not divide a hidden_size of 4096"):
        _ = write(num_attention_heads=30).head_width()


@pytest.mark.parametrize("value", [0, -1, 32.0, True, "32", [32], {"a": 1}, 1 << 70, 10**4000])
def test_a_number_that_is_none_is_refused(write: Write, value: object) -> None:
    with pytest.raises(BadConfig, match=r"its num_hidden_layers is .*; give --layers") as refused:
        _ = write(num_hidden_layers=value).layers()
    assert len(refused.value.message) < len(str(write.path)) + 140


@pytest.mark.parametrize(
    ("missing", "option"),
    [("num_hidden_layers", "--layers"), ("num_attention_heads", "--head-dim")],
)
def test_a_missing_number_is_named_with_its_option(write: Write, missing: str, option: str) -> None:
    config = write(**{missing: None})
    with pytest.raises(BadConfig, match=f"it has no {missing}; give {option}"):
        _ = config.layers(), config.head_width()


@pytest.mark.parametrize("value", ["auto", "complex64", 16, {"": "float16"}])
def test_an_unknown_element_type_is_refused(write: Write, value: object) -> None:
    with pytest.raises(BadConfig, match="no known element type; give --dtype"):
        _ = write(torch_dtype=value).dtype()


def test_a_missing_element_type_is_refused(write: Write) -> None:
    with pytest.raises(BadConfig, match="give --dtype"):
        _ = write(torch_dtype=None).dtype()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is no JSON"),
        ("{", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ('{"num_hidden_layers": ' + "9" * 5000 + "}", "is no JSON"),
        ("[1]", "holds no JSON object"),
        ('{"text_config": 5}', "text_config is no object"),
        ('{"a": "' + "b" * (17 << 20) + '"}', "is too large"),
    ],
    ids=["empty", "cut", "deep", "digits", "list", "part", "large"],
)
def test_what_is_no_config_is_refused(write: Write, text: str, why: str) -> None:
    with pytest.raises(BadConfig, match=why):
        _ = write.text(text)


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    _ = path.write_bytes(bytes(range(256)))
    with pytest.raises(BadConfig, match="is no JSON"):
        _ = ModelConfig(path)


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="cannot be read"):
        _ = ModelConfig(tmp_path)
