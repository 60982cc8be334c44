"""The models of today: parameters and FLOP as published, and losses that fall on real text."""

from __future__ import annotations

import math
import pickle
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

from torchvision.io import ImageReadMode, read_image

from gpuwatch.workloads import ways
from gpuwatch.workloads.data.text import read_text, text_data
from gpuwatch.workloads.failures import EnvironmentFailure, UsageFailure
from gpuwatch.workloads.float8 import Float8Linear, available, with_float8
from gpuwatch.workloads.flop.counting import InferenceCounter, count_step
from gpuwatch.workloads.names import defaults, module_of
from gpuwatch.workloads.ranks import Rank
from gpuwatch.workloads.task import Data, Definition, Generation, Settings, Task
from gpuwatch.workloads.tasks import bert, sentiment, transformer_lm, unet_diffusion
from gpuwatch.workloads.ways import Train, check_compiler, generate, generate_ends, memory_format
from tests.workloads.forward import count_forward

pytestmark = pytest.mark.torch

CPU = torch.device("cpu")
REPOSITORY = Path(__file__).parents[3]
ONE_PERCENT = 0.01


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Steps this small take longer with more: on a busy machine most of the time is waiting."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@contextmanager
def shapes_alone() -> Iterator[None]:
    """Make models without data: 7 B parameters need no memory."""
    with torch.device("meta"):
        yield


def parameters(model: Any) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def tokens(samples: int, length: int) -> Any:
    return torch.zeros(samples, length, dtype=torch.long, device="meta")


# transformer-lm

DECODERS = {
    **transformer_lm.LAYOUTS,
    **{f"moe-{size}": layout for size, layout in transformer_lm.MIXTURES.items()},
    **{f"attention-{size}": layout for size, layout in transformer_lm.ATTENTIONS.items()},
}
PUBLISHED_LM = {  # parameters, and those that a token uses
    "260k": (260_032,) * 2,  # the table of llama2.c's models, and their layouts
    "15m": (15_191_712,) * 2,
    "42m": (41_689_600,) * 2,
    "110m": (109_529_856,) * 2,
    "1b": (1_100_048_384,) * 2,  # TinyLlama's model card
    "3b": (3_426_473_600,) * 2,  # OpenLLaMA's 3B
    "7b": (6_738_415_616,) * 2,  # Llama 2's 7B
    "moe-1m": (260_032 + 5 * 64 * (7 * 3 * 172 + 8), 260_032 + 5 * 64 * (3 * 172 + 8)),
    "moe-43m": (15_191_712 + 6 * 288 * (7 * 3 * 768 + 8), 15_191_712 + 6 * 288 * (3 * 768 + 8)),
    "moe-1b": (1_334_600_000, 428_000_000),  # Granite 3.0 1B-A400M's model card
    "moe-7b": (6_919_161_856, 1_282_000_000),  # OLMoE's checkpoint, and its paper's 1.3 B
    "moe-47b": (46_702_792_704, 12_879_925_248),  # Mixtral's checkpoint, and its paper's 13 B
}
ONE_LAYER = 4 * 1024**2 + 3 * 1024 * 64 + 256 * 1024  # attention, a small SwiGLU, the tokens


@pytest.mark.parametrize("size", DECODERS)
def test_a_decoder_has_the_published_parameters_and_the_closed_forms_flop(size: str) -> None:
    layout = DECODERS[size]
    with shapes_alone():
        model = transformer_lm.Decoder(layout)
    found = parameters(model), layout.active
    assert found == pytest.approx(PUBLISHED_LM.get(size, (ONE_LAYER,) * 2), rel=ONE_PERCENT)
    assert parameters(model) == layout.extent.parameters
    length = layout.context
    products = layout.active - (0 if layout.tied else layout.vocabulary * layout.width)
    # Two FLOP for each weight and token, and two products of all pairs of tokens per layer.
    closed = 2 * products * length + 4 * layout.layers * layout.width * length**2
    assert count_forward(model, tokens(1, length)).flop == pytest.approx(closed, rel=ONE_PERCENT)


