"""Noise on tensors as users call it: answered on the CPU in every layout, or refused before anything is drawn."""

import os
import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import triton

from psidp import GaussianMechanism
from psidp.bridges.torch import add_noise_, release
from psidp.bridges.torch.noise import launch
from psidp.bridges.torch.noise import tensors as noise_module
from psidp.bridges.torch.noise.chacha import Key
from psidp.errors import MissingExtraError
from psidp.noise.gaussian import RoundedGaussian

TYPES = [torch.float32, torch.bfloat16, torch.float64]


@pytest.mark.parametrize("dtype", TYPES)
def test_noise_is_added_in_place_with_its_scale_and_on_its_grid(dtype):
    x = torch.full((300, 100), 5.0, dtype=dtype)
    result = add_noise_(x, sigma=0.25, grid=2.0**-6)
    assert result is x
    steps = x.double() * 2.0**6
    assert torch.equal(steps, steps.round())
    deviation = float((x.double() - 5.0).std())
    assert (
        abs(deviation / 0.25 - 1) < 6 / np.sqrt(2 * x.numel()) + 0.01
    )  # six standard errors, and bfloat16's own rounding


@pytest.mark.parametrize(("dtype", "finer"), [(torch.float32, 16), (torch.bfloat16, 7), (torch.float64, 20)])
def test_the_grid_depends_on_the_type_alone(dtype, finer):
    assert noise_module._rounded(torch.zeros(1, dtype=dtype), 1.5, None).grid == 2.0**-finer


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.t(),
        lambda x: x[::2, 1::3],
        lambda x: x[:, 5],
        lambda x: x.unsqueeze(1),
        lambda x: x[3, 4],
        lambda x: x.view(10, 10, 8, 8).to(memory_format=torch.channels_last),
    ],
)
@pytest.mark.parametrize("dtype", TYPES)
def test_every_layout_is_answered_and_nothing_beside_it_is_touched(view, dtype):
    base = torch.zeros(80, 80, dtype=dtype)
    part = view(base)
    strides = part.stride()
    add_noise_(part, 1.0, grid=2.0**-40)
    assert part.stride() == strides
    assert (part != 0).all()
    if part.untyped_storage().data_ptr() == base.untyped_storage().data_ptr():
        assert int((base != 0).sum()) == part.numel()


