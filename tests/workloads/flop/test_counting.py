"""Counted FLOP against published figures and closed forms."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.nn import functional as F

from gpuwatch.workloads.flop.counting import count_step
from gpuwatch.workloads.flop.operators import Cost, Work
from gpuwatch.workloads.tasks.gcn import GCN, normalised_adjacency

pytestmark = pytest.mark.torch


def sgd(parameters: Any) -> Any:
    return torch.optim.SGD(parameters, lr=0.1)


def objective(model: nn.Module, inputs: Any, target: Any) -> Any:
    scores = model(*inputs)
    return F.cross_entropy(scores, target), scores, target


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


def test_forward_and_backward_add_up_and_so_do_the_rows_of_the_table() -> None:
    model = nn.Sequential(nn.Linear(30, 50), nn.ReLU(), nn.Linear(50, 10))
    work = count_step(model, (torch.empty(8, 30),), torch.zeros(8).long(), objective, sgd)
    assert work.flop_forward_per_step == 8 * work.flop_forward_per_sample
    assert work.flop_forward_per_step + work.flop_backward_per_step == work.flop_per_step
    assert sum(row["flop"] or 0 for row in work.operators) == work.flop_per_step
    assert sum(row["bytes"] for row in work.operators) == work.bytes_per_step
    rows = {row["name"]: row for row in work.operators}
    assert work.operators[0]["name"] == "aten.mm"
    assert rows["aten.addmm"]["calls"] == 2
    assert rows["aten.addmm"]["flop"] == work.flop_forward_per_step
    assert rows["aten.mm"]["flop"] == work.flop_backward_per_step
    assert rows["aten.relu"]["flop"] is None
    assert "aten.relu x1" in work.uncounted_operators


def test_a_product_in_the_optimizer_is_listed_and_no_model_flop() -> None:
    class Turning(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.data.add_(parameter.grad @ parameter.grad.t() @ parameter.grad)

    model = nn.Linear(30, 50, bias=False)
    work = count_step(
        model, (torch.empty(8, 30),), torch.zeros(8).long(), objective, lambda p: Turning(p, lr=1)
    )
    assert work.flop_per_step == 2 * (2 * 8 * 30 * 50)
    assert "aten.mm x2" in work.uncounted_operators
    assert sum(row["flop"] or 0 for row in work.operators) == work.flop_per_step


def test_a_long_table_names_the_largest_and_adds_up_the_rest() -> None:
    work = Work({f"aten.f{n}": Cost(1, n, 2 * n, int(n == 0)) for n in range(60)})
    rows = work.table()
    assert len(rows) == 41
    assert [row["name"] for row in rows[:2]] == ["aten.f59", "aten.f58"]
    assert rows[-1] == {
        "name": "(others)",
        "calls": 20,
        "flop": sum(range(20)),
        "bytes": 2 * sum(range(20)),
    }
    assert len(Work({"aten.mm": Cost(1, 2, 3)}).table()) == 1
