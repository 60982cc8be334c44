"""Cora: 2,708 papers, 1,433 words, 7 subjects, 5,429 citations, in two tab-separated files."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from .folder import broken, wrong_shape

CONTENT = "cora.content"
CITES = "cora.cites"


def read_cora(folder: Path) -> tuple[Tensor, Tensor, Tensor]:
    """Features, float32 (nodes, words); citations, int64 (2, edges); labels, int64 (nodes,).

    ``cora.content`` has one line per paper: its id, a 0 or 1 for each word, its subject.
    ``cora.cites`` has one line per citation: cited id, citing id. Labels are the positions of the
    subjects in alphabetical order. Citations of missing papers are left out.

    Raises:
        UsageFailure: the files are missing or are not Cora's.
    """
    place = folder / "cora" if (folder / "cora" / CONTENT).is_file() else folder
    if not ((place / CONTENT).is_file() and (place / CITES).is_file()):
        raise wrong_shape(
            folder,
            f"{CONTENT} and {CITES}",
            "get the Cora citation data set (linqs.org) and unpack it there",
        )
    ids, words, subjects = _read_papers(place / CONTENT)
    names = sorted(set(subjects))
    labels = torch.tensor([names.index(subject) for subject in subjects])
    return words, _read_citations(place / CITES, ids), labels


def _read_papers(path: Path) -> tuple[dict[str, int], Tensor, list[str]]:
    ids: dict[str, int] = {}
    rows: list[Tensor] = []
    subjects: list[str] = []
    for number, line in enumerate(_lines(path), 1):
        name, *words, subject = line
        if len(line) < 3 or (rows and len(words) != len(rows[0])):
            raise broken(path, f"line {number} has {len(line)} columns, unlike the first")
        if not set(words) <= {"0", "1"}:
            raise broken(path, f"line {number} has words that are neither 0 nor 1")
        if name in ids:
            raise broken(path, f"line {number} repeats the paper {name}")
        ids[name] = len(ids)
        bits = bytearray("".join(words), "ascii")
        rows.append(torch.frombuffer(bits, dtype=torch.uint8) - ord("0"))
        subjects.append(subject)
    if not rows:
        raise broken(path, "is empty")
    return ids, torch.stack(rows).float(), subjects


def _read_citations(path: Path, ids: dict[str, int]) -> Tensor:
    pairs: list[tuple[int, int]] = []
    for number, line in enumerate(_lines(path), 1):
        if len(line) != 2:
            raise broken(path, f"line {number} is not a pair of papers")
        if line[0] in ids and line[1] in ids:
            pairs.append((ids[line[0]], ids[line[1]]))
    if not pairs:
        raise broken(path, f"cites none of the papers in {CONTENT}")
    return torch.tensor(pairs).t().contiguous()


def _lines(path: Path) -> list[list[str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise broken(path, f"cannot be read ({error})") from error
    return [fields for fields in map(str.split, text.splitlines()) if fields]
