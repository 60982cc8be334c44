"""Counted FLOP and bytes of single operators, and where torch's own counter says otherwise."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from gpuwatch.workloads.flop.formulas import flop_of
from gpuwatch.workloads.flop.operators import OperatorCounter, tensor_bytes
from gpuwatch.workloads.tasks.gcn import normalised_adjacency

pytestmark = pytest.mark.torch

Run = Callable[[], Any]


def test_torchs_counter_does_not_warn_in_the_users_log_where_triton_is_missing() -> None:
    program = "import sys; sys.modules['triton'] = None; import gpuwatch.workloads.flop.formulas"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stderr == b""


def work_of(run: Run) -> Any:
    with OperatorCounter() as counter:
        run()
    return counter.work


def ones(*shape: int, dtype: Any = None, grad: bool = False) -> Any:
    return torch.ones(*shape, dtype=dtype, requires_grad=grad)


PRODUCTS: dict[str, tuple[Run, int]] = {
    "matrix": (lambda: ones(3, 4) @ ones(4, 5), 2 * 60),
    "into a given matrix": (lambda: torch.mm(ones(3, 4), ones(4, 5), out=ones(3, 5)), 2 * 60),
    "complex": (lambda: ones(3, 4, dtype=torch.cfloat) @ ones(4, 5, dtype=torch.cfloat), 8 * 60),
    "integers": (
        lambda: torch._int_mm(ones(17, 8, dtype=torch.int8), ones(8, 16, dtype=torch.int8)),
        2 * 17 * 8 * 16,
    ),
    "matrix and vector": (lambda: ones(5, 7) @ ones(7), 2 * 35),
    "vectors": (lambda: ones(7) @ ones(7), 2 * 7),
    "addmv": (lambda: torch.addmv(ones(5), ones(5, 7), ones(7)), 2 * 35),
    "addr": (lambda: torch.addr(ones(4, 5), ones(4), ones(5)), 2 * 20),
    "bmm": (lambda: torch.bmm(ones(3, 4, 5), ones(3, 5, 6)), 2 * 360),
    "baddbmm": (lambda: torch.baddbmm(ones(3, 4, 6), ones(3, 4, 5), ones(3, 5, 6)), 2 * 360),
    "baddbmm in place": (lambda: ones(3, 4, 6).baddbmm_(ones(3, 4, 5), ones(3, 5, 6)), 2 * 360),
    "addbmm": (lambda: torch.addbmm(ones(4, 6), ones(3, 4, 5), ones(3, 5, 6)), 2 * 360),
    "einsum": (
        lambda: torch.einsum("bij,bjk,kl->bil", ones(2, 3, 4), ones(2, 4, 5), ones(5, 6)),
        2 * (2 * 3 * 4 * 5 + 2 * 3 * 5 * 6),
    ),
    "bilinear": (
        lambda: F.bilinear(ones(2, 3), ones(2, 5), ones(7, 3, 5)),
        2 * 2 * 7 * 5 * (3 + 1),
    ),
    "convolution, padded to the same size": (
        lambda: F.conv2d(ones(1, 3, 8, 8), ones(4, 3, 2, 2), padding="same"),
        2 * 64 * 4 * 3 * 4,
    ),
    "dilated convolution": (
        lambda: F.conv2d(ones(1, 3, 9, 9), ones(4, 3, 3, 3), dilation=2),
        2 * 25 * 4 * 3 * 9,
    ),
    "convolution over time, batch and channels": (
        lambda: torch.conv_tbc(ones(9, 2, 3), ones(4, 3, 5), ones(5)),
        2 * 6 * 2 * 4 * 3 * 5,
    ),
}


@pytest.mark.parametrize("graph", [True, False], ids=["graph", "inference"])
@pytest.mark.parametrize(("run", "flop"), PRODUCTS.values(), ids=list(PRODUCTS))
def test_a_product_costs_two_flop_for_each_pair_that_meets(
    run: Run, flop: int, graph: bool
) -> None:
    with torch.inference_mode(not graph):
        assert work_of(run).flop == flop


def test_layers_cost_the_same_without_autograd_where_they_come_in_one_piece() -> None:
    layers = nn.Linear(30, 20), nn.Conv2d(3, 4, 3), nn.LSTM(6, 8)
    inputs = torch.ones(7, 30), torch.ones(2, 3, 8, 8), torch.ones(5, 2, 6)
    for layer, x in zip(layers, inputs, strict=True):
        trained = work_of(lambda layer=layer, x=x: layer(x))
        with torch.inference_mode():
            inferred = work_of(lambda layer=layer, x=x: layer(x))
        assert inferred.flop == trained.flop > 0


def test_the_gradients_of_a_bilinear_form_cost_their_products() -> None:
    n, i, j, o = 2, 3, 5, 7
    out = F.bilinear(ones(n, i, grad=True), ones(n, j, grad=True), ones(o, i, j, grad=True))
    expected = 6 * n * o * i * j + 2 * n * (i * j + i * o + o * j)
    assert work_of(lambda: out.sum().backward()).flop == expected


@pytest.mark.parametrize(
    ("a", "b", "flop"),
    [
        ((12, 16), (3, 16, 32), 2 * 12 * 16 * 32),
        ((3, 12, 16), (16, 32), 2 * 12 * 16 * 32),
        ((12, 16), (16, 32), 2 * 12 * 16 * 32),
        ((3, 12, 16), (3, 16, 32), 2 * 3 * 12 * 16 * 32),
    ],
)
@pytest.mark.parametrize("name", ["_grouped_mm", "_scaled_grouped_mm"])
def test_grouped_products_cost_what_their_groups_cost(
    name: str, a: tuple[int, ...], b: tuple[int, ...], flop: int
) -> None:
    args = torch.empty(a, device="meta"), torch.empty(b, device="meta")
    assert flop_of(f"aten.{name}", None, args, {}, None) == flop


@pytest.mark.skipif(not hasattr(F, "grouped_mm"), reason="this torch has no grouped product")
def test_a_grouped_product_and_its_gradients_are_counted_as_they_run() -> None:
    a = ones(12, 16, dtype=torch.bfloat16, grad=True)
    b = ones(3, 16, 32, dtype=torch.bfloat16, grad=True)
    ends = torch.tensor([4, 8, 12], dtype=torch.int32)
    forward = 2 * 12 * 16 * 32
    assert work_of(lambda: F.grouped_mm(a, b, offs=ends)).flop == forward
    out = F.grouped_mm(a, b, offs=ends)
    grad = torch.ones_like(out)
    assert work_of(lambda: out.backward(grad)).flop == 2 * forward


def test_packed_and_scaled_matrices_cost_what_the_unpacked_would() -> None:
    x, out = torch.empty(12, 16, device="meta"), torch.empty(12, 32, device="meta")
    packed = torch.empty(4, 1, 32, 4, device="meta")
    flop = 2 * 12 * 16 * 32
    assert flop_of("aten._weight_int4pack_mm", None, (x, packed, 32, None), {}, out) == flop
    weight = torch.empty(16, 32, device="meta")
    assert flop_of("aten._scaled_mm", None, (x, weight, None, None), {}, out) == flop
    float4 = getattr(torch, "float4_e2m1fn_x2", None)
    if float4 is not None:
        halves = torch.empty(12, 8, dtype=float4, device="meta")
        weight = torch.empty(8, 32, dtype=float4, device="meta")
        assert flop_of("aten._scaled_mm", None, (halves, weight, None, None), {}, out) == flop


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


def test_convolutions_by_name_of_their_library_have_the_formula_of_all() -> None:
    x, w = torch.empty(2, 4, 9, 9, device="meta"), torch.empty(8, 4, 3, 3, device="meta")
    out = torch.empty(2, 8, 4, 4, device="meta")
    library = (x, w, [0, 0], [2, 2], [1, 1], 1, True, False, False)
    assert flop_of("aten.cudnn_convolution", None, library, {}, out) == 2 * 2 * 16 * 8 * 4 * 9
    slow = (x, w, [3, 3], None, [2, 2], [0, 0])
    assert flop_of("aten._slow_conv2d_forward", None, slow, {}, out) == 2 * 2 * 16 * 8 * 4 * 9
    wide = torch.empty(2, 4, 19, 19, device="meta")
    back = (x, torch.empty(4, 8, 3, 3, device="meta"), [0, 0], [0, 0], [2, 2], [1, 1], 1)
    flop = 2 * 2 * 81 * 8 * 4 * 9
    assert flop_of("aten.cudnn_convolution_transpose", None, back, {}, wide) == flop


def test_sparse_products_cost_what_is_stored_not_what_is_zero() -> None:
    adjacency = normalised_adjacency(torch.tensor([[0, 1, 2], [1, 2, 3]]), 50)
    entries = 50 + 2 * 3
    dense = torch.randn(50, 6, requires_grad=True)
    assert adjacency._nnz() == entries
    assert work_of(lambda: torch.sparse.mm(adjacency, dense)).flop == 2 * entries * 6
    run = work_of(lambda: torch.sparse.mm(adjacency, dense).sum().backward())
    assert run.flop == 2 * 2 * entries * 6


def test_a_sparse_matrix_of_blocks_stores_whole_blocks() -> None:
    blocks = torch.zeros(8, 8)
    blocks[0, 0] = blocks[5, 5] = 1
    sparse = blocks.to_sparse_bsr((2, 2))
    assert work_of(lambda: sparse @ ones(8, 3)).flop == 2 * (2 * 4) * 3
    assert tensor_bytes(sparse) == 8 * 4 + (5 + 2) * 8


def lstm() -> None:
    nn.LSTM(20, 40)(torch.ones(10, 4, 20))


def grouped_convolution() -> None:
    x = torch.ones(1, 16, 8, 8, requires_grad=True)
    F.conv2d(x, torch.ones(16, 4, 3, 3, requires_grad=True), groups=4, padding=1).sum().backward()


def encoder() -> None:
    layer = nn.TransformerEncoderLayer(16, 4, 24, batch_first=True).eval()
    with torch.no_grad():
        layer(torch.ones(2, 6, 16))


def attention() -> None:
    q = torch.ones(1, 2, 16, 8, requires_grad=True)
    F.scaled_dot_product_attention(q, q, q).sum().backward()


TORCH: dict[str, tuple[Run, int, int]] = {
    "LSTM, oneDNN's in one operator: nothing": (lstm, 2 * 40 * 160 * 60, 0),
    "convolution in groups: the weight's gradient times the groups": (
        grouped_convolution,
        3 * (2 * 64 * 16 * 4 * 9),
        (1 + 1 + 4) * (2 * 64 * 16 * 4 * 9),
    ),
    "fused encoder layer: nothing": (
        encoder,
        2 * 12 * (4 * 16 * 16 + 2 * 16 * 24) + 4 * 2 * 36 * 16,
        0,
    ),
    "attention: the backward's recomputation of the scores too": (
        attention,
        3 * (4 * 2 * 16 * 16 * 8),
        7 * (2 * 2 * 16 * 16 * 8),
    ),
    "matrix and vector: nothing": (lambda: ones(5, 7) @ ones(7), 2 * 35, 0),
    "addbmm: nothing": (PRODUCTS["addbmm"][0], 2 * 360, 0),
    "bilinear: nothing": (PRODUCTS["bilinear"][0], PRODUCTS["bilinear"][1], 0),
    "integers: nothing": (PRODUCTS["integers"][0], PRODUCTS["integers"][1], 0),
    "sparse: as if dense": (
        lambda: torch.eye(50).to_sparse() @ ones(50, 6),
        2 * 50 * 6,
        2 * 50 * 50 * 6,
    ),
    "complex: as if real": (PRODUCTS["complex"][0], 8 * 60, 2 * 60),
}


@pytest.mark.parametrize(("run", "right", "torchs"), TORCH.values(), ids=list(TORCH))
def test_a_count_is_right_where_torchs_own_is_not(run: Run, right: int, torchs: int) -> None:
    with FlopCounterMode(display=False) as own:
        run()
    assert work_of(run).flop == right
    assert right != torchs
    if torch.__version__.startswith("2.15."):  # another version may have fixed it
        assert own.get_total_flops() == torchs


LISTED: dict[str, Run] = {
    "native_layer_norm": lambda: F.layer_norm(ones(2, 8), [8]),
    "native_group_norm": lambda: F.group_norm(ones(2, 8), 2),
    "gelu": lambda: F.gelu(ones(2, 8)),
    "max_pool2d_with_indices": lambda: F.max_pool2d(ones(1, 1, 4, 4, grad=True), 2),
    "_softmax": lambda: ones(2, 8).softmax(-1),
    "_fft_r2c": lambda: torch.fft.rfft(ones(16)),
    "_euclidean_dist": lambda: torch.cdist(ones(30, 4), ones(40, 4)),
    "_embedding_bag": lambda: F.embedding_bag(
        torch.tensor([1, 2]), ones(10, 3, grad=True), torch.tensor([0])
    ),
    "_foreach_add_": lambda: torch._foreach_add_([ones(3)], 1.0),
}


@pytest.mark.parametrize("operator", LISTED)
def test_arithmetic_without_a_formula_is_listed_and_not_zero(operator: str) -> None:
    work = work_of(LISTED[operator])
    assert f"aten.{operator} x1" in work.uncounted_operators()
    row = next(row for row in work.table() if row["name"] == f"aten.{operator}")
    assert row["flop"] is None


def test_operators_of_other_libraries_are_listed_too() -> None:
    library = torch.library.Library("gpuwatch_tests", "DEF")
    library.define("thrice(Tensor x) -> Tensor")
    library.impl("thrice", lambda x: 3 * x, "CPU")
    work = work_of(lambda: torch.ops.gpuwatch_tests.thrice(ones(4)))
    assert "gpuwatch_tests.thrice x1" in work.uncounted_operators()


def test_matrices_of_different_shapes_in_one_tensor_are_listed() -> None:
    nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])
    for graph in (True, False):
        with torch.inference_mode(not graph):
            work = work_of(lambda: nested @ nested.transpose(1, 2))
        assert work.flop == 0
        assert any("mm" in name or "matmul" in name for name in work.uncounted_operators())


def test_what_moves_data_costs_no_flop_and_is_not_listed() -> None:
    work = work_of(lambda: torch.cat([ones(3).clone(), ones(3)]))
    assert work.uncounted_operators() == []
    assert {row["flop"] for row in work.table()} == {0}


def test_bytes_are_inputs_and_outputs_and_views_move_nothing() -> None:
    a, b = torch.ones(10, 20), torch.ones(20, 30)
    assert work_of(lambda: a @ b).bytes == 4 * (200 + 600 + 300)
    assert work_of(lambda: a.t().reshape(20, 10)[:, 1:].unsqueeze(0)).bytes == 0
    assert work_of(lambda: a.add_(1)).bytes == 4 * 400
    assert work_of(lambda: a.copy_(torch.empty(10, 20))).bytes == 4 * 400
    assert tensor_bytes(torch.ones(1, 20).expand(10, 20)) == 80


def test_a_result_that_is_given_is_written_and_not_read() -> None:
    out = torch.empty(10, 30)
    a, b = torch.ones(10, 20), torch.ones(20, 30)
    assert work_of(lambda: torch.mm(a, b, out=out)).bytes == 4 * (200 + 600 + 300)


def test_lists_of_tensors_changed_in_place_are_read_and_written() -> None:
    tensors = [torch.ones(10), torch.ones(20)]
    assert work_of(lambda: torch._foreach_mul_(tensors, 2.0)).bytes == 4 * 2 * 30


def test_of_a_table_only_the_rows_taken_are_read() -> None:
    table, rows = torch.ones(1000, 8), torch.tensor([3, 5])
    assert work_of(lambda: F.embedding(rows, table)).bytes == 16 + 2 * (2 * 8 * 4)
    assert work_of(lambda: table[rows]).bytes == 16 + 2 * (2 * 8 * 4)
    often = torch.zeros(100, dtype=torch.long)
    assert work_of(lambda: F.embedding(often, table[:5])).bytes == 800 + 3200 + 160
