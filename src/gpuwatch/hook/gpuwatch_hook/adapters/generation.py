"""transformers' ``generate``: a call is a step of inference, of so many tokens."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from ..inference import Generated, generating


def watch(utils: ModuleType) -> None:
    """``transformers.generation.utils`` was loaded."""
    original = utils.GenerationMixin.generate

    @functools.wraps(original)
    def generate(self: Any, *args: Any, **keywords: Any) -> Any:
        return generating(original, _tokens, self, args, keywords)

    utils.GenerationMixin.generate = generate


def _tokens(
    model: Any, args: tuple[Any, ...], keywords: dict[str, Any], result: Any
) -> Generated | None:
    """What the call gave; ``None`` if it cannot be seen.

    Sequences that end early are filled up to the longest one. Their ends are read: ``generate`` has
    just waited for the device, to know that all have ended.
    """
    ids = args[0] if args else keywords.get("inputs", keywords.get("input_ids"))
    prompts = keywords.get("inputs_embeds") if ids is None else ids
    sequences = getattr(result, "sequences", result)
    if prompts is None or not hasattr(sequences, "shape"):
        return None
    count, length = sequences.shape
    before = 0 if ids is None else ids.shape[1]
    if model.config.is_encoder_decoder:
        decoder = keywords.get("decoder_input_ids")
        before = 1 if decoder is None else decoder.shape[1]
    prompt = count * prompts.shape[1]
    if count == 1:
        return Generated(count, prompt, length - before)
    config = args[1] if len(args) > 1 else keywords.get("generation_config")

    def asked(name: str) -> Any:
        given = keywords, ({} if config is None else vars(config)), vars(model.generation_config)
        return next((each[name] for each in given if each.get(name) is not None), None)

    if keywords.get("stopping_criteria") or asked("stop_strings"):
        return Generated(count, prompt, None)
    ends = asked("eos_token_id")
    ends = ends.tolist() if hasattr(ends, "tolist") else ends
    ends = {*ends} if isinstance(ends, (list, tuple)) else {ends}
    rows = sequences[:, before:].tolist()
    new = sum(
        next((at for at, each in enumerate(row, 1) if each in ends), len(row)) for row in rows
    )
    return Generated(count, prompt, new)