def test_the_experts_work_is_the_same_in_every_data_type() -> None:
    model = transformer_lm.Decoder(transformer_lm.MIXTURES["1m"])
    text, make = torch.zeros(2, 64, dtype=torch.long), torch.optim.AdamW
    single, half = (
        count_step(model, (text,), text, transformer_lm.objective, make, dtype).flop_per_step
        for dtype in (None, torch.bfloat16)
    )
    assert single == half > 0


def test_each_token_gets_the_weighted_sum_of_its_two_likeliest_experts() -> None:
    torch.manual_seed(0)
    layer = transformer_lm.Experts(transformer_lm.MIXTURES["1m"]).eval()
    given = torch.randn(2, 3, 64)
    with torch.no_grad():
        found, scores = layer(given), layer.router(given)
        for place in ((0, 0), (1, 2)):
            best = scores[place].topk(2)
            each = [layer.experts[number](given[place]) for number in best.indices.tolist()]
            wanted = sum(a * b for a, b in zip(best.values.softmax(0), each, strict=True))
            assert torch.allclose(found[place], wanted, atol=1e-6)
        alone = layer(given[:1, :1])[0, 0]  # most experts have no token
    assert torch.allclose(alone, found[0, 0], atol=1e-6)


def test_the_sizes_by_name_are_those_of_the_models() -> None:
    assert set(defaults("transformer-lm").sizes) == set(transformer_lm.LAYOUTS)
    assert set(defaults("moe-lm").sizes) == set(transformer_lm.MIXTURES)
    assert set(defaults("attention").sizes) == set(transformer_lm.ATTENTIONS)
    assert set(defaults("bert").sizes) == set(bert.LAYOUTS)
    assert set(defaults("unet-diffusion").sizes) == set(unet_diffusion.WIDTHS)


def test_a_token_does_not_see_those_after_it() -> None:
    torch.manual_seed(0)
    model = transformer_lm.Decoder(transformer_lm.LAYOUTS["260k"]).eval()
    text = torch.randint(512, (1, 12))
    other = text.clone()
    other[0, 8:] = torch.randint(512, (4,))
    with torch.no_grad():
        one, two = model(text), model(other)
    assert torch.allclose(one[:, :8], two[:, :8], atol=1e-5)
    assert not torch.allclose(one[:, 8:], two[:, 8:], atol=1e-3)


def test_decoding_with_the_cache_gives_the_tokens_of_the_whole_pass() -> None:
    torch.manual_seed(0)
    model = transformer_lm.Decoder(transformer_lm.LAYOUTS["260k"]).eval()
    text = torch.randint(512, (2, 10))
    with torch.no_grad():
        whole = model(text)
        cache = model.cache(2, 10)
        first = model(text[:, :7], cache)
        rest = [model(text[:, place : place + 1], cache) for place in range(7, 10)]
    assert torch.allclose(torch.cat([first, *rest], 1), whole[:, 6:], atol=1e-4)
    assert cache.used == 10


def test_decodes_work_is_that_of_all_its_tokens_and_needs_more_bytes_per_flop() -> None:
    layout, generation = transformer_lm.LAYOUTS["260k"], Generation(24, 8)
    with shapes_alone():
        model = transformer_lm.Decoder(layout)

    def count(run: Any) -> Any:
        def parts(model: Any, inputs: Any, end: Any) -> Any:
            return run(model, inputs[0], generation, end)

        return InferenceCounter(model, (tokens(4, 24),), parts, torch.bfloat16)

    whole, ends = count(generate), count(generate_ends)
    prefill, decode = whole.parts
    assert vars(ends.parts[1].times(7, 2)) == vars(decode)
    assert ends.parts[0].flop == prefill.flop
    assert prefill.flop / prefill.bytes > 4 * decode.flop / decode.bytes
    head = layout.width // layout.heads
    assert whole.result.tensor.nbytes == 5 * 2 * 4 * layout.key_heads * (24 + 8) * head * 2


# bert

PUBLISHED_BERT = {  # of the released checkpoints, uncased: the encoder with its pooler
    "tiny": 4_385_920,
    "mini": 11_170_560,
    "small": 28_763_648,
    "medium": 41_373_184,
    "base": 109_482_240,
    "large": 335_141_888,
}


