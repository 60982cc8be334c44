"""Counted FLOP of recurrent layers against closed forms, however they are executed."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn

from gpuwatch.workloads.flop.formulas import flop_of
from gpuwatch.workloads.flop.operators import OperatorCounter
from tests.workloads.forward import count_forward

pytestmark = pytest.mark.torch

BATCH, LENGTH, WIDE, HIDDEN = 4, 10, 6, 8
KINDS = [(nn.RNN, 1), (nn.GRU, 3), (nn.LSTM, 4)]
SHAPES = [
    {},
    {"bias": False},
    {"num_layers": 3},
    {"bidirectional": True},
    {"num_layers": 2, "bidirectional": True, "dropout": 0.5},
]
PROJECTED = [{"proj_size": 5}, {"proj_size": 5, "num_layers": 2, "bidirectional": True}]
ALL = [(kind, gates, shape) for kind, gates in KINDS for shape in SHAPES] + [
    (nn.LSTM, 4, shape) for shape in PROJECTED
]
each_layer = pytest.mark.parametrize(("kind", "gates", "shape"), ALL)


def products(gates: int, shape: dict[str, Any]) -> tuple[int, int, int]:
    """Multiply-accumulates of one step: all; with the input; with the state as it begins."""
    layers, both = shape.get("num_layers", 1), 1 + shape.get("bidirectional", False)
    projected = shape.get("proj_size", 0)
    state = projected or HIDDEN
    every = first = begun = 0
    for layer in range(layers):
        wide = WIDE if layer == 0 else state * both
        every += both * (gates * HIDDEN * (wide + state) + HIDDEN * projected)
        first += both * gates * HIDDEN * wide if layer == 0 else 0
        begun += both * gates * HIDDEN * state
    return every, first, begun


def forward(gates: int, shape: dict[str, Any]) -> int:
    return 2 * BATCH * LENGTH * products(gates, shape)[0]


def backward(gates: int, shape: dict[str, Any], wants_input: bool, wants_state: bool) -> int:
    every, first, begun = products(gates, shape)
    unwanted = 0 if wants_input else 2 * BATCH * LENGTH * first
    unwanted += 0 if wants_state else 2 * BATCH * begun
    return 4 * BATCH * LENGTH * every - unwanted


def states(kind: Any, shape: dict[str, Any], device: str, wanted: bool) -> Any:
    rows = shape.get("num_layers", 1) * (1 + shape.get("bidirectional", False))
    width = shape.get("proj_size") or HIDDEN
    hx = torch.zeros(rows, BATCH, width, device=device, requires_grad=wanted)
    cx = torch.zeros(rows, BATCH, HIDDEN, device=device, requires_grad=wanted)
    return (hx, cx) if kind is nn.LSTM else hx


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("training", [False, True])
@each_layer
def test_a_forward_costs_its_gates_products(
    kind: Any, gates: int, shape: dict[str, Any], training: bool, batch_first: bool
) -> None:
    layer = kind(WIDE, HIDDEN, batch_first=batch_first, **shape).train(training)
    size = (BATCH, LENGTH, WIDE) if batch_first else (LENGTH, BATCH, WIDE)
    assert count_forward(layer, torch.empty(size)).flop == forward(gates, shape)


@pytest.mark.parametrize(("wants_input", "wants_state"), [(False, False), (True, True)])
@each_layer
def test_a_backward_costs_twice_the_forward_less_what_no_one_wants(
    kind: Any, gates: int, shape: dict[str, Any], wants_input: bool, wants_state: bool
) -> None:
    layer = kind(WIDE, HIDDEN, device="meta", **shape)
    x = torch.empty(LENGTH, BATCH, WIDE, device="meta", requires_grad=wants_input)
    out, _ = layer(x, states(kind, shape, "meta", wants_state))
    with OperatorCounter() as counter:
        out.sum().backward()
    assert counter.work.flop == backward(gates, shape, wants_input, wants_state)


@pytest.mark.parametrize(("wants_input", "wants_state"), [(False, False), (True, True)])
@pytest.mark.parametrize("packed", [False, True])
@each_layer
def test_cudnns_layer_in_one_operator_costs_what_its_products_cost(
    kind: Any, gates: int, shape: dict[str, Any], packed: bool, wants_input: bool, wants_state: bool
) -> None:
    layer = kind(WIDE, HIDDEN, device="meta", **shape)
    weights = layer._flat_weights
    stride = 2 + 2 * layer.bias + bool(shape.get("proj_size"))
    sizes = [BATCH] * LENGTH if packed else []
    x = torch.empty(*([BATCH * LENGTH] if packed else [LENGTH, BATCH]), WIDE, device="meta")
    state = states(kind, shape, "meta", wants_state)
    hx, cx = state if kind is nn.LSTM else (state, None)
    layers, both = layer.num_layers, layer.bidirectional
    common = (2, HIDDEN, layer.proj_size, layers, False, 0.0, True, both, sizes, None)
    start = (x, weights, stride, None, hx, cx)
    operator = torch.ops.aten._cudnn_rnn
    counted = flop_of("aten._cudnn_rnn", operator, (*start, *common), {}, None)
    assert counted == forward(gates, shape)
    wanted = [wants_input, wants_state, wants_state, True]
    args = (*start, None, None, None, None, *common, None, wanted)
    operator = torch.ops.aten._cudnn_rnn_backward
    counted = flop_of("aten._cudnn_rnn_backward", operator, args, {}, None)
    assert counted == backward(gates, shape, wants_input, wants_state)


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch without oneDNN")
@pytest.mark.parametrize("shape", SHAPES)
def test_onednns_layer_in_one_operator_costs_what_its_products_cost(shape: dict[str, Any]) -> None:
    layer = nn.LSTM(WIDE, HIDDEN, **shape)
    with OperatorCounter() as counter:
        out, _ = layer(torch.randn(LENGTH, BATCH, WIDE))
        assert "aten.mkldnn_rnn_layer" in counter.work.operators
        assert counter.work.flop == forward(4, shape)
        out.sum().backward()
    # It computes the gradients of the input and of the initial state, wanted or not.
    assert counter.work.flop == forward(4, shape) + backward(4, shape, True, True)


@pytest.mark.parametrize(("kind", "gates"), [(nn.RNNCell, 1), (nn.GRUCell, 3), (nn.LSTMCell, 4)])
def test_a_cell_costs_one_step(kind: Any, gates: int) -> None:
    work = count_forward(kind(WIDE, HIDDEN), torch.empty(BATCH, WIDE))
    assert work.flop == 2 * BATCH * gates * HIDDEN * (WIDE + HIDDEN)
