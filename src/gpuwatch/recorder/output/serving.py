"""What vLLM prints of its work every ten seconds, for each of its engines.

``Engine 000: Avg prompt throughput: 61.4 tokens/s, Avg generation throughput: 513.9 tokens/s,
Running: 8 reqs, Waiting: 0 reqs, ...``: means over the seconds before, no step. Lines without any
tokens are of a server that waits for requests, and newer versions leave them out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpuwatch.core.models import JSON, mapping
from gpuwatch.session.writing.statements import Row, meta

_LINE = re.compile(
    r"(?:Engine (\d{1,6}): )?Avg prompt throughput: (\d{1,12}\.\d) tokens/s, "
    r"Avg generation throughput: (\d{1,12}\.\d) tokens/s, Running: (\d{1,9}) reqs"
)
_MOST_ENGINES = 1024
_KEYS = ("prompt_tokens_per_second", "generated_tokens_per_second", "running_requests")


class Serving:
    """The means of all lines; after a crash another recorder continues with ``state``."""

    def __init__(self, known: Mapping[str, JSON]) -> None:
        self.state: dict[str, JSON] = dict(known)
        """By engine: lines with tokens, and the sums of their figures."""

    def read(self, t: int, line: str) -> list[Row]:
        """Rows of a line, session time ``t`` (ns); empty for any other text."""
        match = _LINE.search(line) if "Avg prompt throughput: " in line else None
        if match is None:
            return []
        engine, *figures = match.groups(default="")
        if engine not in self.state and len(self.state) == _MOST_ENGINES:
            return []
        values = [1.0, *map(float, figures)]
        if not any(values[1:3]):
            return []
        before = mapping(self.state.get(engine)).get("sums") or [0.0] * len(values)
        self.state[engine] = {"sums": [sum(pair) for pair in zip(before, values, strict=True)]}
        sums = [mapping(each)["sums"] for each in self.state.values()]
        told = {key: sum(of[at] / of[0] for of in sums) for at, key in enumerate(_KEYS, 1)}
        return [meta("generation", {"lines": sum(of[0] for of in sums), **told, "t": t})]
