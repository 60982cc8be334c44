"""The readers of real data, on small files of the real formats."""

from __future__ import annotations

import gzip
import pickle
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision")

from torchvision.transforms.functional import to_pil_image

from gpuwatch.workloads.data import synthetic
from gpuwatch.workloads.data.batches import end_quietly
from gpuwatch.workloads.data.cifar import read_cifar10
from gpuwatch.workloads.data.cora import read_cora
from gpuwatch.workloads.data.idx import IMAGES, LABELS, read_mnist
from gpuwatch.workloads.data.imdb import read_reviews, words
from gpuwatch.workloads.failures import UsageFailure
from gpuwatch.workloads.tasks.gcn import labelled, normalised_adjacency
from gpuwatch.workloads.tasks.imagenet import read_pictures

pytestmark = pytest.mark.torch


def write_mnist(folder: Path, count: int, compressed: bool = False) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pixels = bytes(i % 251 for i in range(count * 784))
    files = {
        IMAGES: struct.pack(">HBBIII", 0, 8, 3, count, 28, 28) + pixels,
        LABELS: struct.pack(">HBBI", 0, 8, 1, count) + bytes(i % 10 for i in range(count)),
    }
    for name, content in files.items():
        if compressed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(content))
        else:
            (folder / name).write_bytes(content)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("below", ["", "MNIST/raw"])
def test_mnists_files_are_read_plain_and_compressed(
    tmp_path: Path, compressed: bool, below: str
) -> None:
    write_mnist(tmp_path / below, 20, compressed)
    images, labels = read_mnist(tmp_path, 12)
    assert images.shape == (12, 1, 28, 28)
    assert images.flatten()[:300].tolist() == [i % 251 for i in range(300)]
    assert labels.tolist() == [i % 10 for i in range(12)]


def test_a_cut_or_foreign_idx_file_is_refused_by_name(tmp_path: Path) -> None:
    write_mnist(tmp_path, 20)
    whole = (tmp_path / IMAGES).read_bytes()
    for content in (whole[:5000], b"", b"not an IDX file at all", whole[:8]):
        (tmp_path / IMAGES).write_bytes(content)
        with pytest.raises(UsageFailure, match=IMAGES):
            read_mnist(tmp_path, 12)


def test_an_idx_file_that_claims_more_than_memory_holds_is_refused(tmp_path: Path) -> None:
    write_mnist(tmp_path, 2)
    (tmp_path / IMAGES).write_bytes(struct.pack(">HBBIII", 0, 8, 3, 2**31, 2**31, 2**31))
    with pytest.raises(UsageFailure, match="claims"):
        read_mnist(tmp_path, 512)


def write_cifar(folder: Path, count: int, protocol: int = 2) -> Any:
    numpy = pytest.importorskip("numpy")
    folder.mkdir(parents=True)
    data = numpy.arange(count * 3072, dtype=numpy.uint8).reshape(count, 3072)
    batch = {b"data": data, b"labels": [i % 10 for i in range(count)], b"batch_label": b"one"}
    (folder / "data_batch_1").write_bytes(pickle.dumps(batch, protocol))
    return data


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_cifars_batches_are_read_without_numpy(tmp_path: Path, protocol: int) -> None:
    data = write_cifar(tmp_path / "cifar-10-batches-py", 7, protocol)
    images, labels = read_cifar10(tmp_path)
    assert images.shape == (7, 3, 32, 32)
    assert images.flatten().tolist() == data.flatten().tolist()
    assert labels.tolist() == [0, 1, 2, 3, 4, 5, 6]


class Malicious:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


class Shell:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        import os

        return os.system, (f"touch {self.mark}",)


