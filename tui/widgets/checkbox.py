"""A checkbox whose state can be read without colours."""

from __future__ import annotations

from textual.content import Content
from textual.geometry import Size
from textual.widgets import Checkbox


class PlainCheckbox(Checkbox):
    """``[x]`` while it is on, ``[ ]`` while it is off; Textual's own differ by colour alone."""

    def render(self) -> Content:
        label = self.label.pad(1, 1).stylize_before(self.get_visual_style("toggle--label"))
        return Content.assemble("[x]" if self.value else "[ ]", label)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many rows as the label takes where ``text-wrap`` lets it wrap."""
        return self.render().get_height(self.styles.get_rules(), width)
