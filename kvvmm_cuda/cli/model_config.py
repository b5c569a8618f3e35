"""The numbers of a KV cache in a model's ``config.json``, as Hugging Face's transformers writes it.

A file leaves out what the model's code fills in.  What follows from other numbers in the file is
computed; what does not, or would be wrong for this kind of model, is refused, with the option to
give instead.  A wrong number would be worse than none.

Source of the names and of what stands in for missing ones: the configuration classes of
transformers.
"""

import json
from pathlib import Path
from typing import Final, cast

import click

from kvvmm_model.vocabulary import MAX_BYTES

__all__ = ["ELEMENT_BITS", "BadConfig", "ModelConfig", "element_bits"]

Json = dict[str, object]

ELEMENT_BITS: Final = {
    "fp32": 32,
    "bf16": 16,
    "fp16": 16,
    "fp8": 8,
    "int8": 8,
    "fp4": 4,
    "int4": 4,
}
"""Types of a cache's elements, by the names that the command lists."""

_OTHER_NAMES = {
    "float": "fp32",
    "float32": "fp32",
    "bfloat16": "bf16",
    "half": "fp16",
    "float16": "fp16",
    "float8": "fp8",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "uint8": "int8",
}

_INNER = ("text_config", "llm_config", "language_config", "thinker_config")
"""Where a model of several parts keeps its language model; these may lie in one another."""

_KEEPING = ("full_attention", "sliding_attention", "chunked_attention", "attention")
"""Those of ``layer_types`` that keep keys and values by head."""

_HYBRID = (
    "attn_layer_indices",
    "attn_layer_period",
    "attn_type_list",
    "full_attention_interval",
    "full_attn_idxs",
    "hybrid_override_pattern",
    "layers_block_type",
    "linear_attn_config",
)
"""Other ways to say that not every layer does, in files without ``layer_types``."""

_MLA = "it keeps one compressed vector a token (MLA), not keys and values by head"

_SPOILS: dict[str, dict[str, str]] = {
    "--layers": {
        "block_configs": "its layers differ from one another",
        "cross_attention_layers": "some of its layers attend to something else than the tokens",
        "is_encoder_decoder": "its decoder keeps the encoder's keys and values as well",
        "num_kv_shared_layers": "some of its layers use the keys and values of others",
    },
    "--kv-heads": {
        "kv_lora_rank": _MLA,
        "num_global_key_value_heads": "its layers differ in their number of heads",
        "num_key_value_heads_per_layer": "its layers differ in their number of heads",
    },
    "--head-dim": {
        "kv_lora_rank": _MLA,
        "global_head_dim": "its layers differ in the width of their heads",
    },
    "--v-head-dim": {"kv_lora_rank": _MLA},
}
"""By the option that settles it: what in a file makes the usual reading of a number wrong."""

_OWN_KV_HEADS = ("multi_query", "multi_query_group_num", "num_kv_heads", "n_head_kv", "attn_config")
"""Older names for the number of KV heads, each with rules of its own."""

_OWN_WIDTH = ("ernie4_5", "gemma", "glm", "gpt_oss", "helium", "qwen3", "t5gemma", "vaultgemma")
"""How ``model_type`` begins where the code has a width of its own, whatever ``hidden_size`` is."""

_MOST_BYTES = 16 << 20


class BadConfig(click.ClickException):
    """The file does not say what is wanted; the message says what to give instead."""

    exit_code = 2


def element_bits(name: str) -> int | None:
    """The width of an element type, by any of its names; None for what is none."""
    plain = name.strip().lower().removeprefix("torch.")
    return ELEMENT_BITS.get(_OTHER_NAMES.get(plain, plain))