@pytest.mark.parametrize("size", defaults("bert").sizes)
def test_an_encoder_has_the_published_parameters(size: str) -> None:
    with shapes_alone():
        model = bert.Bert(*bert.LAYOUTS[size])
    width = bert.LAYOUTS[size][1]
    head = width**2 + 3 * width + bert.VOCABULARY  # what predicts tokens
    pooler = width**2 + width  # what judges pairs of sentences, and is not trained here
    assert parameters(model) - head + pooler == PUBLISHED_BERT[size]
    assert parameters(model) == bert.extent(size).parameters


def test_berts_flop_are_those_published_and_of_the_closed_form() -> None:
    with shapes_alone():
        model = bert.Bert(*bert.LAYOUTS["base"])
    layers, width, length = 12, 768, bert.LENGTH
    encoder = layers * (24 * width**2 * length + 4 * width * length**2)
    head = 2 * length * (width**2 + width * bert.VOCABULARY)
    assert count_forward(model, tokens(1, length)).flop == encoder + head
    assert encoder == pytest.approx(22.5e9, rel=ONE_PERCENT)  # arXiv:1909.10351, table 1


def test_bert_predicts_15_percent_of_the_tokens_and_sees_few_of_them() -> None:
    shown: list[Any] = []

    class Look(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, given: Any) -> Any:
            shown.append(given)
            return torch.zeros(*given.shape, bert.VOCABULARY)

    torch.manual_seed(0)
    text = torch.full((5, 400), 1_007)
    bert.objective(Look(), (text,), text)
    masked = (shown[0] == bert.MASK).float().mean().item()
    changed = (shown[0] != text).float().mean().item()
    assert masked == pytest.approx(0.12, abs=0.03)
    assert changed == pytest.approx(0.135, abs=0.03)


# unet-diffusion


def test_the_unet_is_ddpms() -> None:
    with shapes_alone():
        model = unet_diffusion.UNet(unet_diffusion.WIDTHS["ddpm"])
    assert parameters(model) / 1e6 == pytest.approx(35.7, rel=ONE_PERCENT)  # arXiv:2006.11239
    image = torch.zeros(1, 3, 32, 32, device="meta")
    work = count_forward(model, image, torch.zeros(1, dtype=torch.long, device="meta"))
    attention = 4 * 5 * 256**2 * 256 + 4 * 16**2 * 256  # five of 16 x 16 pixels, one of 4 x 4
    # arXiv:2305.10924, table 1: 6.1 G multiply-accumulates of layers, without attention's products.
    assert (work.flop - attention) / 2 == pytest.approx(6.1e9, rel=ONE_PERCENT)


def test_the_small_unet_is_ddpms_with_a_quarter_of_its_channels() -> None:
    pixels, quarter, wide = 32 * 32, unet_diffusion.WIDTHS["small"], unet_diffusion.WIDTHS["ddpm"]
    times = torch.zeros(1, dtype=torch.long, device="meta")

    def by_square(width: int) -> tuple[float, float]:
        """Parameters and FLOP of products of channels with channels, by the square of the first."""
        with shapes_alone():
            model = unet_diffusion.UNet(width)
        flop = count_forward(model, torch.zeros(1, 3, 32, 32, device="meta"), times).flop
        own = sum(each.numel() for each in model.parameters() if each.ndim > 1)
        # Of and to three colours; all pairs of the pixels of 16 x 16 (five times) and of 4 x 4.
        colours = 2 * 3 * 3**2 * width
        pairs = 4 * 2 * width * (5 * 256**2 + 16**2)
        return (own - colours) / width**2, (flop - 2 * colours * pixels - pairs) / width**2

    small, large = by_square(quarter), by_square(wide)
    assert quarter * 4 == wide and small == pytest.approx(large, rel=1e-3)
    with shapes_alone():
        assert parameters(unet_diffusion.UNet(quarter)) == pytest.approx(2.24e6, rel=ONE_PERCENT)


def test_noise_takes_an_image_away_as_time_goes_on() -> None:
    image, noise = torch.ones(3, 1, 2, 2), torch.zeros(3, 1, 2, 2)
    times = torch.tensor([0, 500, 999])
    first, middle, last = unet_diffusion.noisy(image, times, noise)[:, 0, 0, 0].tolist()
    assert first > 0.99 > middle > 0.5 > 0.05 > last >= 0


# sentiment


