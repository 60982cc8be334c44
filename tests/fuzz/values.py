"""Values and texts that no recorder writes."""

from __future__ import annotations

import json
import math
import random
from typing import Any

from tests.tui.hostile import SEQUENCES

TEXTS = (
    *SEQUENCES.values(),
    "<script>window.ran=1</script><img src=x onerror=window.ran=1>",
    '" onmouseover="window.ran=1" x="',
    "=cmd|'/C calc'!A0",
    "[red]x[/red] [@click=app.quit]y[/]",
    "`x` | y ![z](http://example.org/z.png) @someone #1",
    "%s %n {0} {0.__class__} ${HOME} $(id) ;id",
    "../../../../etc/passwd",
    "file:///etc/passwd?mode=rwc",
    "\ud800 alone".encode("utf-8", "surrogatepass").decode("utf-8", "replace"),
    "NaN",
    "Infinity",
    "-0",
    "",
    " ",
    "\x00",
    "9" * 5000,
    "\u0660\u0661\u0662",
)
INTEGERS = (0, 1, -1, 2, 255, 2**31 - 1, 2**31, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), 10**18)
REALS = (math.inf, -math.inf, 1e308, -1e308, 5e-324, -0.0, 0.5, 1e19, -1e-9)


def text(rng: random.Random) -> str:
    """A hostile text; seldom a long one."""
    if rng.random() < 0.01:
        return rng.choice(("x", "\x1b[31m", "<b>", "ä", "\n")) * rng.choice((10**5, 4 * 10**5))
    if rng.random() < 0.15:
        return "".join(
            chr(rng.choice((rng.randrange(256), rng.randrange(0xD800)))) for _ in "x" * 9
        )
    return rng.choice(TEXTS)


def cell(rng: random.Random) -> object:
    """A value for a column of SQLite."""
    kind = rng.randrange(7)
    if kind == 0:
        return rng.choice(INTEGERS)
    if kind == 1:
        return rng.choice(REALS)
    if kind == 2:
        return text(rng)
    if kind == 3:
        return rng.randbytes(rng.choice((0, 1, 7, 8, 16, 800)))
    if kind == 4:
        return None
    if kind == 5:
        return json.dumps(tree(rng), allow_nan=True)
    return rng.randrange(-(10**12), 10**12)


def tree(rng: random.Random, depth: int = 3) -> Any:
    """A value for a place in JSON."""
    kind = rng.randrange(9 if depth else 7)
    if kind <= 1:
        return rng.choice((*INTEGERS, 10**400, -(10**30)))
    if kind == 2:
        return rng.choice((*REALS, math.nan))
    if kind == 3:
        return rng.choice((True, False, None))
    if kind <= 6:
        return text(rng)[:20_000]
    inside = [tree(rng, depth - 1) for _ in range(rng.randrange(4))]
    return inside if kind == 7 else {text(rng)[:200]: each for each in inside}


def spoilt(rng: random.Random, value: Any) -> Any:
    """``value`` with one place in it changed, of a kind that still looks like it."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(sorted(value))
        kind = rng.randrange(12)
        if kind == 0:
            return {name: each for name, each in value.items() if name != key}
        if kind == 1:
            return {**value, text(rng)[:200]: tree(rng)}
        return {**value, key: spoilt(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.9:
        at = rng.randrange(len(value))
        kind = rng.randrange(8)
        if kind == 0:
            return value[:at] + value[at + 1 :]
        if kind == 1:
            return [*value, *value]
        return [*value[:at], spoilt(rng, value[at]), *value[at + 1 :]]
    if isinstance(value, int) and rng.random() < 0.5:
        return rng.choice((-value, value * 10**9, value + 1, 0, 1, *INTEGERS))
    if isinstance(value, float) and rng.random() < 0.5:
        return rng.choice((-value, value * 1e9, value + 0.5, 0.0, 1, *INTEGERS))
    if isinstance(value, str) and rng.random() < 0.3:
        return value + text(rng)[:500]
    return tree(rng)
