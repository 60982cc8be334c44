"""The form of a new run on the screen: what can be chosen, what it answers, what it starts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from gpuwatch.tui import commands
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.display_options import DisplayOptions
from gpuwatch.tui.home.screen import HomeScreen
from gpuwatch.tui.live.screen import LiveScreen
from gpuwatch.tui.new_run.answers import Machine, Place, PlanNow, Refusal, machine, plan
from gpuwatch.tui.new_run.screen import NewRunScreen
from gpuwatch.tui.new_run.state import LaunchState, pressed, with_machine
from gpuwatch.tui.new_run.state import stand_on as stand_on_item
from gpuwatch.tui.widgets.page import PageScreen

from ..conftest import Fake, environment
from ..harness import running, screen_text, shows, until

Make = Callable[..., Path]


def form(app: GpuwatchApp) -> NewRunScreen:
    assert isinstance(app.screen, NewRunScreen)
    return app.screen


def row(app: GpuwatchApp, word: str) -> str:
    """The only row of the screen with ``word``."""
    (found,) = [line for line in screen_text(app).splitlines() if word in line]
    return found


def started(fake: Fake) -> list[list[str]]:
    return [call[2:] for call in fake.asked if call[:2] == ["--record", "--detach"]]


async def says(pilot: Pilot[int], words: str) -> None:
    """Wait until the screen says ``words``, whatever blanks stand between them."""
    app: GpuwatchApp = pilot.app  # type: ignore[assignment]
    await until(pilot, lambda: words in " ".join(screen_text(app).split()))


async def stand_on(app: GpuwatchApp, pilot: Pilot[int], key: str) -> None:
    """Tab to an item."""
    for _ in range(30):
        if form(app).state.cursor == key:
            return
        await pilot.press("tab")
    raise AssertionError(f"Tab never came to {key}")


async def test_a_newcomer_starts_the_first_run_with_enter_alone(session: Make, fake: Fake) -> None:
    fake.records(session())
    async with running(HomeScreen) as (app, pilot):
        await pilot.press("n")
        await shows(pilot, "$ gpuwatch run mnist-cnn")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen))
    assert started(fake) == [["mnist-cnn"]]


async def test_what_is_filled_in_is_what_is_shown_and_started(session: Make, fake: Fake) -> None:
    fake.records(session())
    fake.finds(environment("bare"), environment("docker"), gpus=1)
    async with running(NewRunScreen) as (app, pilot):
        await shows(pilot, "Engine of docker")
        await pilot.press("down", "tab", "down", "space")
        await stand_on(app, pilot, "repeat")
        await pilot.press("right", "tab", *"500", "tab", *"32", "tab", "left")
        line = "gpuwatch run sentiment-rnn --batch-size 32 --steps 500 --dtype float16"
        await shows(pilot, f"$ {line}")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))
    (asked,) = started(fake)
    assert asked[:-1] == [
        *line.split()[2:],
        *("--env", "bare", "--env", "docker", "--quick", "--order-seed"),
    ]


async def test_a_field_says_beside_it_what_is_wrong_and_enter_goes_there(fake: Fake) -> None:
    async with running(NewRunScreen) as (app, pilot):
        await stand_on(app, pilot, "steps")
        await pilot.press("x")
        assert "✗ must be an integer of at least 1, not 'x'" in row(app, "steps ")
        await pilot.press("shift+tab", "enter")
        await until(pilot, lambda: form(app).state.cursor == "steps")
        await shows(pilot, "cannot start: steps: must be an integer")
        await shows(pilot, "» nothing was started")
        assert screen_text(app).count("must be an integer") == 2  # in the plan, and at its field
        await pilot.press("backspace")
        await shows(pilot, "$ gpuwatch run mnist-cnn")
    assert started(fake) == []


def plan_of(fake: Fake, *environments: str, runs: list[dict[str, Any]]) -> None:
    """What is answered to a plan of these: it counts more than what doctor said."""
    labels = [{"label": label} for label in environments]
    part = {"cases": [{"label": "mnist-cnn"}], "environments": labels}
    fake.plans(parts=[part], runs=runs, seconds=42.0)


async def test_an_environment_that_cannot_run_says_why_and_what_mends_it(fake: Fake) -> None:
    fake.finds(environment("bare"), environment("docker", "no Docker daemon answers"))
    async with running(NewRunScreen) as (_, pilot):
        await says(pilot, "[ ] docker ✗ no Docker daemon answers")
        await pilot.press("tab", "down")
        await shows(pilot, "docker: no Docker daemon answers; fix docker")
        why = {"text": "no Docker daemon answers", "hint": "fix docker"}
        plan_of(fake, "bare", "docker", runs=[{"environment": 1, "problems": [why]}])
        await pilot.press("space", "enter")
        await shows(pilot, "✗ cannot start: docker: no Docker daemon answers; fix docker")
        assert started(fake) == []
        plan_of(fake, "bare", runs=[{"environment": 0}])
        await pilot.press("space")
        await shows(pilot, "✓ 1 run: mnist-cnn in bare")


async def test_what_the_plan_cannot_start_is_said_at_the_environment(fake: Fake) -> None:
    why = {"text": "there is no command 'x'", "hint": "check its name"}
    fake.plans(runs=[{"environment": 0, "problems": [why]}])
    async with running(NewRunScreen) as (app, pilot):
        await says(pilot, "[x] bare ✗ there is no command 'x'")
        await pilot.press("enter")
        assert form(app).state.cursor == "env=bare"
    assert started(fake) == []


async def test_where_bare_cannot_run_another_that_can_is_ticked_unless_one_was_chosen(
    fake: Fake,
) -> None:
    fake.finds(environment("bare", "no torch"), environment("docker=mine"))
    async with running(NewRunScreen) as (_, pilot):
        await says(pilot, "[x] docker=mine")
        await shows(pilot, "$ gpuwatch run mnist-cnn --env docker=mine")
    chosen = pressed(pressed(stand_on_item(LaunchState(), "env=bare"), 1), 1)
    found = Machine((Place("bare", "", Refusal("no torch"), None), Place("docker", "", None, None)))
    assert with_machine(chosen, found, None).form.ticked == ("bare",)
    assert with_machine(LaunchState(), found, None).form.ticked == ("docker",)


async def test_the_form_is_usable_before_anything_is_known(fake: Fake) -> None:
    (fake.folder / "doctor.json").unlink()
    fake.holds("doctor")
    async with running(NewRunScreen) as (app, pilot):
        assert "[x] bare" in screen_text(app) and "looking for engines" in screen_text(app)
        await pilot.press("down", "down")
        assert "▸ cifar10-cnn" in screen_text(app)
        fake.goes_on()
        await shows(pilot, "✗ FileNotFoundError")


async def test_gpus_are_ticked_and_decide_what_can_run(fake: Fake) -> None:
    why = "torch has no code for it"
    fake.finds(environment("bare", with_gpu=why), gpus=2, torch=why)
    async with running(NewRunScreen, (80, 40)) as (app, pilot):
        await says(pilot, f"[x] bare ✗ {why}")
        await says(pilot, f"cannot start: bare: {why}; install another, or choose device cpu")
        await stand_on(app, pilot, "gpu=0")
        await pilot.press("space")
        await shows(pilot, "--gpus 1")
        await says(pilot, "[x] bare ✓ Engine of bare")
        await pilot.press("down", "space")
        await shows(pilot, "--gpus none")
        await says(pilot, "[x] bare ✓ Engine of bare")
        await pilot.press("up", "space", "down", "space")
        await until(pilot, lambda: form(app).state.form.gpus is None)


async def test_an_own_command_has_a_field_in_its_row(session: Make, fake: Fake) -> None:
    fake.records(session())
    async with running(NewRunScreen) as (app, pilot):
        await pilot.press("end")
        await shows(pilot, "cannot start: write what to run, such as python3 train.py")
        assert "batch size" not in screen_text(app)
        await pilot.press("down", *"python3 t?.py")
        assert "[python3 t?.py" in row(app, "own command")
        await shows(pilot, "$ gpuwatch run -- python3 't?.py'")
        await until(
            pilot,
            lambda: (
                ["doctor", "--quick", "--images", "--format", "json", "--", "python3"] in fake.asked
            ),
        )
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))
    assert started(fake) == [["--", "python3", "t?.py"]]


async def test_a_line_for_a_shell_is_offered_to_bash_and_quotes_keep_it_words(
    session: Make, fake: Fake
) -> None:
    fake.records(session())
    async with running(NewRunScreen, (120, 40)) as (app, pilot):
        await pilot.press("end", *"train.py 100 | tee o")
        await shows(pilot, "✗ cannot start: | is for a shell: Enter writes bash -c around it all")
        assert "✓ 1 run" not in screen_text(app)
        await pilot.press("enter")
        await shows(pilot, "[bash -c 'train.py 100 | tee o'")
        await shows(pilot, "» nothing was started")
        await shows(pilot, "$ gpuwatch run -- bash -c 'train.py 100 | tee o'")
        await pilot.press("ctrl+u", *"a '|' b")
        await shows(pilot, "$ gpuwatch run -- a '|' b")
        await shows(pilot, "✓ 1 run")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))
    assert started(fake) == [["--", "a", "|", "b"]]


LOOK = ["doctor", "--quick", "--images", "--format", "json"]


async def test_an_own_command_is_not_held_to_what_the_workloads_need(fake: Fake) -> None:
    why = "torch is built for CUDA 13"
    fake.finds(
        environment("bare", with_gpu=why), environment("docker", "no image"), gpus=1, torch=why
    )
    async with running(NewRunScreen, (120, 40)) as (app, pilot):
        await says(pilot, f"[x] bare ✗ {why}")
        asked = len(fake.asked)
        fake.holds("doctor")
        await pilot.press("end", *"ls -l")
        await shows(pilot, "$ gpuwatch run -- ls -l")
        await until(pilot, lambda: len(fake.asked) > asked)
        assert why not in screen_text(app) and "no image" not in screen_text(app)
        await shows(pilot, "✓ 1 run")
        fake.finds(environment("bare"))
        fake.goes_on()
        await says(pilot, "[x] bare ✓ Engine of bare")
        asked = len(fake.asked)
        await pilot.press("up", "up")
        await shows(pilot, "$ gpuwatch run alexnet")
        await until(pilot, lambda: LOOK in fake.asked[asked:])


async def test_an_image_can_be_typed_or_pasted(fake: Fake) -> None:
    async with running(NewRunScreen) as (app, pilot):
        await stand_on(app, pilot, "other")
        await pilot.press(*"pytorch")
        await shows(pilot, "✓ 1 run: mnist-cnn in bare")
        await pilot.press("slash", "x")
        await shows(pilot, "✗ pytorch/x: write KIND=IMAGE")
        await pilot.press("ctrl+u")
        from textual.events import Paste

        app.post_message(Paste("docker=a/b\n"))
        await shows(pilot, "--env bare --env docker=a/b")
        await pilot.press("tab", "space")
        await shows(pilot, "docker=a/b --pull")


async def test_what_the_command_line_refuses_is_said_at_the_field_of_images(fake: Fake) -> None:
    (fake.folder / "plan.json").write_text("")
    async with running(NewRunScreen) as (app, pilot):
        await shows(pilot, "cannot start")
        await stand_on(app, pilot, "other")
        await pilot.press(*"moon=x")
        await shows(pilot, "   ✗ the command ended with exit code 0 and said nothing")
        await pilot.press("tab", "enter")
        assert form(app).state.cursor == "other"
    assert started(fake) == []


async def test_the_real_commands_answer_and_start_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    (tmp_path / "HOME").mkdir()
    async with running(NewRunScreen, (100, 40)) as (app, pilot):
        await pilot.press("end", "down", *"no-such-program")
        await says(pilot, "[x] bare ✗ there is no command 'no-such-program'")
        await pilot.press("enter")
        assert isinstance(app.screen, NewRunScreen)
        await stand_on(app, pilot, "command")
        await pilot.press("ctrl+u", *"true")
        await shows(pilot, "✓ 1 run: true in bare")
        await shows(pilot, "time unknown: no earlier run of true in bare that finished")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen), seconds=60)
        await shows(pilot, "✓ finished")


async def test_all_parameters_unfold_and_a_hidden_one_that_is_wrong_is_shown(fake: Fake) -> None:
    async with running(NewRunScreen, (80, 32)) as (app, pilot):
        await stand_on(app, pilot, "more")
        await pilot.press("space")
        await shows(pilot, "learning rate")
        await stand_on(app, pilot, "lr")
        await pilot.press("0")
        await stand_on(app, pilot, "more")
        await pilot.press("space")
        await until(pilot, lambda: "learning rate  [" not in screen_text(app))
        await pilot.press("enter")
        await shows(pilot, "✗ must be a finite number above 0, not '0'")
        assert form(app).state.cursor == "lr"


async def test_blocks_show_their_order_and_how_long_they_take(fake: Fake) -> None:
    names = [{"label": "bare"}, {"label": "docker"}]
    runs = [{"block": b, "environment": e} for b, e in ((0, 0), (0, 1), (1, 1), (1, 0))]
    cases = [{"label": "mnist-cnn", "parameters": {"steps": 100}}]
    part = {"cases": cases, "environments": names, "blocks": 1}
    fake.plans(parts=[part], runs=runs, seconds=300.0)
    async with running(NewRunScreen, (120, 40)) as (app, pilot):
        await shows(pilot, "✓ 4 runs: mnist-cnn in bare, docker")
        text = screen_text(app)
        assert "warm-up: bare, docker" in text and "block 1: docker, bare" in text
        assert "takes about 5 min, by earlier runs of the same" in text
        assert "[100 " in row(app, "timed steps")


async def test_a_time_that_is_not_known_has_its_reason(fake: Fake) -> None:
    fake.plans(seconds=None, reason="no earlier run of gcn in bare that finished")
    async with running(NewRunScreen) as (_, pilot):
        await shows(pilot, "time unknown: no earlier run of gcn in bare that finished")


async def test_a_refusal_is_shown_and_the_form_stays(fake: Fake) -> None:
    fake.refuses("gpuwatch: error: docker: no such image: x")
    async with running(HomeScreen) as (app, pilot):
        await pilot.press("n")
        await shows(pilot, "$ gpuwatch run")
        await pilot.press("enter")
        await shows(pilot, "✗ error: docker: no such image: x")
        assert isinstance(app.screen, NewRunScreen)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen))


async def test_read_only_starts_nothing(fake: Fake) -> None:
    app = GpuwatchApp(NewRunScreen, DisplayOptions(read_only=True))
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "$ gpuwatch run")
        await pilot.press("enter")
        await shows(pilot, "✗ read-only: start `gpuwatch serve --allow-actions`")
    assert started(fake) == []


async def test_the_mouse_chooses_ticks_and_starts(session: Make, fake: Fake) -> None:
    fake.records(session())
    fake.finds(environment("bare"), environment("docker"))
    async with running(NewRunScreen) as (app, pilot):
        await shows(pilot, "Engine of docker")
        await click(pilot, "gcn  ")
        assert form(app).state.form.workload == "gcn"
        await click(pilot, "[ ] docker")
        await click(pilot, "[x] bare")
        assert form(app).state.form.ticked == ("docker",)
        await shows(pilot, "$ gpuwatch run gcn --env docker")
        await click(pilot, "Enter start")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen))
    assert started(fake) == [["gcn", "--env", "docker"]]


async def click(pilot: Pilot[int], text: str) -> None:
    """On the first place where ``text`` stands."""
    rows = screen_text(pilot.app).splitlines()  # type: ignore[arg-type]
    y = next(y for y, line in enumerate(rows) if text in line)
    await pilot.click(offset=(rows[y].index(text) + 1, y))
    await pilot.pause()


async def test_a_small_screen_scrolls_with_the_cursor_and_the_wheel(fake: Fake) -> None:
    async with running(NewRunScreen, (60, 16)) as (app, pilot):
        await shows(pilot, "more rows, then: plan")
        assert "batch size" not in screen_text(app)
        await stand_on(app, pilot, "more")
        assert "batch size" in screen_text(app) and "more rows" not in screen_text(app)
        form(app).action_scroll_by(-100)
        await shows(pilot, "mnist-cnn")
        await pilot.press("up")
        await shows(pilot, "▸ device")


async def test_help_names_the_keys_and_letters_are_typed_in_fields(fake: Fake) -> None:
    async with running(NewRunScreen) as (app, pilot):
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, PageScreen))
        await shows(pilot, "Ctrl+S")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, NewRunScreen))
        theme = app.theme
        await stand_on(app, pilot, "other")
        await pilot.press(*"docker=t?q")
        assert form(app).state.form.other == "docker=t?q" and app.theme == theme
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, PageScreen))


@pytest.mark.usefixtures("every_size")
@pytest.mark.parametrize("size", [(60, 16), (80, 24), (120, 40), (160, 50), (200, 60)], ids=str)
async def test_every_row_fits_at_every_size(fake: Fake, size: tuple[int, int]) -> None:
    fake.finds(environment("bare"), environment("docker=" + "x" * 300, "y" * 300), gpus=8)
    async with running(NewRunScreen, size) as (app, pilot):
        await until(pilot, lambda: form(app).state.machine is not None)
        for _ in range(14):
            await pilot.press("tab")
            lines = [*form(app)._drawn.lines]
            assert len(lines) == size[1] - 1 and all(line.used <= size[0] for line in lines)


@pytest.mark.parametrize(
    "text",
    [
        *("", "no json", "[]", "[" * 100_000, '{"environments": 3, "runs": 3, "parts": {}}'),
        '{"environments": [1, {"env": {}, "without_gpu": {"problems": [{"text": 5}]}}]}',
        '{"gpus": [{"id": null}], "runs": [{"environment": "a", "block": {}}], "parts": [[]]}',
        '{"parts": [{"cases": [7], "environments": [{"label": "\\u001b[2J"}], "blocks": 1e999}],'
        ' "runs": [{"environment": 99, "block": []}], "seconds": "soon"}',
    ],
)
def test_whatever_a_command_answers_nothing_is_raised(text: str) -> None:
    outcome = commands.Outcome(0, text, "")
    found, planned = machine(outcome), plan(outcome)
    assert isinstance(found, Machine) and isinstance(planned, PlanNow)
    assert "\x1b" not in repr((found, planned)).replace("\\x1b", "\x1b")


async def test_what_a_cpu_cannot_do_is_said_where_there_is_no_gpu(fake: Fake) -> None:
    async with running(NewRunScreen) as (app, pilot):
        await shows(pilot, "Engine of bare")
        await stand_on(app, pilot, "dtype")
        await pilot.press("right")
        assert "✗ tf32 is a format of NVIDIA's" in row(app, "data type ")
        assert "cannot start: data type: tf32 is a format" in screen_text(app)
        await pilot.press("left", "tab")
        assert "a GPU where there is one" in row(app, "< auto >")
        await pilot.press("left")
        assert "✗ no NVIDIA GPU is seen" in row(app, "< cuda >")
        await pilot.press("right", "right")
        assert "the CPU, also where there is a GPU" in row(app, "< cpu >")
        await shows(pilot, "$ gpuwatch run mnist-cnn --device cpu")


async def test_a_start_goes_on_when_the_form_is_left_and_esc_says_so(
    session: Make, fake: Fake
) -> None:
    fake.records(session())
    for refused in (False, True):
        fake.holds("--record")
        async with running(HomeScreen) as (app, pilot):
            await pilot.press("n")
            await shows(pilot, "✓ 1 run")
            await pilot.press("enter")
            await shows(pilot, "starting ...")
            await pilot.press("escape")
            await shows(pilot, "it is being started, and goes on when you leave: Esc once more")
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, HomeScreen))
            if refused:
                fake.refuses("gpuwatch: error: no room")
            fake.goes_on()
            await shows(pilot, "✗ error: no room" if refused else "» the run has started")
            assert isinstance(app.screen, HomeScreen)
    assert len(started(fake)) == 2


async def test_a_start_outlives_the_program(fake: Fake) -> None:
    fake.holds("--record")
    async with running(NewRunScreen) as (_, pilot):
        await shows(pilot, "✓ 1 run")
        await pilot.press("enter")
        await until(pilot, lambda: len(started(fake)) == 1)
    fake.goes_on()
    await asyncio.to_thread(fake.done, "--record --detach", 1)


async def test_a_start_without_an_answer_may_still_come(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(commands.run.__kwdefaults__, "timeout", 0.5)
    fake.holds("--record")
    async with running(NewRunScreen, (120, 40)) as (_, pilot):
        await shows(pilot, "✓ 1 run")
        await pilot.press("enter")
        await shows(pilot, "it may still start: Esc, and look in the list")
    fake.goes_on()
    await asyncio.to_thread(fake.done, "--record --detach", 1)


async def test_where_there_is_room_all_parameters_are_shown(fake: Fake) -> None:
    async with running(NewRunScreen, (160, 50)) as (app, pilot):
        assert "learning rate" in screen_text(app)
        await stand_on(app, pilot, "more")
        await pilot.press("space")
        await until(pilot, lambda: "9 more: epochs" in screen_text(app))
