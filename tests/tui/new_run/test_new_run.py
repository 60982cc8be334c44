"""The form of a new run on the screen: fields, the plan, a start."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from textual.events import Paste
from textual.widget import Widget
from textual.widgets import Button, Checkbox, Collapsible, Input, Select

from gpuwatch.core.metrics import Method
from gpuwatch.tui import commands
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.display_options import DisplayOptions
from gpuwatch.tui.feed.snapshot import Reading
from gpuwatch.tui.home.screen import HomeScreen
from gpuwatch.tui.live.screen import LiveScreen
from gpuwatch.tui.new_run import screen as new_run
from gpuwatch.tui.new_run.parameters import WORKLOADS, commands_before
from gpuwatch.tui.new_run.screen import NewRunScreen
from gpuwatch.tui.new_run.widgets import EnvironmentRow
from gpuwatch.tui.widgets.base_screen import HelpScreen

from ...conftest import Cli
from ..conftest import Fake, environment
from ..harness import Keys, running, screen_text, shows, until
from ..hostile import check_screen
from ..process_sessions import Made, add
from ..snapshots_of import snapshot_of

Make = Callable[..., Path]
DOCTOR = ["doctor", "--quick", "--images", "--format", "json"]


def form(app: GpuwatchApp) -> NewRunScreen:
    assert isinstance(app.screen, NewRunScreen)
    return app.screen


def started(fake: Fake) -> list[list[str]]:
    return [call[2:] for call in fake.asked if call[:2] == ["--record", "--detach"]]


async def says(pilot: Keys, words: str) -> None:
    """Wait until a widget of the form says ``words``, wherever its lines are broken."""
    app: GpuwatchApp = pilot.app  # type: ignore[assignment]
    width = app.size.width

    def columns() -> list[str]:
        lines = screen_text(app).splitlines()
        split = width * 7 // 10 if width >= 110 else width
        return [" ".join(" ".join(part).split()) for part in _halves(lines, split)]

    await until(pilot, lambda: any(words in column for column in columns()))


def _halves(lines: list[str], split: int) -> tuple[list[str], list[str]]:
    return [line[:split] for line in lines], [line[split:].strip("│ ") for line in lines]


def named(widget: Widget, field: str) -> bool:
    """Whether a field has that id, or is the checkbox of the environment of that name."""
    return (
        widget.id == field
        or (isinstance(widget, Checkbox) and widget.label.plain.startswith(field))
        or (widget.parent is not None and widget.parent.id == field)
    )


async def focus(app: GpuwatchApp, pilot: Keys, field: str) -> None:
    """Go to a field that Tab comes to, by its id or the name of its environment."""
    next(widget for widget in app.screen.focus_chain if named(widget, field)).focus()
    await pilot.pause()


async def choose(app: GpuwatchApp, pilot: Keys, field: str, value: str) -> None:
    """Choose a value of a list with the keyboard."""
    await focus(app, pilot, field)
    await pilot.press("enter", *value, "enter")
    assert app.screen.query_one(f"#{field}", Select).value == value


async def test_the_descriptions_in_the_list_of_workloads_are_one_column(fake: Fake) -> None:
    async with running(NewRunScreen) as (app, pilot):
        await focus(app, pilot, "workload")
        await pilot.press("enter", shows="bert")
        rows = screen_text(app).splitlines()
        names = ("mnist-cnn", "sentiment-lstm", "bert")
        starts = {
            next(row for row in rows if name in row).index(WORKLOADS[name][:10]) for name in names
        }
        assert len(starts) == 1


async def test_a_command_is_typed_and_started_with_enter(session: Make, fake: Fake) -> None:
    fake.records(session())
    async with running(HomeScreen) as (app, pilot):
        await pilot.press("n", shows="start a run")
        await pilot.press(*"python3 t?.py --lr 3e-4")
        await shows(pilot, "$ gpuwatch run -- python3 't?.py' --lr 3e-4")
        await until(pilot, lambda: [*DOCTOR, "--", "python3"] in fake.asked)
        await pilot.press("enter", opens=LiveScreen)
        await pilot.press("escape", opens=HomeScreen)
        await pilot.press("q")
    assert app.farewell[:1] == ["the run goes on"]
    assert started(fake) == [["--", "python3", "t?.py", "--lr", "3e-4"]]


async def test_a_command_of_before_is_suggested_and_further_options_reach_its_start(
    session: Make, fake: Fake, cli: Cli
) -> None:
    fake.records(session())
    cli("--record", "--quiet", "--", "sh", "-c", "sleep 0.01; exit 0")
    cli("--record", "--quiet", "--", "sh", "-c", "echo of somebody else")
    other = max(
        (cli.home / ".local/share/gpuwatch/studies").glob("*/plan.json"), key=os.path.getmtime
    )
    other.write_text(other.read_text().replace("somebody else", "another hand"))
    homes = {
        "XDG_DATA_HOME": cli.home / ".local/share",
        "XDG_STATE_HOME": cli.home / ".local/state",
    }
    with mock.patch.dict(os.environ, {name: str(path) for name, path in homes.items()}):
        async with running(NewRunScreen, (160, 50)) as (app, pilot):
            command, options = (
                app.screen.query_one(f"#{each}", Input) for each in ("command", "options")
            )
            await until(pilot, lambda: command.suggester is not None)
            assert commands_before() == ["sh -c 'sleep 0.01; exit 0'"], (
                "only what this user started"
            )
            await pilot.press("s", "h", shows="sh -c 'sleep 0.01; exit 0'")
            await pilot.press("right")
            assert command.value == "sh -c 'sleep 0.01; exit 0'"
            options.value = "tag"
            await shows(pilot, "✗ write options of gpuwatch run, such as --profile 5")
            options.value = "--profile 5 --plan"
            await shows(pilot, "✗ --plan is not for here")
            options.value = "--profile 5 --notify 'a b'"
            await shows(pilot, "$ gpuwatch run --profile 5 --notify 'a b' -- sh")
            app.screen.query_one("#start", Button).press()
            await until(pilot, lambda: isinstance(app.screen, LiveScreen))
    assert started(fake) == [
        ["--profile", "5", "--notify", "a b", "--", "sh", "-c", "sleep 0.01; exit 0"]
    ]


async def test_the_form_names_the_folder_it_was_opened_in_even_one_that_is_gone(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/usr")
    async with running(NewRunScreen) as (_, pilot):
        await shows(pilot, "folder          /usr\n")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    async with running(NewRunScreen) as (_, pilot):
        await shows(pilot, "where gpuwatch was started, which is gone")


async def test_the_folder_and_variables_of_a_command_reach_its_start(
    session: Make, fake: Fake, tmp_path: Path
) -> None:
    fake.records(session())
    async with running(NewRunScreen, (160, 50)) as (app, pilot):
        for name, text in (("command", "ls"), ("folder", str(tmp_path)), ("variables", "A=1")):
            app.screen.query_one(f"#{name}", Input).value = text
        await shows(pilot, "✓ 1 run")
        await pilot.press("ctrl+y", shows="sent to the terminal's clipboard")
        assert app.clipboard == f"cd {tmp_path} && gpuwatch run --env bare,set=A=1 -- ls"
        app.screen.query_one("#start", Button).press()
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))
    assert started(fake) == [["--env", "bare,set=A=1", "--", "ls"]]
    assert (fake.folder / "folder.txt").read_text() == str(tmp_path)


async def test_idle_gpus_come_first_are_chosen_and_keep_their_order_in_the_command(
    session: Make, fake: Fake
) -> None:
    fake.finds(environment("bare"), gpus=3)
    seen = snapshot_of(session(gpus=3))
    gpus = seen.gpus
    rest = Reading(0.0, Method.MEASURED, None, "test")
    none = {"hw.gpu.utilization": rest, "hw.gpu.memory.usage": rest}
    idle = replace(gpus[2], readings={**gpus[2].readings, **none})
    one = replace(seen, devices=(*gpus[:2], idle))
    fake.holds("doctor")
    async with running(lambda: NewRunScreen(seen=one), (160, 50)) as (app, pilot):
        await shows(pilot, "looking for engines")
        assert "% busy" not in screen_text(app), "none is chosen yet"
        fake.goes_on()
        await shows(pilot, "0/80.0 GiB, idle")
        boxes = app.screen.query("#gpus Checkbox").results(Checkbox)
        assert [each.label.plain[0] for each in boxes] == ["2", "0", "1"]
        assert "% busy" in screen_text(app)
        await pilot.press(*"ls", shows="$ gpuwatch run --gpus 2 -- ls")
        await focus(app, pilot, "1 ")
        await pilot.press("space", shows="$ gpuwatch run --gpus 1,2 -- ls")
    two = replace(seen, devices=gpus[:2])
    async with running(lambda: NewRunScreen(seen=two), (160, 50)) as (app, pilot):
        await shows(pilot, "GPUs: all of 3  ! GPU 0: ")
        await says(pilot, "! GPU 0: ")
        assert "when this was opened" in screen_text(app)


@pytest.mark.parametrize(
    "name", ["x[/red].py", "[@click=app.bell()]hi[/]", "[/", "]/@]'\\", "a\\[b]"]
)
async def test_a_name_on_a_busy_gpu_is_shown_as_it_is(session: Make, fake: Fake, name: str) -> None:
    fake.finds(environment("bare"), gpus=1)
    seen = snapshot_of(add(session(), Made(50, f"python {name}")))
    async with running(lambda: NewRunScreen(seen=seen), (160, 50)) as (app, pilot):
        await shows(pilot, f" held by alice {name}")
        title = app.screen.query_one("#gpus CollapsibleTitle").render()
        assert f"alice {name}, " in str(title)


async def test_tab_comes_to_the_fields_in_their_order(fake: Fake) -> None:
    async with running(NewRunScreen, (120, 40)) as (app, pilot):
        assert app.focused is not None
        fields = [app.focused.id]
        for _ in range(4):
            await pilot.press("tab")
            fields.append(app.focused.id)
        await pilot.press("shift+tab")
        assert app.focused.id == fields[-2]
    assert fields == ["command", "workload", "folder", "variables", None]


async def test_a_command_starts_before_anything_is_known(session: Make, fake: Fake) -> None:
    fake.records(session())
    fake.holds("doctor")
    async with running(NewRunScreen) as (_, pilot):
        await pilot.press(*"ls -l", "ctrl+s", opens=LiveScreen)
    fake.goes_on()
    assert started(fake) == [["--", "ls", "-l"]]


async def test_what_is_filled_in_is_what_is_shown_and_started(session: Make, fake: Fake) -> None:
    fake.records(session())
    fake.finds(environment("bare"), environment("docker"), gpus=1)
    async with running(NewRunScreen, (120, 40)) as (app, pilot):
        await shows(pilot, "Engine of docker")
        await choose(app, pilot, "workload", "sentiment-rnn")
        await pilot.press("tab", *"500", "tab", *"32x")
        await choose(app, pilot, "dtype", "bfloat16")
        await focus(app, pilot, "more")
        await pilot.press("enter")
        await focus(app, pilot, "lr")
        await pilot.press(*"3e-4")
        await focus(app, pilot, "docker")
        await pilot.press("space")
        await focus(app, pilot, "pull")
        await pilot.press("space")
        await choose(app, pilot, "repeat", "quick")
        line = (
            "gpuwatch run sentiment-rnn --batch-size 32 --steps 500 --lr 0.0003 --dtype bfloat16 "
            "--env bare --env docker --pull --quick --order-seed"
        )
        await says(pilot, f"$ {line}")
        await pilot.press("ctrl+s", opens=LiveScreen)
    (asked,) = started(fake)
    assert asked[:-1] == line.split()[2:]


async def test_a_workload_has_its_own_fields_and_needs_no_command(fake: Fake) -> None:
    async with running(NewRunScreen) as (app, pilot):
        assert "batch size" not in screen_text(app)
        await pilot.press(*"python3")
        await choose(app, pilot, "workload", "gcn")
        await shows(pilot, "$ gpuwatch run gcn")
        assert "steps" in screen_text(app) and "batch size" not in screen_text(app)
        assert app.screen.query_one("#command").disabled
        await choose(app, pilot, "workload", "torchvision:")
        await shows(pilot, "✗ write a model's name, such as vit_b_16")
        await pilot.press("tab", *"vit_b_16", shows="$ gpuwatch run torchvision:vit_b_16")
        assert "batch size" in screen_text(app)
        await choose(app, pilot, "workload", "own command")
        await shows(pilot, "$ gpuwatch run -- python3")


async def test_a_command_that_cannot_be_split_says_why(fake: Fake) -> None:
    async with running(NewRunScreen) as (app, pilot):
        await pilot.press(*"python 'train.py", "enter", shows="✗ a quotation mark is not closed")
        await shows(pilot, "✗ cannot start: see command")
        await shows(pilot, "nothing was started")
        await pilot.press("'", shows="$ gpuwatch run -- python train.py")
        assert "nothing was started" not in screen_text(app)
    assert started(fake) == []


async def test_a_line_for_a_shell_is_given_one_and_quotes_keep_it_words(
    session: Make, fake: Fake
) -> None:
    fake.records(session())
    async with running(NewRunScreen, (120, 40)) as (_, pilot):
        await pilot.press(*"train.py 100 | tee o")
        await says(pilot, "✗ | needs a shell: ^s puts bash before it")
        await pilot.press("enter", shows="bash -o pipefail -c 'train.py 100 | tee o'")
        await says(pilot, "bash stands before it now: ^s starts it")
        await says(pilot, "$ gpuwatch run -- bash -o pipefail -c 'train.py 100 | tee o'")
        await pilot.press("ctrl+u", *"a '|' b", shows="$ gpuwatch run -- a '|' b")
        await shows(pilot, "✓ 1 run")
        await pilot.press("enter", opens=LiveScreen)
    assert started(fake) == [["--", "a", "|", "b"]]


async def test_a_wrong_value_is_said_at_its_field_which_a_start_goes_to(fake: Fake) -> None:
    async with running(NewRunScreen, (80, 44)) as (app, pilot):
        await choose(app, pilot, "workload", "mnist-cnn")
        await focus(app, pilot, "more")
        await pilot.press("enter")
        await focus(app, pilot, "lr")
        await pilot.press("0")
        await says(pilot, "✗ must be a finite number above 0, not '0'")
        more = app.screen.query_one("#more", Collapsible)
        more.collapsed = True
        await pilot.press("ctrl+s")
        await until(pilot, lambda: not more.collapsed)
        assert app.focused is not None and app.focused.id == "lr"
        await says(pilot, "cannot start: learning rate: must be a finite number above 0, not '0'")
        await pilot.press("backspace", shows="$ gpuwatch run mnist-cnn")
    assert started(fake) == []


async def test_all_settings_are_open_at_once_where_there_is_room(fake: Fake) -> None:
    for height, folded in ((44, True), (45, False)):
        async with running(NewRunScreen, (80, height)) as (app, pilot):
            await choose(app, pilot, "workload", "mnist-cnn")
            assert app.screen.query_one("#more", Collapsible).collapsed is folded


async def test_an_environment_that_cannot_run_says_why_and_how_to_fix_it(fake: Fake) -> None:
    fake.finds(environment("bare"), environment("docker", "no Docker daemon answers"))
    async with running(NewRunScreen) as (app, pilot):
        await pilot.press(*"ls")
        await says(pilot, "[ ] docker ✗ no Docker daemon answers")
        assert "Fix" not in screen_text(app)
        await focus(app, pilot, "docker")
        await shows(pilot, "Fix: fix docker")
        why = {"text": "no Docker daemon answers", "hint": "fix docker"}
        _plans(fake, "bare", "docker", runs=[{"environment": 1, "problems": [why]}])
        await pilot.press("space")
        await pilot.press("ctrl+s")
        await says(pilot, "✗ cannot start: see docker; fix docker")
        assert screen_text(app).count("no Docker daemon answers") == 1
        assert started(fake) == []
        _plans(fake, "bare", runs=[{"environment": 0}])
        await pilot.press("space", shows="✓ 1 run: mnist-cnn in bare")


def _plans(fake: Fake, *environments: str, runs: list[dict[str, Any]]) -> None:
    labels = [{"label": label} for label in environments]
    part = {"cases": [{"label": "mnist-cnn"}], "environments": labels}
    fake.plans(parts=[part], runs=runs, seconds=42.0)


async def test_what_the_plan_cannot_start_is_said_at_the_environment(fake: Fake) -> None:
    why = {"text": "there is no command 'x'", "hint": "check its name"}
    fake.plans(runs=[{"environment": 0, "problems": [why]}])
    async with running(NewRunScreen) as (app, pilot):
        await pilot.press("x")
        await says(pilot, "[x] bare ✗ there is no command 'x'")
        await pilot.press("enter")
        assert isinstance(app.focused, Checkbox) and app.focused.label.plain == "bare"
    assert started(fake) == []


async def test_where_bare_cannot_run_another_that_can_is_chosen_unless_one_was(fake: Fake) -> None:
    fake.finds(environment("bare", "no torch"), environment("docker=mine"))
    async with running(NewRunScreen) as (app, pilot):
        await choose(app, pilot, "workload", "mnist-cnn")
        await says(pilot, "[x] docker=mine")
        await shows(pilot, "$ gpuwatch run mnist-cnn --env docker=mine")
    async with running(NewRunScreen) as (app, pilot):
        await focus(app, pilot, "bare")
        await pilot.press("space", "space")
        asked = len(fake.asked)
        await choose(app, pilot, "workload", "mnist-cnn")
        await until(pilot, lambda: DOCTOR in fake.asked[asked:])
        await shows(pilot, "[ ] docker=mine")
        assert form(app).form.ticked == ("bare",)


async def test_the_form_is_usable_before_the_machine_is_known(fake: Fake) -> None:
    (fake.folder / "doctor.json").unlink()
    fake.holds("doctor")
    async with running(NewRunScreen) as (app, pilot):
        assert "[x] bare" in screen_text(app) and "looking for engines" in screen_text(app)
        await choose(app, pilot, "workload", "cifar10-cnn")
        await shows(pilot, "✓ 1 run")
        fake.goes_on()
        await shows(pilot, "✗ FileNotFoundError")


async def test_gpus_are_chosen_and_decide_what_can_run(fake: Fake) -> None:
    why = "torch has no code for it"
    fake.finds(environment("bare", with_gpu=why), gpus=2, torch=why)
    async with running(NewRunScreen, (80, 40)) as (app, pilot):
        await choose(app, pilot, "workload", "mnist-cnn")
        await says(pilot, f"[x] bare ✗ {why}")
        await says(pilot, "cannot start: see bare; install another, or choose device cpu")
        await focus(app, pilot, "gpus")
        await pilot.press("enter", "tab", shows="[x] 0  NVIDIA H100")
        await pilot.press("space", shows="--gpus 1")
        await says(pilot, "[x] bare ✓ Engine of bare")
        await shows(pilot, "GPUs: 1 (1 of 2)")
        await pilot.press("tab", "space", shows="--gpus none")
        await pilot.press("space", "shift+tab", "space")
        await until(pilot, lambda: form(app).form.gpus is None)
        await shows(pilot, "GPUs: all of 2")


async def test_gpus_are_shown_if_another_program_is_typed_just_as_they_are_known(
    fake: Fake,
) -> None:
    fake.finds(environment("bare"), gpus=2)
    async with running(NewRunScreen, (80, 40)) as (app, pilot):

        async def interrupted() -> None:
            while not app.screen.query("#gpus Checkbox"):
                await asyncio.sleep(0)
            # As the question about the next program does, while the checkboxes are being added.
            app.workers.cancel_group(app.screen, "machine")

        await asyncio.wait_for(interrupted(), 60)
        await pilot.press(*"ls")
        await until(pilot, lambda: [*DOCTOR, "--", "ls"] in fake.asked)
        await shows(pilot, "GPUs: all of 2")


async def test_a_command_is_not_held_to_what_the_workloads_need(fake: Fake) -> None:
    why = "torch is built for CUDA 13"
    fake.finds(
        environment("bare", with_gpu=why), environment("docker", "no image"), gpus=1, torch=why
    )
    async with running(NewRunScreen, (120, 40)) as (app, pilot):
        await choose(app, pilot, "workload", "mnist-cnn")
        await says(pilot, f"[x] bare ✗ {why}")
        asked = len(fake.asked)
        fake.holds("doctor")
        await choose(app, pilot, "workload", "own command")
        await pilot.press("shift+tab", *"ls -l", shows="$ gpuwatch run -- ls -l")
        await until(pilot, lambda: [*DOCTOR, "--", "ls"] in fake.asked[asked:])
        assert why not in screen_text(app) and "no image" not in screen_text(app)
        await shows(pilot, "✓ 1 run")
        fake.finds(environment("bare"))
        fake.goes_on()
        await says(pilot, "[x] bare ✓ Engine of bare")
        asked = len(fake.asked)
        await choose(app, pilot, "workload", "alexnet")
        await until(pilot, lambda: DOCTOR in fake.asked[asked:])


async def test_an_image_can_be_typed_or_pasted(fake: Fake) -> None:
    async with running(NewRunScreen) as (app, pilot):
        await pilot.press(*"ls")
        await focus(app, pilot, "other")
        await pilot.press(*"pytorch/x", shows="✗ pytorch/x: write KIND=IMAGE")
        await pilot.press("ctrl+u")
        app.post_message(Paste("docker=a/b\n"))
        await shows(pilot, "--env bare --env docker=a/b")
        await pilot.press("tab", "space", shows="docker=a/b --pull -- ls")


async def test_at_another_place_nothing_is_told_of_this_machine(session: Make, fake: Fake) -> None:
    fake.records(session())
    fake.finds(environment("bare"), environment("docker", "no daemon answers"), gpus=1)
    async with running(HomeScreen, (120, 40)) as (app, pilot):
        await pilot.press("n", shows="start a run")
        await pilot.press(*"ls", shows="GPUs: all of 1")
        await says(pilot, "✗ no daemon answers")
        await focus(app, pilot, "on")
        await pilot.press(*"ssh=a slurm,a=[")
        await says(pilot, "✗ a [ has no ] in slurm,a=[; put the value in quotes")
        text = screen_text(app)
        assert "GPUs:" not in text and "no daemon" not in text and "Engine of" not in text
        await pilot.press(*"1]")
        await says(pilot, "$ gpuwatch run --on ssh=a --on 'slurm,a=[1]' -- ls")
        await says(pilot, "takes about 40 s")
        (fake.folder / "record.txt").write_text("/x/at a\n/x/at b")
        await pilot.press("ctrl+s", opens=HomeScreen)
        await shows(pilot, "the run has started")
    assert started(fake) == [["--on", "ssh=a", "--on", "slurm,a=[1]", "--", "ls"]]
    assert app.started == [Path("/x/at a"), Path("/x/at b")]


async def test_what_the_command_line_refuses_is_said_in_the_plan(fake: Fake) -> None:
    (fake.folder / "plan.json").write_text("")
    async with running(NewRunScreen) as (app, pilot):
        await pilot.press(*"ls")
        await focus(app, pilot, "other")
        await pilot.press(*"moon=x")
        await says(pilot, "cannot start: the command ended with exit code 0 and said nothing")
        await pilot.press("tab", "ctrl+s")
        assert app.focused is not None and app.focused.id == "other"
    assert started(fake) == []


async def test_the_plan_is_asked_for_once_no_more_changes_come(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(NewRunScreen) as (_, pilot):
        with monkeypatch.context() as patch:
            patch.setattr(new_run, "PLAN_AFTER_SECONDS", 3600.0)
            await pilot.press(*"sleep 10")
        await pilot.press("0", shows="✓ 1 run")
        (plan,) = [call for call in fake.asked if "--plan" in call]
        assert plan[-2:] == ["sleep", "100"]
        fake.plans(seconds=None, reason="no earlier run of sleep in bare that finished")
        await pilot.press("0")
        await says(pilot, "time unknown")


async def test_blocks_show_their_order_and_how_long_they_take(fake: Fake) -> None:
    names = [{"label": "bare"}, {"label": "docker"}]
    runs = [{"block": b, "environment": e} for b, e in ((0, 0), (0, 1), (1, 1), (1, 0))]
    cases = [{"label": "mnist-cnn", "parameters": {"steps": 100}}]
    part = {"cases": cases, "environments": names, "blocks": 1}
    fake.plans(parts=[part], runs=runs, seconds=300.0)
    async with running(NewRunScreen, (120, 40)) as (app, pilot):
        await choose(app, pilot, "workload", "mnist-cnn")
        await says(pilot, "✓ 4 runs: mnist-cnn in bare, docker")
        await says(pilot, "warm-up: bare, docker block 1: docker, bare")
        await says(pilot, "takes about 5 min, by earlier runs of the same")
        assert app.screen.query_one("#steps", Input).placeholder == "100"


async def test_the_real_commands_answer_and_start_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    (tmp_path / "HOME").mkdir()
    async with running(NewRunScreen, (100, 40)) as (app, pilot):
        await pilot.press(*"no-such-program")
        await says(pilot, "[x] bare ✗ there is no command 'no-such-program'")
        await pilot.press("enter")
        assert isinstance(app.screen, NewRunScreen)
        await focus(app, pilot, "command")
        await pilot.press("end", "ctrl+u", *"true", shows="✓ 1 run: true in bare")
        await says(pilot, "time unknown")
        await pilot.press("enter", opens=LiveScreen)
        await shows(pilot, "✓ finished")


async def test_a_refused_start_is_said_and_the_form_stays(fake: Fake) -> None:
    fake.refuses("gpuwatch: error: docker: no such image: x")
    async with running(HomeScreen) as (app, pilot):
        await pilot.press("n", *"ls", shows="$ gpuwatch run")
        await pilot.press("enter", shows="✗ error: docker: no such image: x")
        assert isinstance(app.screen, NewRunScreen)
        await pilot.press("escape", opens=HomeScreen)


async def test_what_was_filled_in_is_there_again_until_it_is_started(
    session: Make, fake: Fake
) -> None:
    fake.records(session())
    fake.finds(environment("bare"), environment("docker"))
    async with running(HomeScreen) as (app, pilot):
        await pilot.press("n", *"ls")
        await says(pilot, "[ ] docker ✓")
        await choose(app, pilot, "repeat", "once")
        await focus(app, pilot, "docker")
        await pilot.press("space", "escape", opens=HomeScreen)
        await pilot.press("n", "x")
        await says(pilot, "[x] docker ✓")
        assert form(app).form.command == "lsx" and form(app).form.ticked == ("bare", "docker")
        await pilot.press("enter", opens=LiveScreen)
        assert app.draft == {}


async def test_read_only_starts_nothing(fake: Fake) -> None:
    async with running(NewRunScreen, look=DisplayOptions(read_only=True)) as (_, pilot):
        await pilot.press(*"ls", shows="$ gpuwatch run")
        await pilot.press("enter", shows="read-only: start `gpuwatch`, or `gpuwatch serve")
    assert started(fake) == []


async def test_the_mouse_chooses_and_starts(session: Make, fake: Fake) -> None:
    fake.records(session())
    fake.finds(environment("bare"), environment("docker"))
    async with running(NewRunScreen) as (app, pilot):
        await shows(pilot, "Engine of docker")
        await click(pilot, "own command")
        await click(pilot, "gcn  ")
        await shows(pilot, "data type")
        await click(pilot, "[ ] docker")
        await click(pilot, "[x] bare")
        await shows(pilot, "$ gpuwatch run gcn --env docker")
        await click(pilot, "start  ^y")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))
    assert started(fake) == [["gcn", "--env", "docker"]]


async def click(pilot: Keys, text: str) -> None:
    """On the first place where ``text`` stands."""
    rows = screen_text(pilot.app).splitlines()  # type: ignore[arg-type]
    y = next(y for y, line in enumerate(rows) if text in line)
    await pilot.click(offset=(rows[y].index(text) + 1, y))
    await pilot.pause()


async def test_help_names_the_keys_and_letters_are_typed_in_fields(fake: Fake) -> None:
    async with running(NewRunScreen) as (app, pilot):
        theme = app.theme
        await pilot.press(*"t?q")
        assert form(app).form.command == "t?q" and app.theme == theme
        for key in ("f1", "question_mark"):
            await pilot.press(key, opens=HelpScreen)
            await shows(pilot, "start the run; so does Enter in a text field")
            await pilot.press("escape", opens=NewRunScreen)
            await pilot.press("tab")


@pytest.mark.usefixtures("every_size")
@pytest.mark.parametrize("size", [(60, 15), (80, 24), (160, 50)], ids=str)
async def test_every_field_can_be_reached_and_no_text_is_cut(
    fake: Fake, size: tuple[int, int]
) -> None:
    reason = " ".join(f"word{n}" for n in range(40))
    fake.finds(environment("bare"), environment("docker=" + "x" * 300, reason), gpus=8)
    async with running(NewRunScreen, size) as (app, pilot):
        await choose(app, pilot, "workload", "resnet18")
        if app.screen.query_one("#more", Collapsible).collapsed:  # a high screen has it open
            await focus(app, pilot, "more")
            await pilot.press("enter")
        await until(pilot, lambda: len(app.screen.query(Checkbox)) > 8)
        seen = set()
        for _ in app.screen.focus_chain:
            await pilot.press("tab")
            check_screen(app)
            focused = app.focused
            assert focused is not None
            assert focused.region.bottom <= size[1] - 1 and focused.region.width <= size[0]
            seen.add(focused.id)
        assert {"workload", "steps", "image_size", "other", "pull", "repeat", "plan"} <= seen
        row = next(each for each in app.screen.query(EnvironmentRow) if "=" in each.checkbox.label)
        text = "".join(row.checkbox.render_line(y).text for y in range(row.checkbox.size.height))
        assert text.count("x") == 300
        area = app.screen.query_one("#form")
        assert area.virtual_size.width <= area.size.width


async def test_a_start_goes_on_when_the_form_is_left_and_esc_says_so(
    session: Make, fake: Fake
) -> None:
    fake.records(session())
    for refused in (False, True):
        fake.holds("--record")
        async with running(HomeScreen) as (app, pilot):
            await pilot.press("n", *"ls", shows="✓ 1 run")
            await pilot.press("enter", shows="starting ...")
            await pilot.press("escape")
            await says(pilot, "it is being started, and goes on when you leave: Esc once more")
            await pilot.press("escape", opens=HomeScreen)
            if refused:
                fake.refuses("gpuwatch: error: no room")
            fake.goes_on()
            await shows(pilot, "✗ error: no room" if refused else "» the run has started")
            assert isinstance(app.screen, HomeScreen)
    assert len(started(fake)) == 2


async def test_a_start_outlives_the_program(fake: Fake) -> None:
    fake.holds("--record")
    async with running(NewRunScreen) as (_, pilot):
        await pilot.press(*"ls", "enter")
        await until(pilot, lambda: len(started(fake)) == 1)
    fake.goes_on()
    await asyncio.to_thread(fake.done, "--record --detach", 1)


async def test_a_start_without_an_answer_may_still_come(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = commands.run

    async def impatient(*arguments: str, **options: Any) -> commands.Outcome:
        hasty = {"timeout": 0.1} if "--detach" in arguments else {}
        return await run(*arguments, **options | hasty)

    monkeypatch.setattr(commands, "run", impatient)
    fake.holds("--record")
    async with running(NewRunScreen, (120, 40)) as (_, pilot):
        await pilot.press(*"ls", "enter")
        await says(pilot, "it may still start: Esc, and look in the list")
    fake.goes_on()
    await asyncio.to_thread(fake.done, "--record --detach", 1)


async def test_what_a_cpu_cannot_do_is_said_where_there_is_no_gpu(fake: Fake) -> None:
    async with running(NewRunScreen, (80, 50)) as (app, pilot):
        await shows(pilot, "Engine of bare")
        await says(pilot, "runs use the CPU: no NVIDIA GPU is seen")
        await choose(app, pilot, "workload", "mnist-cnn")
        await choose(app, pilot, "dtype", "tf32")
        await says(pilot, "cannot start: data type: tf32 is a format of NVIDIA's")
        await choose(app, pilot, "dtype", "float32")
        await shows(pilot, "a GPU where there is one")
        await choose(app, pilot, "device", "cuda")
        await shows(pilot, "✗ no NVIDIA GPU is seen")
        await choose(app, pilot, "device", "cpu")
        await says(pilot, "the CPU, also where there is a GPU")
        await shows(pilot, "$ gpuwatch run mnist-cnn --device cpu")
