"""Loops whose phases are known; see ``test_phases.py``."""

import itertools
import sys

import ticking
import torch
from ticking import MS, Items, Model, Optimizer, advance
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
torch.set_num_threads(1)
model = Model()
optimizer = Optimizer(model.parameters(), lr=0.1)
EPOCHS = 4
STEPS = 3 * EPOCHS
if sys.argv[2:]:
    """Each look at what the hook takes is a millisecond, and epochs are many."""
    ticking.costs, EPOCHS, STEPS = MS, 80, 240

ROWS = torch.ones(6, 8)


def step(inputs, called=model):
    loss = called(inputs).square().mean()
    advance(3)  # of the forward pass, too
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def no_loader():
    for _ in range(STEPS):
        advance(7)
        step(torch.ones(6, 8))


def loader():
    for inputs in DataLoader(Items(4 * STEPS), 4):
        advance(1)
        step(inputs)


def accumulation():
    for number in range(4 * STEPS):
        (model(torch.ones(6, 8)).mean() / 4).backward()
        if number % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()


def accumulation_changes():
    for number in range(STEPS):
        for _ in range(2 if number < STEPS // 2 else 8):
            model(ROWS).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def closure():
    def evaluate():
        advance(7)
        optimizer.zero_grad()
        loss = model(torch.ones(6, 8)).mean()
        loss.backward()
        advance(2)
        return loss

    for _ in range(STEPS):
        optimizer.step(evaluate)


def prefetch():
    batches = iter(DataLoader(Items(4 * STEPS), 4))
    inputs = next(batches)
    while inputs is not None:
        loss = model(inputs).mean()
        inputs = next(batches, None)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def evaluation():
    for _ in range(EPOCHS):
        model.train()
        for inputs in DataLoader(Items(12), 4):
            step(inputs)
        model.eval()
        with torch.no_grad():
            for inputs in DataLoader(Items(16), 8):
                model(inputs)
                advance(4)


def evaluation_and_workers():
    """To make an iterator takes 30 ms, as to start its workers does."""

    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            advance(30)
            return iter([torch.ones(8)] * 12)

    for _ in range(EPOCHS):
        for inputs in DataLoader(Stream(), 4):
            step(inputs)
        model.eval()
        with torch.no_grad():
            for inputs in DataLoader([torch.ones(8)] * 12, 4):
                model(inputs)
        model.train()


def evaluation_without_loader():
    for number in range(STEPS):
        if number % 4 == 3:
            model.eval()
            for _ in range(2):
                with torch.no_grad():
                    model(torch.ones(6, 8))
            model.train()
        step(torch.ones(6, 8))


def careless_evaluation():
    """With gradients, of which nothing is made."""
    for _ in range(EPOCHS):
        model.train()
        for inputs in DataLoader(Items(12), 4):
            step(inputs)
        model.eval()
        for inputs in DataLoader(Items(16), 8):
            model(inputs)
            advance(4)


def forgotten_mode():
    """Between the steps of a training that has one loader, another one is iterated."""
    for _ in range(EPOCHS):
        for inputs in DataLoader(Items(12), 4):
            step(inputs)
        with torch.no_grad():
            for inputs in DataLoader(Items(16), 8):
                model(inputs)
                advance(4)


def last_is_smaller():
    for _ in range(EPOCHS // 4):
        for inputs in DataLoader(Items(4 * 11 + 1), 4):
            step(inputs)


def last_is_smaller_and_evaluated():
    for _ in range(EPOCHS // 4):
        for at, inputs in enumerate(DataLoader(Items(8 * 11 + 7), 8)):
            step(inputs)
            if at in (5, 11):
                model.eval()
                with torch.no_grad():
                    for held_out in DataLoader(Items(8 + 5), 8):
                        model(held_out)
                        advance(4)
                model.train()


def mode_is_set_late():
    """As transformers' Trainer does: the batches of an epoch are fetched before ``train()``."""
    for _ in range(EPOCHS):
        for inputs in DataLoader(Items(12), 4):
            model.train()
            step(inputs)
        model.eval()
        for inputs in DataLoader(Items(16), 8):
            with torch.no_grad():
                model(inputs)


def taught():
    """A teacher that was trained before, in the mode for evaluation, in each step."""
    teacher = Model()
    of_teacher = Optimizer(teacher.parameters(), lr=0.1)
    for _ in range(4):
        teacher(torch.ones(6, 8)).mean().backward()
        of_teacher.step()
    teacher.eval()
    for _ in range(4 * STEPS):
        with torch.no_grad():
            teacher(torch.ones(6, 8))
        step(torch.ones(6, 8))


def fetched_without_gradients():
    batches = iter(DataLoader(Items(4 * STEPS), 4))
    for _ in range(STEPS):
        with torch.no_grad():
            inputs = next(batches)
        step(inputs)


def trained_in_eval_mode():
    model.eval()
    for inputs in DataLoader(Items(4 * STEPS), 4):
        step(inputs)


def teacher():
    other = Model()
    for _ in range(STEPS):
        with torch.no_grad():
            other(torch.ones(6, 8))
        step(torch.ones(6, 8))


def wrapped():
    """As Lightning does: what is called is a part of the outermost module."""

    class Task(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

    task = Task()
    for _ in range(STEPS):
        step(torch.ones(6, 8), task.model)


def functions():
    """No module at all."""
    weight = nn.Parameter(torch.ones(8))
    optimizer = Optimizer([weight], lr=0.1)
    for _ in range(STEPS):
        advance(10)
        (torch.ones(6, 8) * weight).mean().backward()
        optimizer.step()


def two_loaders():
    loaders = DataLoader(Items(4 * STEPS), 4), DataLoader(Items(8 * STEPS), 8)
    for first, second in zip(*loaders, strict=True):
        step(torch.cat([first, second]))


def not_batched():
    for inputs in DataLoader(Items(STEPS, (6, 8)), batch_size=None):
        step(inputs)


def one_item():
    for inputs in DataLoader(Items(STEPS), batch_size=None):
        step(inputs.unsqueeze(0))


def time_first():
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter([torch.ones(30, 8)] * 4 * STEPS)

    def collate(items):
        return torch.stack(items, 1)

    for inputs in DataLoader(Stream(), 4, collate_fn=collate):
        step(inputs)


def recurrent():
    global model, optimizer
    model = Recurrent()
    optimizer = Optimizer(model.parameters(), lr=0.1)
    for _ in range(STEPS):
        step(torch.ones(30, 4, 8), model)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.GRU(8, 8)

    def forward(self, inputs):
        advance(10)
        return self.cells(inputs)[0]


def two_optimizers():
    """Each trains on the same batch, one after the other, as in a GAN."""
    other = Model()
    of_other = Optimizer(other.parameters(), lr=0.1)
    for _ in range(STEPS):
        inputs = torch.ones(6, 8)
        step(inputs)
        other(inputs).mean().backward()
        of_other.step()


def unequal():
    """As in a GAN: four steps of one, then three of the other."""
    taking_turns(STEPS, 4, 3)


def in_turns():
    taking_turns(3, 20, 20)


def taking_turns(rounds, ours, others):
    other = Model()
    of_other = Optimizer(other.parameters(), lr=0.1)
    for _ in range(rounds):
        for _ in range(ours):
            step(ROWS)
        for _ in range(others):
            other(ROWS).mean().backward()
            of_other.step()


def federated():
    """Each of five has an optimizer of its own, and five steps in a turn."""
    each = [Optimizer(model.parameters(), lr=0.1) for _ in range(5)]
    for optimizer in each * 4:
        for _ in range(5):
            model(ROWS).mean().backward()
            optimizer.step()


def of_layers():
    """Each of twelve steps once."""
    each = [Optimizer(model.parameters(), lr=0.1) for _ in range(12)]
    for _ in range(3 * STEPS):
        model(ROWS).mean().backward()
        for optimizer in each:
            optimizer.step()


def line_search():
    """Some closures are called once, some twice."""
    optimizer = Closures(model.parameters(), lr=0.1)

    def evaluate():
        optimizer.zero_grad()
        loss = model(torch.ones(6, 8)).mean()
        loss.backward()
        return loss

    for _ in range(2 * STEPS):
        optimizer.step(evaluate)


def layer_drop():
    """Every third step leaves a layer out, and takes so long that each may be counted again."""
    model = Dropping()
    optimizer = Optimizer(model.parameters(), lr=0.1)
    for _ in range(STEPS):
        model(torch.ones(6, 8)).mean().backward()
        optimizer.step()
        advance(1_000_000)


def episodes():
    """As in reinforcement learning: a model is called for each of some states, then trained."""
    for number in range(2 * STEPS):
        values = [model(torch.ones(8)) for _ in range(2 + number % 2)]
        torch.stack(values).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def two_views():
    for _ in range(STEPS):
        (model(torch.ones(6, 8)) - model(torch.zeros(6, 8))).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def one_image():
    """Not batched: the first dimension is that of channels."""
    global model, optimizer
    model = nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten(0))
    optimizer = Optimizer(model.parameters(), lr=0.1)
    for _ in range(STEPS):
        step(torch.ones(3, 5, 5), model)


def gradients_of_samples():
    def loss(parameters, inputs):
        return torch.func.functional_call(model, parameters, (inputs[None],)).square().mean()

    plain = nn.Linear(8, 4)
    globals().update(model=plain, optimizer=Optimizer(plain.parameters(), lr=0.1))
    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))
    for _ in range(STEPS):
        found = each({name: value.detach() for name, value in plain.named_parameters()}, ROWS)
        for name, parameter in plain.named_parameters():
            parameter.grad = found[name].mean(0)
        optimizer.step()


def repeated_batches():
    """The batches of the shorter loader come again and again, from memory."""
    shorter = itertools.cycle(DataLoader(Items(8), 4))
    for first, second in zip(shorter, DataLoader(Items(8 * STEPS), 8), strict=False):
        step(torch.cat([first, second]))


def real_and_made():
    """As a GAN's discriminator: on the real ones, then on as many that were made."""
    maker = nn.Linear(8, 8)
    of_maker = Optimizer(maker.parameters(), lr=0.1)
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(ROWS).square().mean().backward()
        made = maker(ROWS)
        model(made.detach()).square().mean().backward()
        optimizer.step()
        of_maker.zero_grad()
        model(made).mean().backward()
        of_maker.step()


class Dropping(nn.Module):
    calls = 0

    def __init__(self):
        super().__init__()
        self.first = Model()
        self.second = nn.Linear(4, 4)

    def forward(self, inputs):
        self.calls += 1
        hidden = self.first(inputs)
        return self.second(hidden) if self.calls % 3 else hidden


class Closures(Optimizer):
    calls = 0

    def step(self, closure):
        self.calls += 1
        for _ in range(1 + self.calls % 2):
            loss = torch.enable_grad()(closure)()
        super().step()
        return loss


globals()[sys.argv[1]]()
print("weight", model.state_dict()[next(iter(model.state_dict()))].sum().item().hex())
print("clock", ticking.now > 0)
