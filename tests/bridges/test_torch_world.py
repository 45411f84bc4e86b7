"""Wrappers and sharded parameters are refused, by the step and by the trainer; company is refused by the step."""

import subprocess
import sys

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import mse_loss

from psidp.bridges.torch import PrivateStep, PrivateTrainer

GOOD = {"clip": 1.0, "noise_multiplier": 1.0, "expected_batch": 8.0}


def step(model):
    return PrivateStep(model, mse_loss, **GOOD)


def trainer(model):
    data = (torch.zeros(20, 3), torch.zeros(20, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return PrivateTrainer(model, optimizer, mse_loss, data, sampling_rate=0.5, clip=1.0, noise_multiplier=1.0, steps=4)


@pytest.fixture
def world(tmp_path):
    """A world of one process, in which wrappers can be made."""
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("made", [step, trainer])
def test_data_parallel_is_refused_wherever_it_is_in_the_model(made):
    with pytest.raises(ValueError, match=r"model \(DataParallel\) spreads .* Give the model inside, \.module"):
        made(nn.DataParallel(nn.Linear(3, 1)))
    with pytest.raises(ValueError, match=r"1 \(DataParallel\) spreads"):
        made(nn.Sequential(nn.Linear(3, 3), nn.DataParallel(nn.Linear(3, 1))))


@pytest.mark.parametrize("made", [step, trainer])
def test_distributed_data_parallel_is_refused_and_the_model_inside_is_taken(made, world):
    wrapped = nn.parallel.DistributedDataParallel(nn.Linear(3, 1))
    with pytest.raises(
        ValueError, match=r"model \(DistributedDataParallel\) spreads .* inside, \.module: in several processes"
    ):
        made(wrapped)
    made(wrapped.module)  # a world of one is no company


@pytest.mark.filterwarnings("ignore:FSDP is switching")
def test_sharded_models_are_refused(world):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
    from torch.distributed.tensor import distribute_module

    mesh = init_device_mesh("cpu", (1,))
    with pytest.raises(ValueError, match=r"model \(FullyShardedDataParallel\) spreads"):
        step(FullyShardedDataParallel(nn.Linear(3, 1), device_id=torch.device("cpu")))
    with pytest.raises(ValueError, match=r"model \(FSDPModule\) spreads .* Give a model that is not sharded"):
        step(fully_shard(nn.Linear(3, 1), mesh=mesh))
    with pytest.raises(ValueError, match=r"weight \(DTensor\) is a part of a tensor that other processes share"):
        step(distribute_module(nn.Linear(3, 1), mesh))


SCRIPT = """
import sys
import torch, torch.distributed as dist
from torch import nn
from psidp.bridges.torch import PrivateStep
made = PrivateStep(nn.Linear(3, 1), nn.functional.mse_loss, clip=1.0, noise_multiplier=1.0, expected_batch=8.0)
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=int(sys.argv[2]), world_size=2)
try:
    made(torch.zeros(4, 3), torch.zeros(4, 1))
except RuntimeError as refusal:
    print(refusal)
dist.destroy_process_group()
"""


def test_each_of_two_processes_is_refused_also_where_they_meet_after_the_step_was_made(tmp_path):
    words = [sys.executable, "-c", SCRIPT, str(tmp_path / "store")]
    both = [subprocess.Popen([*words, rank], stdout=subprocess.PIPE, text=True) for rank in ("0", "1")]
    for process in both:
        told = process.communicate(timeout=300)[0]
        assert told.startswith("world size (processes that train together) must be 1, got 2 from torch.distributed.")


def test_two_processes_of_torchrun_are_refused_before_they_met(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(RuntimeError, match=r"got 2 from the environment's WORLD_SIZE. .* Run one process"):
        step(nn.Linear(3, 1))
    with pytest.raises(RuntimeError, match=r"got 2 from .* Call torch\.distributed\.init_process_group\(\) first"):
        trainer(nn.Linear(3, 1))
    monkeypatch.setenv("WORLD_SIZE", "1")
    trainer(nn.Linear(3, 1)).fit()
