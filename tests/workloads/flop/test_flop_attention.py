"""Counted FLOP of attention and transformers against closed forms, in one operator or many."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.nn import functional as F

from gpuwatch.workloads.flop.formulas import flop_of
from gpuwatch.workloads.flop.operators import OperatorCounter

pytestmark = pytest.mark.torch

BATCH, HEADS, QUERIES, KEYS, WIDTH, INNER = 2, 4, 6, 10, 16, 24
DEVICES = pytest.mark.parametrize("device", ["meta", "cpu"])


def work_of(run: Callable[[], Any]) -> Any:
    with OperatorCounter() as counter:
        run()
    return counter.work


def tensors(*lengths: int, device: str, grad: bool = False) -> list[Any]:
    return [
        torch.ones(BATCH, length, WIDTH, device=device, requires_grad=grad) for length in lengths
    ]


def attention(queries: int, keys: int) -> int:
    return 4 * BATCH * queries * keys * WIDTH


def projections(rows: int) -> int:
    return 2 * BATCH * rows * WIDTH * WIDTH


def multi_head(queries: int, keys: int) -> int:
    return projections(2 * queries + 2 * keys) + attention(queries, keys)


def feed_forward(rows: int) -> int:
    return 2 * BATCH * rows * 2 * WIDTH * INNER


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("keys", [QUERIES, KEYS])
@DEVICES
def test_attention_costs_two_products_forward_and_four_backward(
    device: str, keys: int, causal: bool
) -> None:
    q = torch.ones(BATCH, HEADS, QUERIES, 8, device=device, requires_grad=True)
    k = torch.ones(BATCH, HEADS, keys, 8, device=device, requires_grad=True)
    v = torch.ones(BATCH, HEADS, keys, 8, device=device, requires_grad=True)
    out: Any = None

    def run() -> None:
        nonlocal out
        out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    forward = 4 * BATCH * HEADS * QUERIES * keys * 8
    assert work_of(run).flop == forward
    assert work_of(lambda: out.sum().backward()).flop == 2 * forward


@DEVICES
def test_keys_shared_by_groups_of_heads_are_met_by_every_head(device: str) -> None:
    q = torch.ones(BATCH, 8, QUERIES, 8, device=device, requires_grad=True)
    k = torch.ones(BATCH, 2, KEYS, 8, device=device, requires_grad=True)
    forward = 4 * BATCH * 8 * QUERIES * KEYS * 8

    def run() -> None:
        F.scaled_dot_product_attention(q, k, k, enable_gqa=True).sum().backward()

    assert work_of(run).flop == 3 * forward


@pytest.mark.parametrize(
    "kind",
    ["flash_attention", "efficient_attention", "cudnn_attention", "fused_attention_overrideable"],
)
def test_every_kernel_of_attention_has_the_same_formula(kind: str) -> None:
    name = f"_scaled_dot_product_{kind}"
    packet = getattr(torch.ops.aten, name)
    q = torch.empty(BATCH, 8, QUERIES, 16, device="meta")
    k = torch.empty(BATCH, 2, KEYS, 16, device="meta")
    v = torch.empty(BATCH, 2, KEYS, 32, device="meta")
    forward = 2 * BATCH * 8 * QUERIES * KEYS * (16 + 32)
    assert flop_of(f"aten.{name}", packet, (q, k, v), {"is_causal": True}, None) == forward
    packet = getattr(torch.ops.aten, f"{name}_backward")
    assert flop_of(f"aten.{name}_backward", packet, (q, q, k, v), {}, None) == 2 * forward


@pytest.mark.parametrize("kind", ["flash", "efficient"])
def test_sequences_of_different_lengths_meet_only_themselves(kind: str) -> None:
    offsets, lengths = torch.tensor([0, 3, 8], dtype=torch.int32), (3, 5)
    batch = () if kind == "flash" else (1,)
    q = torch.empty(*batch, 8, HEADS, 16)
    expected = 4 * sum(length * length for length in lengths) * HEADS * 16
    middle = () if kind == "flash" else (None,)
    offered = (q, q, q, *middle, offsets, offsets, 5, 5)
    forward = flop_of(f"aten._{kind}_attention_forward", None, offered, {}, None)
    returned = (q, q, q, q, None, q, offsets, offsets, 5, 5)
    backward = flop_of(f"aten._{kind}_attention_backward", None, returned, {}, None)
    assert (forward, backward) == (expected, 2 * expected)
    unknown = (q, q, q, *middle, offsets.to("meta"), offsets.to("meta"), 5, 5)
    assert flop_of(f"aten._{kind}_attention_forward", None, unknown, {}, None) is None


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("lengths", [(QUERIES, QUERIES), (QUERIES, KEYS)])
@pytest.mark.parametrize("training", [False, True])
@DEVICES
def test_multi_head_attention_costs_four_projections_and_two_products(
    device: str, training: bool, lengths: tuple[int, int], need_weights: bool
) -> None:
    layer = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True, device=device).train(training)
    queries, keys = lengths
    q, k = tensors(queries, keys, device=device, grad=training)
    forward = multi_head(queries, keys)
    if training:
        work = work_of(lambda: layer(q, k, k, need_weights=need_weights)[0].sum().backward())
        assert work.flop == 3 * forward
        return
    with torch.no_grad():
        for key in (k, q) if queries == keys else (k,):
            work = work_of(lambda key=key: layer(q, key, key, need_weights=need_weights))
            assert work.flop == forward


def gradients(kind: str) -> AbstractContextManager[Any]:
    return {"graph": nullcontext, "no graph": torch.no_grad, "inference": torch.inference_mode}[
        kind
    ]()


@pytest.mark.parametrize("mode", ["graph", "no graph", "inference"])
@pytest.mark.parametrize("training", [False, True])
@DEVICES
def test_an_encoder_layer_costs_the_same_on_every_path(
    device: str, training: bool, mode: str
) -> None:
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, batch_first=True, device=device)
    layer.train(training)
    with gradients(mode):
        (x,) = tensors(QUERIES, device=device)
        work = work_of(lambda: layer(x))
    whole = "aten._transformer_encoder_layer_fwd" in work.operators
    assert whole == (device == "cpu" and not training and mode != "graph")
    assert work.flop == multi_head(QUERIES, QUERIES) + feed_forward(QUERIES)


def test_an_encoders_fast_path_counts_no_padding() -> None:
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).eval()
    (x,) = tensors(QUERIES, device="cpu")
    padded = torch.arange(QUERIES).expand(BATCH, -1) >= torch.tensor([[2], [QUERIES]])
    with torch.no_grad():
        work = work_of(lambda: encoder(x, src_key_padding_mask=padded))
    lengths = (2, QUERIES)
    rows = sum(lengths) * (8 * WIDTH * WIDTH + 4 * WIDTH * INNER)
    pairs = 4 * WIDTH * sum(length * length for length in lengths)
    assert work.operators["aten._transformer_encoder_layer_fwd"].calls == 2
    assert work.flop == 2 * (rows + pairs)


@pytest.mark.parametrize("norm_first", [False, True])
@DEVICES
def test_an_encoder_layers_backward_is_twice_its_forward_less_the_inputs_gradient(
    device: str, norm_first: bool
) -> None:
    layer = nn.TransformerEncoderLayer(
        WIDTH, HEADS, INNER, batch_first=True, norm_first=norm_first, device=device
    )
    (x,) = tensors(QUERIES, device=device)
    out = layer(x)
    forward = multi_head(QUERIES, QUERIES) + feed_forward(QUERIES)
    # Behind a norm with weights of its own the projections' input has a gradient.
    unwanted = 0 if norm_first else projections(3 * QUERIES)
    assert work_of(lambda: out.sum().backward()).flop == 2 * forward - unwanted


@pytest.mark.parametrize("norm_first", [False, True])
@DEVICES
def test_a_decoder_layer_costs_two_attentions_and_its_backward_twice_that(
    device: str, norm_first: bool
) -> None:
    layer = nn.TransformerDecoderLayer(
        WIDTH, HEADS, INNER, batch_first=True, norm_first=norm_first, device=device
    )
    target, memory = tensors(QUERIES, KEYS, device=device)
    out: Any = None

    def run() -> None:
        nonlocal out
        out = layer(target, memory)

    forward = multi_head(QUERIES, QUERIES) + multi_head(QUERIES, KEYS) + feed_forward(QUERIES)
    assert work_of(run).flop == forward
    unwanted = projections(2 * KEYS) + (0 if norm_first else projections(3 * QUERIES))
    assert work_of(lambda: out.sum().backward()).flop == 2 * forward - unwanted


def test_flexible_attention_has_the_formula_of_attention() -> None:
    flex = pytest.importorskip("torch._higher_order_ops.flex_attention")
    q = torch.empty(BATCH, 8, QUERIES, 16, device="meta")
    k = torch.empty(BATCH, 2, KEYS, 16, device="meta")
    forward = 4 * BATCH * 8 * QUERIES * KEYS * 16
    name = f"higher_order.{flex.flex_attention}"
    assert flop_of(name, flex.flex_attention, (q, k, k), {}, None) == forward
    assert flop_of(f"{name}_backward", flex.flex_attention_backward, (q, k, k), {}, None) == (
        2 * forward
    )