class ModelConfig:
    """A file of numbers; each is looked for when it is asked for.

    Every method raises ``BadConfig`` for a number that the file does not have, or that cannot be
    taken as it stands.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._levels = self._nested(_read(path))
        """The language model's own part first, then what it lies in."""

    def layers(self) -> int:
        """How many layers keep keys and values."""
        self._check("--layers")
        kinds = self._own.get("layer_types")
        if isinstance(kinds, list):
            self._check_kinds(cast("list[object]", kinds))
        else:
            for key in _HYBRID:
                if self._own.get(key):
                    raise self._bad(f"not all layers keep keys and values: see {key}", "--layers")
        return self._number("num_hidden_layers", "--layers")

    def kv_heads(self) -> int:
        """The KV heads of a layer; as many as query heads where the file names none."""
        self._check("--kv-heads")
        if self._own.get("num_key_value_heads") is not None:
            return self._number("num_key_value_heads", "--kv-heads")
        for key in _OWN_KV_HEADS:
            if self._own.get(key):
                raise self._bad(
                    f"it has no num_key_value_heads, and {key} by rules of its own", "--kv-heads"
                )
        return self._number("num_attention_heads", "--kv-heads")

    def head_width(self) -> int:
        """The elements of a head's K."""
        self._check("--head-dim")
        if self._own.get("head_dim") is not None:
            return self._number("head_dim", "--head-dim")
        kind = self._own.get("model_type")
        if isinstance(kind, str) and kind.startswith(_OWN_WIDTH):
            raise self._bad(
                f"it has no head_dim, and in {_cut(kind)} that does not follow from hidden_size",
                "--head-dim",
            )
        hidden = self._number("hidden_size", "--head-dim")
        heads = self._number("num_attention_heads", "--head-dim")
        if hidden % heads:
            raise self._bad(
                f"it has no head_dim, and {heads} heads do not divide a hidden_size of {hidden}",
                "--head-dim",
            )
        return hidden // heads

    def value_width(self) -> int | None:
        """The elements of a head's V, where the file has a number for it."""
        self._check("--v-head-dim")
        if self._own.get("v_head_dim") is None:
            return None
        return self._number("v_head_dim", "--v-head-dim")

    def dtype(self) -> str:
        """The type of the weights, which a cache has unless somebody says otherwise."""
        for level in self._levels:
            for key in ("dtype", "torch_dtype"):
                found = level.get(key)
                if found is None:
                    continue
                if not isinstance(found, str) or element_bits(found) is None:
                    raise self._bad(f"its {key} is {_cut(found)}, no known element type", "--dtype")
                return found
        raise self._bad("it has no torch_dtype or dtype", "--dtype")

    def window_tokens(self) -> int | None:
        """How many tokens some layers look back on, where that is not all."""
        found = self._own.get("sliding_window")
        used = self._own.get("use_sliding_window") is not False
        return found if used and type(found) is int and found > 0 else None

    # --- how it is read -------------------------------------------------------------------------

    @property
    def _own(self) -> Json:
        return self._levels[0]

    def _nested(self, top: Json) -> list[Json]:
        levels = [top]
        while True:
            inner = next((key for key in _INNER if levels[0].get(key) is not None), None)
            if inner is None:
                return levels
            found = levels[0][inner]
            if not isinstance(found, dict):
                raise BadConfig(f"{self._path}: {inner} is no object; is it a model's config.json?")
            levels.insert(0, cast("Json", found))

    def _number(self, key: str, option: str) -> int:
        found = self._own.get(key)
        if found is None:
            raise self._bad(f"it has no {key}", option)
        if type(found) is not int or not 1 <= found <= MAX_BYTES:
            raise self._bad(f"its {key} is {_cut(found)}, no whole number from 1 to 2**63", option)
        return found

    def _check(self, option: str) -> None:
        for key, why in _SPOILS[option].items():
            if self._own.get(key):
                raise self._bad(f"{why}, as {key} says", option)

    def _check_kinds(self, kinds: list[object]) -> None:
        others = [kind for kind in kinds if kind not in _KEEPING]
        if others:
            raise self._bad(
                f"{len(others)} of its {len(kinds)} layers keep no keys and values by head:"
                f" {', '.join(sorted({_cut(kind) for kind in others}))}",
                "--layers",
            )

    def _bad(self, problem: str, option: str) -> BadConfig:
        hint = ""
        if self._own.get("kv_lora_rank") and option != "--layers":
            hint = (
                "; a cache that holds the vector and its rotary part side by side is --kv-heads 1,"
                " --head-dim kv_lora_rank, --v-head-dim qk_rope_head_dim"
            )
        return BadConfig(f"{self._path}: {problem}; give {option}{hint}")


def _cut(value: object) -> str:
    """A value for a message, not longer than a line."""
    if isinstance(value, int) and value.bit_length() > MAX_BYTES.bit_length():
        return f"an integer of {value.bit_length()} bits"
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _read(path: Path) -> Json:
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise BadConfig(f"{path} is too large for a model's config.json: give that file")
        found: object = json.loads(text)
    except OSError as error:
        raise BadConfig(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise BadConfig(f"{path} is no JSON ({error}): give a model's config.json") from error
    if not isinstance(found, dict):
        raise BadConfig(f"{path} holds no JSON object: give a model's config.json")
    return cast("Json", found)
