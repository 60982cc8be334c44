"""Only inference: no step of an optimizer is ever taken."""

import sys
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Sequential(nn.Linear(64, 256), nn.ReLU()), nn.Linear(256, 10)).eval()
loader = DataLoader(TensorDataset(torch.randn(152, 64)), 16)


def of_loader():
    with torch.inference_mode():
        for (inputs,) in loader:
            print("sum", model(inputs).sum().item().hex())


@torch.no_grad()
def of_towers():
    """The words once, then images; each beside what it is compared with."""
    words, other = nn.Linear(8, 4), nn.Linear(10, 4)
    print("words", words(torch.randn(3, 8)).sum().item().hex())
    for (inputs,) in loader:
        print("sum", other(model(inputs)).sum().item().hex())


@torch.no_grad()
def failing():
    for (inputs,) in loader:
        try:
            model(inputs[:, 1:])
        except RuntimeError:
            print("sum", model(inputs).sum().item().hex())


def in_threads():
    @torch.inference_mode()
    def answer(inputs):
        return model(inputs).sum().item().hex()

    requests = [torch.randn(4, 64) for _ in range(30)]
    with ThreadPoolExecutor(3) as pool:
        print("sums", *pool.map(answer, requests))


@torch.no_grad()
def compiled(how):
    """Compiled as often as without the hook, and torch warns of nothing."""
    called = model
    if how == "in place":
        model.compile(backend="eager")
    elif how == "in a function":
        called = torch.compile(lambda inputs: model(inputs), backend="eager")
    elif how == "parts":
        model[0] = torch.compile(model[0], backend="eager")
    else:
        called = torch.compile(model, backend="eager")
    for (inputs,) in loader:
        print("sum", called(inputs).sum().item().hex())
    print("graphs", torch._dynamo.utils.counters["stats"]["unique_graphs"])


def before_training(*, prepared):
    """An evaluation before the training, its optimizer made before or after it."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1) if prepared else None
    for inputs, wanted in [(torch.randn(16, 64), torch.randint(0, 10, (16,)))] * 6:
        with torch.no_grad():
            print("evaluated", nn.functional.cross_entropy(model(inputs), wanted).item().hex())
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    model.train()
    for _ in range(8):
        loss = nn.functional.cross_entropy(model(torch.randn(32, 64)), torch.arange(32) % 10)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print("loss", loss.item().hex())


{
    "loader": of_loader,
    "towers": of_towers,
    "failing": failing,
    "threads": in_threads,
    "compiled": lambda: compiled(sys.argv[2]),
    "prepared": lambda: before_training(prepared=True),
    "unprepared": lambda: before_training(prepared=False),
}[sys.argv[1]]()
