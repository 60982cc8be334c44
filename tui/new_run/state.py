"""The form of a new run while it is filled in: where the cursor is, and what keys do to it."""

from __future__ import annotations

from dataclasses import field, replace
from functools import partial

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.shell_line import in_bash, operator_in
from gpuwatch.tui.new_run.answers import Machine, Place, PlanNow, Refusal
from gpuwatch.tui.new_run.fields import FIRST, Parameter, clash, taken
from gpuwatch.tui.new_run.form import (
    OF_TORCHVISION,
    OWN_COMMAND,
    REPEATS,
    Form,
    arguments,
    problems,
)
from gpuwatch.workloads import names

WORKLOADS: tuple[tuple[str, str], ...] = (
    *names.known().items(),
    (OF_TORCHVISION, "any image classification model of torchvision"),
    (OWN_COMMAND, "any program, in any language"),
)
"""What can be run, with a line on each."""


@dataclass(frozen=True)
class Item:
    """Something that the cursor can stand on."""

    key: str
    kind: str
    """``workload``, ``text``, ``tick``, ``choice`` or ``more``."""
    part: str
    """Items of one part are one stop of Tab."""
    name: str = ""
    """Of a workload, an environment or a GPU."""
    parameter: Parameter | None = None


@dataclass(frozen=True)
class LaunchState:
    """Everything that the form draws."""

    form: Form = field(default_factory=Form)
    cursor: str = f"workload={WORKLOADS[0][0]}"
    """Key of the item that it stands on."""
    more: bool | None = None
    """Whether all parameters are shown; ``None``: where there is room for them."""
    roomy: bool = False
    touched: bool = False
    """Whether the choice of environments is the person's."""
    machine: Machine | None = None
    """``None``: not known yet."""
    machine_of: str | None = None
    """The program that the environments of ``machine`` were asked about, as a form has it."""
    plan: PlanNow | None = None
    planned: tuple[str, ...] | None = None
    """The arguments that the plan is of."""
    message: str = ""
    """What the last key came to; one that begins with a cross is bad."""

    @property
    def fresh(self) -> PlanNow | None:
        """The plan of the form as it is; ``None``: not known yet, or nothing can be planned."""
        if self.plan is None or wrong(self) or arguments(self.form) != self.planned:
            return None
        return self.plan


def unfolded(state: LaunchState) -> bool:
    """Whether all parameters are shown."""
    return state.roomy if state.more is None else state.more


def wrong(state: LaunchState) -> dict[str, str]:
    """What cannot be used as it is, by the name of the field: in itself, or on this machine."""
    form, found = state.form, problems(state.form)
    no_gpu = "no GPU is ticked" if form.gpus == () else state.machine and state.machine.no_gpu
    if form.own or not no_gpu or {"dtype", "device"} & found.keys():
        return found
    if form.values.get("device") == "cuda":
        return {**found, "device": no_gpu}
    on_cpu = clash({"dtype": form.values.get("dtype"), "device": "cpu"})
    return {**found, on_cpu[0]: on_cpu[1]} if on_cpu else found


def items(state: LaunchState) -> tuple[Item, ...]:
    """All items in the order of the arrow keys."""
    form, machine = state.form, state.machine
    found = [_of_list(name) for name, _ in WORKLOADS]
    tick = partial(Item, kind="tick")
    found += [tick(f"env={text}", part="where", name=text) for text in places(state)]
    found += [Item("other", "text", "other"), tick("pull", part="pull")]
    gpus = machine.gpus if machine else ()
    found += [tick(f"gpu={each.choice}", part="gpus", name=each.choice) for each in gpus]
    found.append(Item("repeat", "choice", "repeat"))
    if not form.own:
        known = taken(form.case)
        shown = [each for each in known if unfolded(state) or each.name in FIRST]
        found += [Item(each.name, _kind(each), each.name, "", each) for each in shown]
        found.append(Item("more", "more", "more"))
    return tuple(found)