@pytest.mark.parametrize(("kind", "gates"), [("LSTM", 4), ("GRU", 3)])
def test_a_recurrent_classifier_has_the_closed_forms_parameters_and_flop(
    kind: str, gates: int
) -> None:
    with shapes_alone():
        layer = getattr(torch.nn, kind)(128, 128, batch_first=True)
        model = sentiment.Classifier(layer)
    # Keras's IMDB example (imdb_lstm.py) has 2,691,713 with an LSTM, whose biases are single.
    single = 20_000 * 128 + gates * 128 * (128 + 128 + 1) + 129
    assert single == 2_691_713 if kind == "LSTM" else True
    assert parameters(model) == pytest.approx(single, rel=ONE_PERCENT)
    flop = 2 * (80 * gates * 128 * 256 + 128)
    assert count_forward(model, tokens(3, 80)).flop == 3 * flop


# learning


def settings(workload: str, **given: Any) -> Settings:
    own = defaults(workload)
    basis: dict[str, Any] = {
        "batch_size": 4,
        "epochs": 1,
        "steps": 8,
        "warmup": 0,
        "lr": own.lr,
        "dtype": "float32",
        "device": "cpu",
        "data": None,
        "download": False,
        "image_size": None,
        "workers": 0,
        "seed": 0,
        "nproc": 1,
    }
    return Settings(workload=workload, **{**basis, **given})


def task_of(workload: str, own: Settings) -> Task:
    module = import_module(f"gpuwatch.workloads.tasks.{module_of(workload)}")
    definition: Definition = module.definition(workload)
    torch.manual_seed(0)
    return definition.make(own)


def losses(workload: str, own: Settings, steps: int, again: bool = True) -> list[float]:
    """Losses of steps on one batch (``again``), or on the first batches, of real data."""
    task = task_of(workload, own)
    way = Train(task, own, CPU, Rank())
    dataset: Any = task.data.dataset
    assert task.data.kind == "real"
    found = []
    for step in range(steps):
        first = 0 if again else step * own.batch_size
        pairs = [dataset[first + place] for place in range(own.batch_size)]
        inputs, target = (torch.stack(part) for part in zip(*pairs, strict=True))
        torch.manual_seed(1)
        loss = way.step((inputs,), target, lambda: None).loss
        assert loss is not None
        found.append(float(loss))
    return found


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real text: this project's guide."""
    path = tmp_path_factory.mktemp("text") / "guide.txt"
    path.write_bytes((REPOSITORY / "docs" / "workloads.md").read_bytes())
    return path


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real text in the folders of the film reviews: programs are good, prose is bad."""
    folder = tmp_path_factory.mktemp("reviews")
    sources = {
        "pos": sorted((REPOSITORY / "workloads").rglob("*.py")),
        "neg": sorted((REPOSITORY / "docs").glob("*.md")),
    }
    for kind, paths in sources.items():
        place = folder / "train" / kind
        place.mkdir(parents=True)
        lines = [line for path in paths for line in path.read_text().splitlines() if line.strip()]
        for number in range(500):
            chosen = lines[number % len(lines) :][:8]
            (place / f"{number:03}.txt").write_text("\n".join(chosen))
    return folder


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real pictures as CIFAR-10's batches: pieces of this project's screenshots."""
    numpy = pytest.importorskip("numpy")
    image = read_image(str(REPOSITORY / "docs" / "images" / "summary.png"), ImageReadMode.RGB)
    pieces = image.unfold(1, 32, 32).unfold(2, 32, 32).permute(1, 2, 0, 3, 4).reshape(-1, 3072)
    busy = pieces[pieces.float().std(1).argsort(descending=True)[:16]]
    folder = tmp_path_factory.mktemp("pictures")
    batch = {b"data": numpy.asarray(busy), b"labels": [0] * len(busy)}
    (folder / "data_batch_1").write_bytes(pickle.dumps(batch, 2))
    return folder


@pytest.mark.parametrize(
    ("workload", "size"), [("transformer-lm", "260k"), ("moe-lm", "1m"), ("attention", "512")]
)
def test_a_decoders_loss_falls_on_a_real_text(workload: str, size: str, text: Path) -> None:
    own = settings(workload, size=size, data=text, batch_size=1, lr=3e-3)
    found = losses(workload, own, 10)
    vocabulary = 256 if workload == "attention" else 512
    assert found[0] == pytest.approx(math.log(vocabulary), abs=0.3)  # it knows nothing yet
    assert statistics.median(found[-3:]) < 0.8 * found[0]  # one step may fall back


