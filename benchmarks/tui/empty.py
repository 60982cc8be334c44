"""The emptiest Textual app that shows something: what every program made with Textual pays."""

from textual.app import App, ComposeResult
from textual.widgets import Static


class Empty(App[None]):
    BINDINGS = [("q", "quit", "Quit")]  # noqa: RUF012

    def compose(self) -> ComposeResult:
        yield Static("the emptiest app")


if __name__ == "__main__":
    Empty().run()
