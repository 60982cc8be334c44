"""Mutations of a database's bytes: its header, its pages, its cells, its length, its journal."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path

_FIELDS = ((16, 2), (18, 1), (19, 1), (20, 1), (21, 1), (22, 1), (23, 1), (24, 4), (28, 4), (32, 4),
           (36, 4), (40, 4), (44, 4), (48, 4), (52, 4), (56, 4), (60, 4), (64, 4), (68, 4), (72, 4),
           (92, 4), (96, 4))  # fmt: skip
"""Offset and length of the fields of the header."""
_ODD = (0, 1, 2, 3, 5, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF)


def mutate(rng: random.Random, path: Path) -> str:
    """Change the file in place; says how."""
    data = bytearray(path.read_bytes())
    journal = Path(f"{path}-journal")
    if journal.is_file() and rng.random() < 0.5:
        beside = bytearray(journal.read_bytes())
        how = rng.choice((_flips, _bytes, _cut, _journal_head))(rng, beside)
        journal.write_bytes(beside)
        return f"journal: {how}"
    told = [rng.choice(_ALL)(rng, data) for _ in range(rng.choice((1, 1, 1, 2, 4)))]
    path.write_bytes(data)
    return ", ".join(told)


def _page_size(data: bytearray) -> int:
    size = int.from_bytes(data[16:18], "big")
    return 65536 if size == 1 else size if size >= 512 and size & (size - 1) == 0 else 4096


def _pages(data: bytearray) -> int:
    return max(1, len(data) // _page_size(data))


def _put(data: bytearray, at: int, value: int, length: int) -> None:
    """Nothing behind the end."""
    if at >= 0 and at + length <= len(data):
        data[at : at + length] = (value & (256**length - 1)).to_bytes(length, "big")


def _flips(rng: random.Random, data: bytearray) -> str:
    for _ in range(rng.choice((1, 3, 20, 200))):
        if data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return "bits flipped"


def _bytes(rng: random.Random, data: bytearray) -> str:
    at = rng.randrange(max(1, len(data)))
    length = min(len(data) - at, rng.choice((1, 4, 16, 300)))
    data[at : at + length] = rng.choice((bytes(length), b"\xff" * length, rng.randbytes(length)))
    return f"{length} bytes at {at}"


def _header(rng: random.Random, data: bytearray) -> str:
    at, length = rng.choice(_FIELDS)
    value = rng.choice((*_ODD, _pages(data), _pages(data) + 1, _pages(data) * 2))
    _put(data, at, value, length)
    return f"header {at} = {value:#x}"


def _page(rng: random.Random, data: bytearray) -> tuple[int, int]:
    """Where a page begins, and its B-tree header."""
    number = rng.randrange(_pages(data))
    at = number * _page_size(data)
    return at, at + (100 if number == 0 else 0)


def _page_header(rng: random.Random, data: bytearray) -> str:
    _, at = _page(rng, data)
    field, length = rng.choice(((0, 1), (1, 2), (3, 2), (5, 2), (7, 1), (8, 4)))
    kind = rng.choice((2, 5, 10, 13)) if field == 0 else rng.choice(_ODD)
    if field == 8:
        kind = rng.randrange(_pages(data) + 2)
    _put(data, at + field, kind, length)
    return f"page header at {at}+{field} = {kind:#x}"


def _cell(rng: random.Random, data: bytearray) -> str:
    """Lengths and row numbers: the start of a cell is varints."""
    start, at = _page(rng, data)
    count = int.from_bytes(data[at + 3 : at + 5], "big")
    if not count:
        return _bytes(rng, data)
    head = 8 if data[at : at + 1] in (b"\x0d", b"\x0a") else 12
    entry = at + head + 2 * rng.randrange(count)
    cell = start + int.from_bytes(data[entry : entry + 2], "big")
    if rng.random() < 0.3:
        _put(data, entry, rng.choice((*_ODD, rng.randrange(_page_size(data)))), 2)
        return f"cell pointer at {entry}"
    new = rng.choice((b"\xff" * 9, b"\x81\x80\x00", b"\xff\xff\xff\x7f", b"\x00", b"\x87\xff\x7f"))
    at = cell + rng.choice((0, 1, 2, 3, 4, rng.randrange(40)))
    new = new[: max(0, len(data) - at)]
    data[at : at + len(new)] = new
    return f"cell at {cell}: {new.hex()}"


def _swap(rng: random.Random, data: bytearray) -> str:
    size, count = _page_size(data), _pages(data)
    one, other = rng.randrange(count) * size, rng.randrange(count) * size
    kept = data[one : one + size]
    data[one : one + size] = data[other : other + size]
    if rng.random() < 0.5:
        data[other : other + size] = kept
    return f"page at {other} put at {one}"


def _loop(rng: random.Random, data: bytearray) -> str:
    """Inner pages that lead to the same page again and again: few pages, any number of rows."""
    size, count = _page_size(data), _pages(data)
    inner = [at for at in range(0, count * size, size) if data[at : at + 1] == b"\x05"]
    if not inner:
        return _page_header(rng, data)
    at = rng.choice(inner)
    cells = min(int.from_bytes(data[at + 3 : at + 5], "big"), size // 8)
    target = rng.randrange(count) + 1
    for entry in range(at + 12, at + 12 + 2 * cells, 2):
        _put(data, at + int.from_bytes(data[entry : entry + 2], "big"), target, 4)
    if rng.random() < 0.5:
        _put(data, at + 8, rng.choice((target, at // size + 1)), 4)
    return f"inner page at {at} leads to {target} alone"


def _overflow(rng: random.Random, data: bytearray) -> str:
    """The last four bytes of a cell, or the first of a page, lead to the next overflow page."""
    start, _ = _page(rng, data)
    _put(data, start, rng.randrange(_pages(data) + 2), 4)
    return f"first word of the page at {start}"


def _free(rng: random.Random, data: bytearray) -> str:
    page = rng.randrange(_pages(data)) + 1
    _put(data, 32, page, 4)
    _put(data, 36, rng.choice((1, 5, 2**31)), 4)
    return f"free list at page {page}"


def _cut(rng: random.Random, data: bytearray) -> str:
    at = rng.randrange(len(data) + 1)
    del data[at:]
    return f"cut at {at}"


def _more(rng: random.Random, data: bytearray) -> str:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.choice((bytes(4096), rng.randbytes(rng.randrange(1, 600))))
    return f"bytes put in at {at}"


def _less(rng: random.Random, data: bytearray) -> str:
    at = rng.randrange(max(1, len(data)))
    del data[at : at + rng.choice((1, 16, 4096))]
    return f"bytes taken out at {at}"


def _journal_head(rng: random.Random, data: bytearray) -> str:
    """Of a rollback journal: records, seed, first size, sector, page."""
    at = rng.choice((8, 12, 16, 20, 24))
    value = rng.choice((*_ODD, 512, 4096, 65536))
    _put(data, at, value, 4)
    return f"header {at} = {value:#x}"


def super_journal(name: Path) -> bytes:
    """The end of a journal that says that another file decides about it, and is to be removed."""
    text = bytes(name)
    total = sum(each if each < 128 else each - 256 for each in text) & 0xFFFFFFFF
    magic = bytes.fromhex("d9d505f920a163d7")
    return bytes(4) + text + struct.pack(">II", len(text), total) + magic


_ALL: tuple[Callable[[random.Random, bytearray], str], ...] = (
    *(_flips, _bytes, _header, _header, _page_header, _page_header, _cell, _cell, _cell),
    *(_swap, _loop, _loop, _overflow, _free, _cut, _more, _less),
)
