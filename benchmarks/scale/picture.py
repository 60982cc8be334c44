"""The costs over the hours of a session, as SVG; each panel on its own scale, from 0."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.scale.measure import Cost

_WIDTH, _HEIGHT, _LEFT, _TOP = 230, 130, 52, 34
_PANELS = (
    ("file, MiB", "file_mib", ",.0f"),
    ("writer's memory, MiB", "writer_mib", ".0f"),
    ("show, s", "show", ".1f"),
    ("compare of two, s", "compare", ".1f"),
    ("screen opens, s", "screen", ".1f"),
    ("memory of compare, MiB", "compare_mib", ".0f"),
)
_COLORS = {1: "#1b7fbd", 8: "#c2571a"}


def svg(costs: Sequence[Cost]) -> str:
    """One panel for each cost, a line for each number of GPUs."""
    width, height = 3 * (_WIDTH + _LEFT) + 20, 2 * (_HEIGHT + _TOP + 26)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="11" role="img" '
        'aria-label="Costs over the hours of a session, with one GPU and with eight">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for place, (title, name, form) in enumerate(_PANELS):
        x = place % 3 * (_WIDTH + _LEFT) + _LEFT
        y = place // 3 * (_HEIGHT + _TOP + 26) + _TOP
        parts += _panel(costs, title, name, form, x, y)
    return "\n".join([*parts, "</svg>", ""])


def _panel(costs: Sequence[Cost], title: str, name: str, form: str, x: int, y: int) -> list[str]:
    longest = max(each.hours for each in costs)
    most = max(getattr(each, name) for each in costs) or 1.0
    bottom, right = y + _HEIGHT, x + _WIDTH - 30
    found = [
        f'<text x="{x}" y="{y - 14}" font-weight="bold">{title}</text>',
        f'<path d="M{x} {y}V{bottom}H{right}" fill="none" stroke="#888888"/>',
        f'<text x="{x - 4}" y="{y + 4}" text-anchor="end">{most:{form}}</text>',
        f'<text x="{x - 4}" y="{bottom}" text-anchor="end">0</text>',
        f'<text x="{right}" y="{bottom + 14}" text-anchor="end">{longest:g} h</text>',
    ]
    for gpus, color in _COLORS.items():
        points = [
            (x + each.hours / longest * (right - x), bottom - getattr(each, name) / most * _HEIGHT)
            for each in costs
            if each.gpus == gpus
        ]
        if not points:
            continue
        line = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        dash = ' stroke-dasharray="5 3"' if gpus == 1 else ""
        found.append(f'<polyline points="{line}" fill="none" stroke="{color}"{dash}/>')
        end = points[-1]
        found.append(
            f'<text x="{end[0] + 3:.1f}" y="{end[1] + (12 if gpus == 1 else -3):.1f}" '
            f'fill="{color}">{gpus} GPU{"s" if gpus > 1 else ""}</text>'
        )
    return found