_TEXT_OF = {OWN_COMMAND: "command", OF_TORCHVISION: "model"}
"""The field that a row of the list is."""


def _of_list(name: str) -> Item:
    text = _TEXT_OF.get(name)
    return Item(text or f"workload={name}", "text" if text else "workload", "workload", name)


def _kind(parameter: Parameter) -> str:
    return "tick" if parameter.switch else "choice" if parameter.choices else "text"


def places(state: LaunchState) -> tuple[str, ...]:
    """The environments of the list, as ``--env`` takes them; those that can run come first."""
    known = state.machine.places if state.machine else ()
    told = sorted(known, key=lambda each: each.trouble(state.form.on_gpus) is not None)
    texts = [each.text for each in told] or ["bare"]
    return tuple(dict.fromkeys([*texts, *(t for t in state.form.ticked if t not in texts)]))


def place(state: LaunchState, text: str) -> Place | None:
    """What is known of an environment; nothing while it is asked about another program."""
    answered = state.machine is not None and state.machine_of == state.form.program
    known = state.machine.places if state.machine and answered else ()
    return next((each for each in known if each.text == text), None)


def trouble(state: LaunchState, text: str) -> Refusal | None:
    """Why nothing can run in an environment; the plan knows it of what is asked for, but not what
    the torch of bare runs can do with a GPU."""
    asked, plan, known = state.form.environments, state.fresh, place(state, text)
    torch = _torch(state) if text == "bare" else None
    if plan is not None and not plan.complaint and text in asked:
        why = (plan.troubles or {}).get(asked.index(text)) or torch
    else:
        why = known.trouble(state.form.on_gpus) if known else None
    if why is None or known is None or known.without_gpu is not None:
        return why
    of_gpus = {each.text for each in (torch, known.with_gpu) if each is not None}
    if not state.form.on_gpus or why.text not in of_gpus:
        return why
    way = "untick the GPUs" if state.form.own else "choose device cpu"
    return replace(why, hint=f"{why.hint}, or {way}" if why.hint else way)


def _torch(state: LaunchState) -> Refusal | None:
    """Why the torch of bare runs cannot use one of the GPUs that are ticked."""
    form = state.form
    known = state.machine.gpus if state.machine and form.on_gpus and not form.own else ()
    chosen = [each for each in known if form.gpus is None or each.choice in form.gpus]
    return next((each.torch for each in chosen if each.torch), None)


def obstacle(state: LaunchState) -> tuple[str, str] | None:
    """The first thing that stands against a start: the item's key, and what is wrong."""
    found = wrong(state)
    for item in items(state):
        if item.key in found:
            name = f"{item.parameter.label}: " if item.parameter else ""
            return item.key, f"{name}{found[item.key]}"
    if found:
        (key, text), *_ = found.items()
        return (f"env={places(state)[0]}" if key == "where" else key), text
    for text in state.form.environments:
        if why := trouble(state, text):
            key = f"env={text}" if text in state.form.ticked else "other"
            return key, f"{text}: {why.text}" + (f"; {why.hint}" if why.hint else "")
    if state.fresh is not None and state.fresh.complaint:
        return "other" if state.form.other.strip() else state.cursor, state.fresh.complaint
    return None


def current(state: LaunchState) -> Item:
    """The item that the cursor stands on."""
    listed = items(state)
    return next((each for each in listed if each.key == state.cursor), listed[0])


def moved(state: LaunchState, by: int) -> LaunchState:
    """``by`` items down or up; in the list of workloads that chooses, and it is left by Tab."""
    listed = items(state)
    here = listed.index(current(state))
    if current(state).part == "workload":
        return stand_on(state, listed[max(0, min(len(WORKLOADS) - 1, here + by))].key)
    there = listed[max(0, min(len(listed) - 1, here + by))]
    return stand_on(state, (there if there.part != "workload" else _chosen(state)).key)