def test_an_encoders_loss_falls_on_a_real_text(text: Path) -> None:
    own = settings("bert", size="tiny", data=text, batch_size=2, lr=3e-3)
    found = losses("bert", own, 10)
    assert found[0] == pytest.approx(10.3, abs=0.4)
    assert statistics.median(found[-3:]) < 0.8 * found[0]  # one step may fall back


@pytest.mark.parametrize("workload", ["sentiment-lstm", "sentiment-gru"])
def test_a_recurrent_networks_loss_falls_on_real_texts(workload: str, reviews: Path) -> None:
    own = settings(workload, data=reviews, batch_size=16, lr=3e-3)
    found = losses(workload, own, 10)
    assert statistics.median(found[-3:]) < 0.7 * found[0]  # one step may fall back


def test_a_unets_loss_falls_on_real_pictures(pictures: Path) -> None:
    own = settings("unet-diffusion", data=pictures, batch_size=1, lr=2e-3)
    found = losses("unet-diffusion", own, 10)
    assert found[0] == pytest.approx(1.0, abs=0.3)  # of noise with variance 1
    assert statistics.median(found[-3:]) < 0.8 * found[0]  # one step may fall back


# ways


@pytest.mark.parametrize(
    ("workload", "size", "of"),
    [
        ("transformer-lm", "260k", "text"),
        ("moe-lm", "1m", "text"),
        ("bert", "tiny", "text"),
        ("unet-diffusion", "small", "pictures"),
    ],
)
def test_checkpointing_gives_the_same_losses(
    workload: str, size: str, of: str, request: pytest.FixtureRequest
) -> None:
    basis = {"size": size, "data": request.getfixturevalue(of), "batch_size": 1, "lr": 3e-3}
    plain = losses(workload, settings(workload, **basis), 2)
    again = losses(workload, settings(workload, **basis, checkpointing=True), 2)
    assert again == pytest.approx(plain, rel=1e-5)


def test_a_compiled_model_takes_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: "/bin/c++" if name == "c++" else None)
    monkeypatch.setattr(ways, "find_spec", lambda _name: None)
    check_compiler(CPU)
    with pytest.raises(EnvironmentFailure, match="needs Triton") as raised:
        check_compiler(torch.device("cuda"))
    assert "pip install triton" in raised.value.hint
    monkeypatch.setattr("shutil.which", lambda _name: None)
    with pytest.raises(EnvironmentFailure, match=r"needs a C\+\+ compiler") as raised:
        check_compiler(CPU)
    assert "install g++, or leave --compile out" in raised.value.hint


@pytest.mark.parametrize(
    "how", [{"accumulate": 4}, {"accumulate": 3}, {"compile": "reduce-overhead"}]
)
def test_parts_of_a_batch_and_compiled_models_give_the_same_weights(how: dict[str, Any]) -> None:
    def objective(model: Any, inputs: Any, target: Any) -> Any:
        scores = model(*inputs)
        return torch.nn.functional.cross_entropy(scores, target), scores, target

    def trained(**given: Any) -> tuple[list[float], Any]:
        torch.manual_seed(0)
        model = torch.nn.Linear(6, 3)
        task = Task(
            model=model,
            text="",
            data=Data("synthetic", "", 8),
            objective=objective,
            optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.5),
        )
        way = Train(task, settings("mnist-cnn", **given), CPU, Rank())
        inputs, target = torch.randn(8, 6), torch.randint(3, (8,))
        marks: list[int] = []
        results = [way.step((inputs,), target, lambda: marks.append(1)) for _ in range(3)]
        assert len(marks) == 3 * len(way.phases)
        assert all(r.scores is not None and r.scores.shape == (8, 3) for r in results)
        return [float(r.loss) for r in results if r.loss is not None], model.weight

    plain, weight = trained()
    other, other_weight = trained(**how)
    assert other == pytest.approx(plain, rel=1e-5)
    assert torch.allclose(other_weight, weight, atol=1e-6)