@pytest.mark.parametrize("attack", [Malicious, Shell])
def test_a_pickle_that_calls_a_function_is_refused_and_nothing_runs(
    tmp_path: Path, attack: Any
) -> None:
    mark = tmp_path / "ran"
    batch = {b"data": attack(mark), b"labels": [1]}
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps(batch, 2))
    with pytest.raises(UsageFailure, match="refused, nothing in it was run"):
        read_cifar10(tmp_path)
    assert not mark.exists()
    pickle.loads((tmp_path / "data_batch_1").read_bytes())
    assert mark.exists(), "the attack works where pickles are trusted"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"garbage",
        pickle.dumps([1, 2]),
        pickle.dumps({b"data": b"12", b"labels": [1]}),
        pickle.dumps({b"labels": [1]}),
        b"cnumpy\nndarray\n(tR.",
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n(tRK\x01b.",
    ],
)
def test_a_pickle_that_is_no_batch_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "data_batch_1").write_bytes(content)
    with pytest.raises(UsageFailure, match="data_batch_1"):
        read_cifar10(tmp_path)


def test_a_batch_whose_labels_do_not_fit_its_bytes_is_refused(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    data = numpy.zeros((2, 3072), dtype=numpy.uint8)
    for labels in ([1], [1, 2, 3], [1, 10], [1, "x"]):
        batch = {b"data": data, b"labels": labels}
        (tmp_path / "data_batch_1").write_bytes(pickle.dumps(batch, 2))
        with pytest.raises(UsageFailure, match="holds"):
            read_cifar10(tmp_path)


def write_cora(folder: Path, content: str, cites: str) -> None:
    (folder / "cora.content").write_text(content)
    (folder / "cora.cites").write_text(cites)


def test_coras_files_give_features_citations_and_labels(tmp_path: Path) -> None:
    content = "31336\t0\t1\t0\tTheory\n1061127\t1\t0\t1\tRule_Learning\n7\t0\t0\t1\tTheory\n"
    write_cora(tmp_path, content, "31336\t1061127\n7\t31336\n7\t999\n")
    x, edges, labels = read_cora(tmp_path)
    assert x.tolist() == [[0, 1, 0], [1, 0, 1], [0, 0, 1]]
    assert edges.tolist() == [[0, 2], [1, 0]]
    assert labels.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("content", "cites"),
    [
        ("", "1\t2\n"),
        ("1\t0\t1\tA\n2\t0\tB\n", "1\t2\n"),
        ("1\t0\t5\tA\n", "1\t1\n"),
        ("1\t0\t1\tA\n1\t0\t1\tA\n", "1\t1\n"),
        ("1\t0\t1\tA\n2\t0\t1\tB\n", "1\n"),
        ("1\t0\t1\tA\n", "8\t9\n"),
    ],
)
def test_files_that_are_not_coras_are_refused_with_the_line(
    tmp_path: Path, content: str, cites: str
) -> None:
    write_cora(tmp_path, content, cites)
    with pytest.raises(UsageFailure, match=r"cora\.c"):
        read_cora(tmp_path)


def test_the_adjacency_is_symmetric_normalised_and_counts_an_edge_once() -> None:
    found = normalised_adjacency(torch.tensor([[0, 1, 0], [1, 0, 1]]), 3).to_dense()
    assert torch.allclose(found, torch.tensor([[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 1]]))


def test_twenty_nodes_of_each_class_are_labelled() -> None:
    labels = torch.arange(210) % 7
    kept = labelled(labels)
    assert (kept[:140] == labels[:140]).all()
    assert (kept[140:] == -100).all()


def write_reviews(folder: Path, each: int) -> None:
    for sentiment, text in (("pos", "A <br />great film, it's great"), ("neg", "Bad. bad bad")):
        place = folder / "train" / sentiment
        place.mkdir(parents=True)
        for i in range(each):
            (place / f"{i}_7.txt").write_text(text + " word" * (i % 3))


def test_reviews_are_balanced_padded_on_the_left_and_mark_unknown_words(tmp_path: Path) -> None:
    write_reviews(tmp_path / "aclImdb", 6)
    tokens, sentiments = read_reviews(tmp_path, 8, vocabulary=3, length=7)
    assert tokens.shape == (8, 7)
    assert sentiments.tolist() == [0, 1] * 4
    bad, great, word = 2, 3, 4
    assert tokens[0].tolist() == [0, 0, 0, 0, bad, bad, bad]
    assert tokens[1].tolist() == [0, 0, 1, great, 1, 1, great]
    assert tokens[2].tolist() == [0, 0, 0, bad, bad, bad, word]


def test_markup_and_case_are_no_words() -> None:
    assert words("It's <b>GOOD</b>,<br />2 thumbs!") == ["it's", "good", "thumbs"]


