"""Data-parallel or sharded training on two processes, under torchrun or started by itself."""

import gc
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def train(rank: int, ranks: int, init_method: str) -> None:
    dist.init_process_group("gloo", init_method, rank=rank, world_size=ranks)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = TensorDataset(torch.randn(256, 64), torch.randint(10, (256,)))
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
    if "fsdp" in sys.argv:
        from torch.distributed.fsdp import fully_shard

        fully_shard(model)
    else:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sampler = DistributedSampler(data)
    for inputs, labels in DataLoader(data, 16, sampler=sampler):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
    losses = [torch.zeros_like(loss) for _ in range(ranks)]
    dist.all_gather(losses, loss.detach())
    if rank == 0:
        print("losses", *(each.item().hex() for each in losses))
    dist.destroy_process_group()


if __name__ == "__main__":
    if "RANK" in os.environ:
        train(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), "env://")
        gc.collect()  # else gloo's threads may outlive the interpreter, and abort
    else:
        mp.spawn(train, (2, f"file://{os.path.abspath('store')}"), nprocs=2)