@pytest.mark.parametrize(
    ("device", "dtype", "asked", "format_"),
    [
        ("cuda", "bfloat16", "auto", "channels_last"),
        ("cuda", "float16", "auto", "channels_last"),
        ("cuda", "bfloat16", "contiguous", "contiguous"),
        ("cuda", "tf32", "auto", "contiguous"),
        ("cpu", "bfloat16", "auto", "contiguous"),
        ("cpu", "float32", "channels_last", "channels_last"),
    ],
)
def test_convolutions_in_half_precision_on_a_gpu_have_their_channels_last(
    device: str, dtype: str, asked: str, format_: str
) -> None:
    given = settings("mnist-cnn", dtype=dtype, memory_format=asked)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3))
    assert memory_format(model, given, torch.device(device)) == format_
    linear = torch.nn.Linear(2, 2)
    if asked == "channels_last":
        with pytest.raises(UsageFailure, match="convolves no images"):
            memory_format(linear, given, torch.device(device))
    else:
        assert memory_format(linear, given, torch.device(device)) == "contiguous"


def test_what_checkpointing_computes_again_is_told_apart() -> None:
    def count(checkpointing: bool) -> Any:
        with shapes_alone():
            model = transformer_lm.Decoder(transformer_lm.LAYOUTS["260k"], checkpointing)
        text = tokens(1, 64)
        make = torch.optim.AdamW
        return count_step(model, (text,), text, transformer_lm.objective, make)

    plain, again = count(False), count(True)
    assert plain.flop_recomputed_per_step == 0
    assert again.flop_per_step == plain.flop_per_step
    head, last = 2 * 64 * 64 * 512, 5 * 2 * 64 * 64 * 172  # no block's last product is needed again
    assert again.flop_recomputed_per_step == plain.flop_forward_per_step - head - last


# fp8


scaled = pytest.mark.skipif(not available(), reason="this torch has no scaled products")


@scaled
def test_products_in_fp8_are_near_those_in_float32() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 48, bias=False))
    inputs, wanted = torch.randn(2, 16, 32), torch.randn(2, 16, 48)

    def passes() -> tuple[Any, Any, Any]:
        given = inputs.clone().requires_grad_()
        model.zero_grad()
        out = model(given)
        out.backward(wanted.to(out.dtype))
        weight: Any = model[0].weight
        return out, given.grad, weight.grad.clone()

    plain = passes()
    with_float8(model)
    assert isinstance(model[0], Float8Linear)
    for one, other in zip(plain, passes(), strict=True):
        error = (one - other).norm() / one.norm()
        assert 0 < error < 0.1  # three bits of a fraction, two of gradients


@scaled
def test_only_layers_that_fit_are_in_fp8_and_the_work_stays_as_it_is() -> None:
    def flop(convert: bool) -> int:
        model = transformer_lm.Decoder(transformer_lm.LAYOUTS["260k"])
        if convert:
            with_float8(model)
            kinds = {name for name, each in model.named_modules() if isinstance(each, Float8Linear)}
            assert {name.rpartition(".")[2] for name in kinds} == {"query", "key", "value", "out"}
        text = torch.zeros(1, 64, dtype=torch.long)
        make = torch.optim.AdamW
        half = torch.bfloat16
        return count_step(model, (text,), text, transformer_lm.objective, make, half).flop_per_step

    assert flop(convert=True) == flop(convert=False)


# text


def test_a_text_becomes_its_bytes_and_the_bytes_that_follow(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(bytes(range(100)))
    data = text_data(settings("transformer-lm", data=path), 10, first=1_000)
    assert (data.kind, data.samples, data.path) == ("real", 9, path)
    dataset: Any = data.dataset
    inputs, target = dataset[3]
    assert inputs.tolist() == list(range(1_030, 1_040))
    assert target.tolist() == list(range(1_031, 1_041))
    assert dataset[8][1][-1] == 1_090


def test_what_is_no_text_is_refused_with_what_to_give(tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_bytes(b"no more")
    for path, word in ((tmp_path, "a folder"), (tmp_path / "none", "nothing"),
                       (tmp_path / "short.txt", "7 bytes")):  # fmt: skip
        with pytest.raises(UsageFailure, match=word) as raised:
            read_text(path, 8)
        assert "text" in raised.value.hint