def test_too_few_reviews_are_refused_with_their_number(tmp_path: Path) -> None:
    write_reviews(tmp_path, 3)
    with pytest.raises(UsageFailure, match=r"at least 500 .* \(3 in train/neg\)"):
        read_reviews(tmp_path, 1000, 200, 100)


def write_jpegs(folder: Path, count: int) -> None:
    folder.mkdir(parents=True)
    for i in range(count):
        pixels = torch.full((3, 64, 64), 40 * i % 256, dtype=torch.uint8)
        to_pil_image(pixels).save(folder / f"{i}.JPEG")


def test_tiny_imagenet_is_read_as_distributed(tmp_path: Path) -> None:
    for name in ("n01443537", "n01629819"):
        write_jpegs(tmp_path / "train" / name / "images", 3)
        (tmp_path / "train" / name / f"{name}_boxes.txt").write_text("0.JPEG 0 0 1 1\n")
    write_jpegs(tmp_path / "val" / "images", 1)
    (tmp_path / "val" / "val_annotations.txt").write_text("0.JPEG\tn01443537\t0\t0\t1\t1\n")
    (tmp_path / "wnids.txt").write_text("n01443537\nn01629819\n")
    dataset, samples, text = read_pictures(tmp_path, 32, 1000)
    image, label = dataset[5]
    assert samples == 6
    assert image.shape == (3, 32, 32)
    assert label == 1
    assert text == "tiny-imagenet-200: 6 images, 2 classes, cropped to 32 x 32"


@pytest.mark.parametrize("below", ["", "train"])
def test_an_image_folder_is_read_with_and_without_train(tmp_path: Path, below: str) -> None:
    for name in ("cat", "dog"):
        write_jpegs(tmp_path / below / name, 2)
    assert read_pictures(tmp_path, 16, 1000)[1] == 4


def test_a_folder_of_another_shape_is_refused_with_what_is_found(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    (tmp_path / "readme.md").write_text("")
    for read in (
        lambda: read_pictures(tmp_path, 16, 1000),
        lambda: read_mnist(tmp_path, 1),
        lambda: read_cifar10(tmp_path),
        lambda: read_cora(tmp_path),
        lambda: read_reviews(tmp_path, 10, 10, 10),
    ):
        with pytest.raises(UsageFailure, match=r"expected .*; found cat/, readme\.md") as caught:
            read()
        assert "leave --data out" in caught.value.hint


def test_more_classes_than_the_model_has_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        write_jpegs(tmp_path / name, 1)
    with pytest.raises(UsageFailure, match="at most 2 classes, not 3"):
        read_pictures(tmp_path, 16, 2)


def test_the_synthetic_graph_has_coras_size_and_no_edge_twice() -> None:
    torch.manual_seed(0)
    x, edges, labels = synthetic.graph(2708, 5429, 1433, 7, 18)
    assert x.shape == (2708, 1433)
    assert edges.shape == (2, 5429)
    assert 0 < x.sum(1).mean() < 30
    assert torch.unique(edges, dim=1).shape[1] == 5429
    assert (edges[0] < edges[1]).all()
    assert set(labels.tolist()) == set(range(7))


def test_synthetic_samples_have_the_real_ones_shapes() -> None:
    torch.manual_seed(0)
    pixels, labels = synthetic.images(10, 3, 32, 10)
    assert (pixels.shape, pixels.dtype) == ((10, 3, 32, 32), torch.uint8)
    sample, _ = synthetic.Repeated(pixels, labels, 50)[49]
    assert sample.dtype == torch.float32
    assert -1 <= sample.min() < sample.max() <= 1
    tokens, sentiments = synthetic.reviews(100, 100, 200)
    assert tokens.shape == (100, 100)
    assert 0 <= tokens.min() < tokens.max() <= 201
    assert sentiments.mean() == 0.5


def test_a_worker_that_is_cut_off_prints_nothing_and_other_errors_as_ever(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    end_quietly(0)
    for error in (EOFError(), ConnectionResetError(), ValueError("told")):
        sys.excepthook(type(error), error, None)
    assert capsys.readouterr().err == "ValueError: told\n"