def next_part(state: LaunchState, by: int) -> LaunchState:
    """To the next or the previous stop of Tab, round and round."""
    listed = items(state)
    parts = list(dict.fromkeys(each.part for each in listed))
    part = parts[(parts.index(current(state).part) + by) % len(parts)]
    if part == "workload":
        return stand_on(state, _chosen(state).key)
    return stand_on(state, next(each.key for each in listed if each.part == part))


def _chosen(state: LaunchState) -> Item:
    """The row of the list that is chosen."""
    return _of_list(state.form.workload)


def stand_on(state: LaunchState, key: str) -> LaunchState:
    """With the cursor on an item, unfolded where need be; a workload is chosen by that."""
    state = replace(state, cursor=key, message="")
    item = current(state)
    if item.key != key:
        state = replace(state, more=True)
    elif item.part == "workload":
        state = replace(state, form=replace(state.form, workload=item.name))
    return state


def gone_to(state: LaunchState, key: str) -> LaunchState:
    """At what stands against a start; a line for a shell is handed to one."""
    state = stand_on(state, key)
    if key != "command" or operator_in(state.form.command) is None:
        return state
    return with_text(state, in_bash(state.form.command.strip()))


def text_of(state: LaunchState) -> str | None:
    """What is being written; ``None``: the cursor is on no text."""
    item = current(state)
    return value_of(state.form, item) if item.kind == "text" else None


def value_of(form: Form, item: Item) -> str:
    """What a text holds, or a choice is on."""
    if item.parameter is not None:
        chosen = form.values.get(item.parameter.name, "")
        return chosen or (item.parameter.choices[0] if item.kind == "choice" else "")
    return str(getattr(form, item.key))


def with_text(state: LaunchState, text: str) -> LaunchState:
    """With the text under the cursor replaced."""
    return _with_value(state, current(state), text)


def pressed(state: LaunchState, by: int) -> LaunchState:
    """After Space, or an arrow to the side: a tick is changed, the next choice is taken."""
    item, form = current(state), state.form
    if item.kind == "more":
        return replace(state, more=not unfolded(state))
    if item.kind == "choice":
        choices = item.parameter.choices if item.parameter else tuple(REPEATS)
        here = choices.index(value_of(form, item))
        return _with_value(state, item, choices[(here + by) % len(choices)])
    if item.kind != "tick":
        return state
    if item.parameter is not None:
        return _with_value(state, item, "" if value_of(form, item) else "yes")
    if item.key == "pull":
        return replace(state, form=replace(form, pull=not form.pull), message="")
    if item.part == "gpus":
        return replace(state, form=replace(form, gpus=_gpus(state, item.name)), message="")
    order = places(state)
    chosen = {*form.ticked} ^ {item.name}
    form = replace(form, ticked=tuple(text for text in order if text in chosen))
    return replace(state, form=form, touched=True, message="")


def _gpus(state: LaunchState, choice: str) -> tuple[str, ...] | None:
    """The GPUs with one more, or one less; ``None``: all."""
    known = tuple(each.choice for each in state.machine.gpus) if state.machine else ()
    chosen = {*(known if state.form.gpus is None else state.form.gpus)} ^ {choice}
    return None if chosen == {*known} else tuple(each for each in known if each in chosen)


def _with_value(state: LaunchState, item: Item, value: str) -> LaunchState:
    if item.parameter is not None:
        form = replace(state.form, values={**state.form.values, item.parameter.name: value})
    else:
        fields: dict[str, str] = {item.key: value}
        form = replace(state.form, **fields)  # type: ignore[arg-type]
    return replace(state, form=form, message="")


def with_machine(state: LaunchState, machine: Machine, program: str | None) -> LaunchState:
    """With what can run here. Where the choice is untouched and cannot run, another that can is
    taken."""
    state = replace(state, machine=machine, machine_of=program)
    on_gpus = state.form.on_gpus
    able = [each.text for each in machine.places if each.trouble(on_gpus) is None]
    if state.touched or not able or state.form.own or set(state.form.ticked) & set(able):
        return state
    return replace(state, form=replace(state.form, ticked=(able[0],)))
