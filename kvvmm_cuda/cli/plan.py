"""``kvvmm plan``: what each layout can share of a prefix, what would help, and what then fits."""

import json
from pathlib import Path

import click
from attrs import frozen

from kvvmm_cuda.cli.choosing import size
from kvvmm_cuda.cli.model_config import ELEMENT_BITS, ModelConfig, element_bits
from kvvmm_cuda.cli.plan_text import Planned, as_json, in_words, planned
from kvvmm_cuda.cli.printing import say
from kvvmm_model.geometry import Geometry, GeometryError

__all__ = ["plan"]

_OPTIONS = {
    "layers": "--layers",
    "kv_heads": "--kv-heads",
    "k_width": "--head-dim",
    "v_width": "--v-head-dim",
    "granularity_bytes": "--granularity",
    "prefix_tokens": "--prefix",
    "private_tokens": "--private",
    "prefix_tokens + private_tokens": "--prefix and --private together",
    "token_bytes": "the size of a token in bytes",
    "budget_bytes": "--budget",
}
"""What the user calls the arguments of the arithmetic."""


# --- what was asked -----------------------------------------------------------------------------


@frozen(kw_only=True)
class Asked:
    """The options that describe the cache, as they were given."""

    config: ModelConfig | None
    layers: int | None
    kv_heads: int | None
    head_dim: int | None
    v_head_dim: int | None
    dtype: str | None

    def geometry(self, granularity_bytes: int) -> Geometry:
        """What was given, and the rest from the file.

        Raises:
            BadConfig: the file does not have it, or not so that it can be used.
            GeometryError: the numbers do not go together.
            UsageError: it is not given, and there is no file.
        """
        width = self.head_dim or self._file("--head-dim").head_width()
        in_file = None if self.v_head_dim or not self.config else self.config.value_width()
        bits = element_bits(self.dtype or self._file("--dtype").dtype())
        assert bits is not None, "option and file let no other name pass"
        return Geometry(
            layers=self.layers or self._file("--layers").layers(),
            kv_heads=self.kv_heads or self._file("--kv-heads").kv_heads(),
            k_width=width,
            v_width=self.v_head_dim or in_file or width,
            element_bits=bits,
            granularity_bytes=granularity_bytes,
        )

    def note(self, tokens: int) -> str:
        """What who takes a cache of so many tokens from the file has to know."""
        window = None if self.config is None else self.config.window_tokens()
        if window is None or tokens <= window:
            return ""
        return (
            f"note: some or all layers of this model look back on {window:,} tokens only; counted"
            " is a cache that keeps every token in every layer"
        )

    def _file(self, option: str) -> ModelConfig:
        if self.config is None:
            raise click.UsageError(f"give {option}, or a model's config.json with --config")
        return self.config


# --- options ------------------------------------------------------------------------------------


def _dtype(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and element_bits(value) is None:
        known = ", ".join(ELEMENT_BITS)
        raise click.BadParameter(f"{value!r} is none of {known}", context, parameter)
    return value


def _asked_well(granularity: int | None, budget: int | None, private: int | None) -> int:
    if granularity is None:
        raise click.UsageError(
            "give --granularity, the device's, as 2MiB; kvvmm doctor says what it is here"
        )
    if (budget is None) != (private is None):
        raise click.UsageError("--budget and --private are asked together: give both, or neither")
    return granularity


_COUNT = click.IntRange(1)


@click.command("plan")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A model's config.json; options take the place of what is in it.",
)
@click.option("--layers", type=_COUNT, help="Layers that keep keys and values.")
@click.option("--kv-heads", type=_COUNT, help="KV heads of a layer.")
@click.option("--head-dim", type=_COUNT, help="Elements of a head's K.")
@click.option("--v-head-dim", type=_COUNT, help="Elements of a head's V.  [default: as K]")
@click.option("--dtype", callback=_dtype, help=f"Of the cache: {', '.join(ELEMENT_BITS)}.")
@click.option("--granularity", metavar="SIZE", callback=size, help="The device's, as 2MiB.")
@click.option("--prefix", type=_COUNT, metavar="TOKENS", required=True, help="Of the prefix.")
@click.option("--budget", metavar="SIZE", callback=size, help="Memory for requests, as 40GiB.")
@click.option(
    "--private", type=click.IntRange(0), metavar="TOKENS", help="Of each request after the prefix."
)
@click.option("--json", "as_data", is_flag=True, help="The same as data.")
def plan(
    *,
    config: Path | None,
    layers: int | None,
    kv_heads: int | None,
    head_dim: int | None,
    v_head_dim: int | None,
    dtype: str | None,
    granularity: int | None,
    prefix: int,
    budget: int | None,
    private: int | None,
    as_data: bool,
) -> None:
    """Say what of a prefix can be shared, in each layout of a model's KV cache.

    A layout in which nothing can be shared says why, and what would help; that is an answer too.
    With --budget and --private also how many requests fit at once: each with a prefix of its own,
    and with one prefix for all. The latter counts the one that published it, which holds no more.
    Exit code 0: answered; 2: not asked properly.
    """
    unit = _asked_well(granularity, budget, private)
    asked = Asked(
        config=None if config is None else ModelConfig(config),
        layers=layers,
        kv_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=v_head_dim,
        dtype=dtype,
    )
    found = _answered(asked, unit, prefix, budget, private)
    note = asked.note(prefix + (private or 0))
    if as_data:
        say(json.dumps({**as_json(found), "note": note or None}, indent=1))
    else:
        say("\n".join([in_words(found), *(["", note] if note else [])]))


def _answered(
    asked: Asked, unit: int, prefix: int, budget: int | None, private: int | None
) -> Planned:
    try:
        return planned(asked.geometry(unit), prefix, budget, private)
    except GeometryError as error:
        name = _OPTIONS.get(error.name, error.name)
        text = str(error).removeprefix(error.name)
        raise click.UsageError(f"{name}{text}") from error
