"""IMDB's film reviews as distributed (aclImdb): one text file per review, in pos and neg."""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor

from .folder import broken, wrong_shape

PAD, UNKNOWN, FIRST_WORD = 0, 1, 2
LARGEST_REVIEW = 1 << 20

_MARKUP = re.compile(r"<[^>]*>")
_WORD = re.compile(r"[a-z']+")


def read_reviews(folder: Path, count: int, vocabulary: int, length: int) -> tuple[Tensor, Tensor]:
    """Tokens, int64 (count, length), and sentiments, float32 (count,): 1 for a positive review.

    Positive and negative reviews alternate, the first half of ``count`` of each, by name. Words are
    runs of letters in lower case. The ``vocabulary`` most common words of these reviews have tokens
    from 2 on, and 1 is any other word. 0 pads on the left; a long review keeps its first words.

    Raises:
        UsageFailure: there is no ``train/pos`` and ``train/neg`` with enough reviews.
    """
    texts = [_texts(folder, sentiment, count // 2) for sentiment in ("neg", "pos")]
    reviews = [words(text) for pair in zip(*texts, strict=True) for text in pair]
    common = Counter(word for review in reviews for word in review)
    ranked = sorted(common, key=lambda word: (-common[word], word))[:vocabulary]
    tokens = {word: token for token, word in enumerate(ranked, FIRST_WORD)}
    rows = []
    for review in reviews:
        row = [tokens.get(word, UNKNOWN) for word in review[:length]]
        rows.append([PAD] * (length - len(row)) + row)
    return torch.tensor(rows), torch.arange(len(rows)).remainder(2).float()


def words(text: str) -> list[str]:
    """The words of a review, in lower case, without markup."""
    return _WORD.findall(_MARKUP.sub(" ", text).lower())


def _texts(folder: Path, sentiment: str, count: int) -> list[str]:
    place = folder / "aclImdb" if (folder / "aclImdb").is_dir() else folder
    place = place / "train" / sentiment
    paths = list(islice(sorted(place.glob("*.txt")), count)) if place.is_dir() else []
    if len(paths) < count:
        raise wrong_shape(
            folder,
            f"the folder aclImdb with at least {count} reviews each in train/pos and train/neg "
            f"({len(paths)} in train/{sentiment})",
            "get the Large Movie Review Dataset (ai.stanford.edu/~amaas/data/sentiment)",
        )
    texts = []
    for path in paths:
        try:
            with path.open(encoding="utf-8", errors="replace") as file:
                texts.append(file.read(LARGEST_REVIEW))
        except OSError as error:
            raise broken(path, f"cannot be read ({error.strerror})") from error
    return texts