@pytest.mark.parametrize(
    "view",
    [lambda x: x[:, 0], lambda x: x[::2], lambda x: x[:, ::2], lambda x: x[:, 1:2], lambda x: x.t(), lambda x: x],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_kernels_leave_no_entry_of_a_view_bare_and_touch_nothing_beside_it(view, dtype, monkeypatch):
    monkeypatch.setattr(noise_module, "_kernels", lambda *_: launch)
    monkeypatch.setattr(torch.cuda, "device", lambda _: nullcontext())
    base = torch.zeros(20, 10, dtype=dtype)
    part, inside = view(base), torch.zeros(20, 10, dtype=torch.bool)
    view(inside).fill_(True)
    with np.errstate(all="ignore"):
        add_noise_(part, 1.0, grid=2.0**-29)
    assert (part != 0).all()
    assert (base[~inside] == 0).all()


def test_the_kernels_refuse_what_is_not_one_stretch_of_memory():
    x, noise = torch.zeros(20)[::2], RoundedGaussian(1.0, 2.0**-16)
    with pytest.raises(ValueError, match="one contiguous stretch"):
        launch.add(x, noise, Key(), launch.layout_of(noise, x, launch.Shape(), 20), launch.Shape())


@pytest.mark.parametrize(
    ("dtype", "grid", "per"),
    [(torch.float32, 2.0**-7, 24), (torch.bfloat16, 2.0**-16, 16), (torch.float64, 2.0**-20, 8)],
)
def test_the_kernels_refuse_a_layout_that_is_not_that_of_the_grid_and_the_type(dtype, grid, per):
    x, noise, shape = torch.zeros(20, dtype=dtype), RoundedGaussian(1.0, grid), launch.Shape()
    assert launch.layout_of(noise, x, shape, 20) == launch.Layout(per, shape.block, 20)
    wrong = [launch.Layout(other, shape.block, 20) for other in {24, 16, 8} - {per}]
    for layout in [*wrong, launch.Layout(per, 2 * shape.block, 20)]:
        with pytest.raises(ValueError, match=rf"layout .* must be Layout\(per={per}, .* got layout=Layout"):
            launch.add(x, noise, Key(), layout, shape)
    assert not x.any()


def test_an_empty_tensor_comes_back_as_it_is():
    assert add_noise_(torch.empty(0, 3), 1.0).shape == (0, 3)


def test_nan_and_infinity_say_nothing():
    x = add_noise_(torch.tensor([float("nan"), float("inf"), -float("inf")]), 1.0)
    assert abs(float(x[0])) < 10
    assert x[1] > 1e30
    assert x[2] < -1e30


def test_autograd_notices_the_change():
    x = torch.zeros(3)
    before = x._version
    add_noise_(x, 1.0)
    assert x._version > before
    with torch.inference_mode():
        add_noise_(torch.zeros(3), 1.0)


def test_a_release_leaves_its_input_alone_and_costs_what_the_mechanism_says():
    x = torch.ones(1000, requires_grad=True)
    released = release(GaussianMechanism(sensitivity=1.0, sigma=2.0), x.detach())
    assert (x == 1).all()
    assert released.guarantee.psi == 0.5
    assert isinstance(released.value, torch.Tensor)
    with pytest.raises(ValueError, match="must not require grad"):
        release(GaussianMechanism(sensitivity=1.0, sigma=2.0), x)


@pytest.mark.parametrize(
    ("tensor", "sigma", "error", "sentence"),
    [
        (torch.zeros(3), 0.0, ValueError, r"sigma .* must be in \(0, inf\), got sigma=0.0"),
        (torch.zeros(3), -1.0, ValueError, r"sigma .* must be in \(0, inf\)"),
        (torch.zeros(3), float("nan"), ValueError, r"sigma .* must be in \(0, inf\)"),
        (torch.zeros(0), 0.0, ValueError, r"sigma .* must be in \(0, inf\)"),
        (torch.zeros(3), torch.ones(()), TypeError, "sigma .* must be a number, got a tensor"),
        (torch.zeros(3, dtype=torch.int64), 1.0, TypeError, "must be a dense tensor of float32, .* got torch.int64"),
        (torch.zeros(3, dtype=torch.float16), 1.0, TypeError, "got torch.float16"),
        (torch.zeros(3, dtype=torch.complex64), 1.0, TypeError, "got torch.complex64"),
        (torch.zeros(3, device="meta"), 1.0, TypeError, "on meta"),
        (torch.eye(3).to_sparse(), 1.0, TypeError, "sparse_coo"),
        (np.zeros(3), 1.0, TypeError, "must be a torch.Tensor, got ndarray"),
        (torch.zeros(3, requires_grad=True), 1.0, ValueError, "must not require grad"),
        (torch.zeros(1).expand(3), 1.0, ValueError, "must not share memory with itself"),
        (torch.zeros(10).unfold(0, 3, 1), 1.0, ValueError, "must not share memory with itself"),
    ],
)
def test_bad_input_is_refused_by_a_sentence(tensor, sigma, error, sentence):
    with pytest.raises(error, match=sentence):
        add_noise_(tensor, sigma)


@pytest.mark.parametrize("grid", [0.3, 2.0, 2.0**-60, -1.0, float("nan")])
def test_a_grid_outside_its_bounds_is_refused(grid):
    with pytest.raises(ValueError, match=r"grid .* must be"):
        add_noise_(torch.zeros(3), 1.0, grid=grid)


@pytest.fixture
def gpu(monkeypatch):
    """A tensor that says it lies on a GPU, as far as the refusals look."""
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    return SimpleNamespace(device=SimpleNamespace(type="cuda"))


def test_a_tensor_on_a_gpu_takes_the_kernels(gpu):
    assert noise_module._kernels(gpu, RoundedGaussian(1.0)) is launch


def test_noise_inside_a_captured_graph_is_refused(gpu, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    with pytest.raises(RuntimeError, match="each replay would draw the same noise again"):
        noise_module._kernels(gpu, RoundedGaussian(1.0))


def test_a_grid_too_fine_for_a_gpu_is_refused(gpu):
    with pytest.raises(ValueError, match=r"must be in \[sigma 2\^-30, sigma\] on a GPU"):
        noise_module._kernels(gpu, RoundedGaussian(1.0, 2.0**-31))


@pytest.mark.parametrize("version", ["2.3.1", "3.2.0"])
def test_an_old_triton_is_refused(gpu, monkeypatch, version):
    monkeypatch.setattr(triton, "__version__", version)
    with pytest.raises(RuntimeError, match=f"needs triton 3.3 or newer, got {version}"):
        noise_module._kernels(gpu, RoundedGaussian(1.0))


def test_a_missing_triton_is_refused_by_the_line_that_installs_it(gpu, monkeypatch):
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(MissingExtraError, match=r"This needs triton. Install it with: pip install 'psidp\[torch\]'"):
        noise_module._kernels(gpu, RoundedGaussian(1.0))


def test_a_missing_torch_is_refused_by_the_line_that_installs_it():
    code = (
        "import importlib.util as u; find = u.find_spec; "
        "u.find_spec = lambda name, *rest: None if name == 'torch' else find(name, *rest); "
        "import psidp.bridges.torch"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ)
    assert done.returncode
    assert "MissingExtraError: This needs torch. Install it with: pip install 'psidp[torch]'" in done.stderr


def test_a_compiled_function_draws_anew_at_every_call():
    @torch.compile(backend="eager")
    def noisy(x):
        return add_noise_(x * 1.0, 1.0)

    assert not torch.equal(noisy(torch.zeros(8)), noisy(torch.zeros(8)))


def test_a_long_tensor_on_a_gpu_has_a_key_for_each_launch(monkeypatch):
    keys, finished = [], []

    def started(part, noise, key, layout, shape):
        assert not finished  # the device is never left idle between two launches
        keys.append(key.words.tobytes())
        return lambda: finished.append(key.words.tobytes())

    monkeypatch.setattr(launch, "LONGEST", 100)
    monkeypatch.setattr(launch, "started", started)
    monkeypatch.setattr(torch.cuda, "device", lambda device: torch.no_grad())
    noise_module._on_the_gpu(launch, torch.zeros(1001), RoundedGaussian(1.0, 2.0**-20))
    assert len(set(keys)) == len(keys) == 11
    assert finished == keys
