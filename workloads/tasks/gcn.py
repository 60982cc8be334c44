"""``gcn``: a graph convolutional network on Cora (Kipf and Welling, arXiv:1609.02907)."""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, log_softmax, nll_loss, relu

from ..data import synthetic
from ..data.cora import read_cora
from ..names import defaults
from ..task import Data, Definition, Scored, Settings, Task

NODES, EDGES, FEATURES, CLASSES = 2708, 5429, 1433, 7
WORDS = 18
HIDDEN = 16
LABELLED_PER_CLASS = 20
UNLABELLED = -100


class GraphConvolution(nn.Module):
    """``adjacency @ (x @ weight) + bias``, from (nodes, in features) to (nodes, out features).

    The sparse product stays in the adjacency's type, float32, under autocast too: sparse matrices
    have no half-precision products.
    """

    def __init__(self, wide: int, narrow: int) -> None:
        super().__init__()
        edge = 1 / math.sqrt(narrow)
        self.weight = nn.Parameter(torch.empty(wide, narrow).uniform_(-edge, edge))
        self.bias = nn.Parameter(torch.empty(narrow).uniform_(-edge, edge))

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        support = x @ self.weight
        with torch.autocast(x.device.type, enabled=False):
            product: Tensor = torch.sparse.mm(adjacency, support.to(adjacency.dtype))
        return product + self.bias


class GCN(nn.Module):
    """Two graph convolutions with dropout 0.5 between: (nodes, features) to (nodes, classes)
    log-odds."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.first = GraphConvolution(features, HIDDEN)
        self.second = GraphConvolution(HIDDEN, classes)

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        x = dropout(relu(self.first(x, adjacency)), 0.5, self.training)
        return log_softmax(self.second(x, adjacency), 1)


def normalised_adjacency(edges: Tensor, nodes: int) -> Tensor:
    """``D^-1/2 (A + I) D^-1/2``, sparse float32 (nodes, nodes), of an undirected graph.

    ``edges`` is int64 (2, N); an edge given twice, in either direction, counts once.
    """
    loops = torch.arange(nodes).repeat(2, 1)
    places = torch.unique(torch.cat((edges, edges.flip(0), loops), 1), dim=1)
    degrees = torch.bincount(places[0], minlength=nodes).float()
    values = (degrees[places[0]] * degrees[places[1]]).rsqrt()
    size = (nodes, nodes)
    return torch.sparse_coo_tensor(places, values, size, check_invariants=True).coalesce()


def labelled(labels: Tensor) -> Tensor:
    """``labels``, int64 (nodes,), of the first 20 nodes of each class; all others are -100, which
    is ignored."""
    kept = torch.full_like(labels, UNLABELLED)
    for label in range(int(labels.max()) + 1):
        nodes = (labels == label).nonzero().flatten()[:LABELLED_PER_CLASS]
        kept[nodes] = label
    return kept


def objective(model: nn.Module, inputs: tuple[Tensor, ...], target: Tensor) -> Scored:
    """Negative log-likelihood on the labelled nodes, which are the same in every step."""
    x, adjacency, nodes = inputs
    own, labels = model(x, adjacency)[nodes], target[nodes]
    return nll_loss(own, labels), own, labels


def predict(model: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor:
    """The log-odds of all nodes, (nodes, classes)."""
    x, adjacency, _ = inputs
    scores: Tensor = model(x, adjacency)
    return scores


def data(settings: Settings) -> Data:
    """Features with rows that sum to 1, adjacency, and the labels of 20 nodes per class."""
    if settings.data is None:
        x, edges, labels = synthetic.graph(NODES, EDGES, FEATURES, CLASSES, WORDS)
    else:
        x, edges, labels = read_cora(settings.data)
    kind = "synthetic" if settings.data is None else "real"
    source = "a graph of Cora's shape" if settings.data is None else "Cora"
    target = labelled(labels)
    nodes = (target != UNLABELLED).nonzero().flatten()
    text = (
        f"{source}: {len(x)} nodes, {edges.shape[1]} citations, {x.shape[1]} features, "
        f"{int(labels.max()) + 1} classes, {len(nodes)} labelled nodes"
    )
    x = x / x.sum(1, keepdim=True).clamp(min=1)
    adjacency = normalised_adjacency(edges, len(x))
    batch = (x, adjacency, nodes), target
    return Data(kind, text, len(x), batch=batch, path=settings.data)


def make(settings: Settings) -> Task:
    """The task with these settings."""
    samples = data(settings)
    assert samples.batch is not None
    (x, _, _), target = samples.batch
    classes = int(target.max()) + 1
    return Task(
        model=GCN(x.shape[1], classes),
        text=f"2 graph convolutions ({x.shape[1]} to {HIDDEN} to {classes}), sparse adjacency",
        data=samples,
        objective=objective,
        optimizer=partial(torch.optim.Adam, lr=settings.lr, weight_decay=5e-4),
        predict=predict,
        sparse=True,
    )


def definition(name: str) -> Definition:
    """The workload."""
    return Definition(defaults(name), make)
