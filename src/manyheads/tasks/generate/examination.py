"""What the doctor finds in continuations."""

import torch

from manyheads.data.text.corpus import Sentences
from manyheads.data.tokenizers.tokenizer import TextTokenizer
from manyheads.decode.sampling import Sampling
from manyheads.doctor.outputs import Outputs, looping, one_sentence
from manyheads.doctor.run_batches import Examined
from manyheads.models.causal_lm import CausalLanguageModel
from manyheads.project.base_recipe import Recipe
from manyheads.tasks.generate.task import complete

PROMPTS, WORDS, TOKENS = 40, 3, 48  # texts that a language model goes on with


def examine_continuations(
    model: CausalLanguageModel,
    tokenizer: TextTokenizer,
    lines: Sentences,
    recipe: Recipe,
    step: int,
) -> Examined:
    """Continue the first words of validation texts by sampling; report what is wrong.

    The most probable text loops even in good models (Holtzman et al. 2020).
    """
    chosen = list(lines.lines)[:PROMPTS]
    prompts = [" ".join(line.split()[:WORDS]) for line in chosen]
    with torch.inference_mode():
        drawn = complete(model, tokenizer, prompts, tokens=TOKENS, sampling=Sampling())
    written = Outputs(prompts, [best[0].text for best in drawn], chosen)
    found = [*one_sentence(written, recipe, step), *looping(written, recipe, step)]
    return Examined(found, [f"continuations: {len(written.outputs)} drawn"])
