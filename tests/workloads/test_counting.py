"""Counted FLOP against published figures and closed forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.nn import functional as F

from gpuwatch.workloads.counting import (
    count_forward,
    count_step,
)
from gpuwatch.workloads.operators import OperatorCounter
from gpuwatch.workloads.tasks.gcn import GCN, normalised_adjacency
from gpuwatch.workloads.traffic import tensor_bytes

pytestmark = pytest.mark.torch


def sgd(parameters: Any) -> Any:
    return torch.optim.SGD(parameters, lr=0.1)


def objective(model: nn.Module, inputs: Any, target: Any) -> Any:
    scores = model(*inputs)
    return F.cross_entropy(scores, target), scores, target


def work_of(run: Callable[[], Any]) -> Any:
    counter = OperatorCounter()
    with counter:
        run()
    return counter.work


@pytest.mark.parametrize(("kind", "gates"), [(nn.RNN, 1), (nn.GRU, 3), (nn.LSTM, 4)])
def test_recurrent_layers_cost_their_gates_products(kind: Any, gates: int) -> None:
    batch, length, wide, hidden = 4, 100, 20, 40
    layer = kind(wide, hidden, batch_first=True)
    expected = 2 * batch * length * gates * hidden * (wide + hidden)
    assert count_forward(layer, torch.empty(batch, length, wide)).flop == expected


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_an_lstm_is_counted_in_every_data_type(dtype: Any) -> None:
    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(20, 40, batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.lstm(x)[0][:, -1]

    work = count_step(
        Last(), (torch.empty(4, 10, 20),), torch.zeros(4).long(), objective, sgd, dtype
    )
    assert work.flop_forward_per_sample == 2 * 10 * 160 * 60


def test_a_linear_backward_costs_twice_the_forward_less_the_inputs_gradient() -> None:
    model = nn.Sequential(nn.Linear(30, 50), nn.ReLU(), nn.Linear(50, 10))
    work = count_step(model, (torch.empty(8, 30),), torch.zeros(8).long(), objective, sgd)
    first, second = 2 * 8 * 30 * 50, 2 * 8 * 50 * 10
    assert work.flop_forward_per_sample * 8 == first + second
    assert work.flop_per_step == 3 * (first + second) - first


@pytest.mark.parametrize("groups", [1, 4, 16])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_convolutions_backward_costs_twice_its_forward_whatever_its_groups(
    groups: int, transposed: bool
) -> None:
    kind = nn.ConvTranspose2d if transposed else nn.Conv2d
    layer = kind(16, 32, 3, padding=1, groups=groups)
    x = torch.randn(2, 16, 9, 9, requires_grad=True)
    forward = 2 * 2 * 81 * 16 * 32 * 9 // groups
    assert work_of(lambda: layer(x)).flop == forward
    assert work_of(lambda: layer(x).sum().backward()).flop == 3 * forward


def test_a_first_convolution_has_no_gradient_of_its_input() -> None:
    layer = nn.Conv2d(4, 8, 3, groups=2)
    x = torch.randn(1, 4, 5, 5)
    forward = 2 * 9 * 8 * 2 * 9
    assert work_of(lambda: layer(x).sum().backward()).flop == 2 * forward


@pytest.mark.parametrize("device", ["meta", "cpu"])
def test_attention_costs_two_products_forward_and_four_backward(device: str) -> None:
    batch, heads, queries, keys, width = 2, 3, 16, 24, 8
    q = torch.randn(batch, heads, queries, width, device=device, requires_grad=True)
    k = torch.randn(batch, heads, keys, width, device=device, requires_grad=True)
    v = torch.randn(batch, heads, keys, width, device=device, requires_grad=True)
    forward = 4 * batch * heads * queries * keys * width
    assert work_of(lambda: F.scaled_dot_product_attention(q, k, v)).flop == forward
    run = work_of(lambda: F.scaled_dot_product_attention(q, k, v).sum().backward())
    assert run.flop == 3 * forward


def test_sparse_products_cost_what_is_stored_not_what_is_zero() -> None:
    adjacency = normalised_adjacency(torch.tensor([[0, 1, 2], [1, 2, 3]]), 50)
    entries = 50 + 2 * 3
    dense = torch.randn(50, 6, requires_grad=True)
    assert adjacency._nnz() == entries
    assert work_of(lambda: torch.sparse.mm(adjacency, dense)).flop == 2 * entries * 6
    run = work_of(lambda: torch.sparse.mm(adjacency, dense).sum().backward())
    assert run.flop == 2 * 2 * entries * 6


def test_a_graph_network_has_the_closed_forms_flop() -> None:
    nodes, features, hidden, classes = 50, 30, 16, 7
    edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
    inputs = torch.rand(nodes, features), normalised_adjacency(edges, nodes)
    target = torch.zeros(nodes).long()
    work = count_step(GCN(features, classes), inputs, target, objective, sgd, real=True)
    first, second = 2 * nodes * features * hidden, 2 * nodes * hidden * classes
    sparse = 2 * inputs[1]._nnz() * (hidden + classes)
    assert work.flop_forward_per_sample * nodes == first + second + sparse
    assert work.flop_per_step == 3 * (first + second + sparse) - first - sparse


@pytest.mark.parametrize(
    ("run", "flop"),
    [
        (lambda: torch.ones(5, 7) @ torch.ones(7), 2 * 35),
        (lambda: torch.ones(7) @ torch.ones(7), 2 * 7),
        (lambda: torch.addmv(torch.ones(5), torch.ones(5, 7), torch.ones(7)), 2 * 35),
        (lambda: torch.bmm(torch.ones(3, 4, 5), torch.ones(3, 5, 6)), 2 * 3 * 4 * 5 * 6),
        (
            lambda: torch.baddbmm(torch.ones(3, 4, 6), torch.ones(3, 4, 5), torch.ones(3, 5, 6)),
            2 * 3 * 4 * 5 * 6,
        ),
        (lambda: torch.addr(torch.ones(4, 5), torch.ones(4), torch.ones(5)), 2 * 4 * 5),
    ],
)
def test_vector_and_batched_products_have_their_formula(run: Any, flop: int) -> None:
    work = work_of(run)
    assert work.flop == flop
    assert not work.uncounted_operators()


def test_what_does_arithmetic_without_a_formula_is_listed_with_its_calls() -> None:
    work = work_of(lambda: torch.ones(3).exp().exp().clone().view(3, 1))
    assert work.uncounted_operators() == ["aten.exp x2"]


def test_bytes_are_inputs_and_outputs_and_views_move_nothing() -> None:
    a, b = torch.ones(10, 20), torch.ones(20, 30)
    assert work_of(lambda: a @ b).bytes == 4 * (200 + 600 + 300)
    assert work_of(lambda: a.t().reshape(20, 10)[:, 1:].unsqueeze(0)).bytes == 0
    assert work_of(lambda: a.add_(1)).bytes == 4 * 400
    assert work_of(lambda: a.copy_(torch.empty(10, 20))).bytes == 4 * 400
    assert tensor_bytes(torch.ones(1, 20).expand(10, 20)) == 80


def test_half_precision_halves_the_bytes_of_what_runs_in_it_and_keeps_the_flop() -> None:
    model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512))
    inputs, target = (torch.empty(64, 512),), torch.zeros(64).long()
    full = count_step(model, inputs, target, objective, sgd)
    half = count_step(model, inputs, target, objective, sgd, torch.bfloat16)
    assert half.flop_per_step == full.flop_per_step
    assert half.flop_forward_per_sample == full.flop_forward_per_sample
    assert half.bytes_per_step != full.bytes_per_step
    assert "bfloat16" in half.method


@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
@pytest.mark.parametrize("real", [False, True])
def test_counting_leaves_model_statistics_and_random_numbers_alone(dtype: Any, real: bool) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(), nn.Flatten())
    before = {name: value.clone() for name, value in model.state_dict().items()}
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    inputs, target = (torch.rand(2, 3, 5, 5),), torch.zeros(2).long()
    torch.manual_seed(7)
    count_step(model, inputs, target, objective, sgd, dtype, real)
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_weights_that_are_shared_stay_shared_in_the_copy() -> None:
    layer = nn.Linear(8, 8)
    work = count_step(
        nn.Sequential(layer, layer), (torch.empty(2, 8),), torch.zeros(2).long(), objective, sgd
    )
    assert work.flop_forward_per_sample == 2 * 2 * 64


def test_the_optimizers_update_is_in_the_bytes_and_listed() -> None:
    model = nn.Linear(100, 100)
    inputs, target = (torch.empty(1, 100),), torch.zeros(1).long()
    plain = count_step(model, inputs, target, objective, sgd)
    adam = count_step(model, inputs, target, objective, torch.optim.Adam)
    assert adam.flop_per_step == plain.flop_per_step
    assert adam.bytes_per_step > plain.bytes_per_step + 3 * 4 * 100 * 100
    assert any(name.startswith("aten.addcdiv_") for name in adam.uncounted_operators)
