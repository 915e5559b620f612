"""What the doctor finds in translations."""

from torch import nn

from manyheads.asks.decode_config import DecodeConfig
from manyheads.data.text.corpus import Corpus
from manyheads.data.tokenizers.tokenizer import Tokenizers
from manyheads.doctor.outputs import Outputs, habits, length, one_sentence
from manyheads.doctor.run_batches import Examined
from manyheads.generation.output_monitor import PAIRS
from manyheads.generation.text_decoding import translate
from manyheads.project.base_recipe import Recipe


def examine_translations(
    model: nn.Module,
    few: Corpus,
    tokenizers: Tokenizers,
    decode: DecodeConfig,
    recipe: Recipe,
    step: int,
    finished: bool,
) -> Examined:
    """Translate a sample of the validation data as the recipe searches; report what is wrong."""
    best = [found[0].text for found in translate(model, tokenizers, few.source, decode)]
    written = Outputs(few.source, best, few.target)
    found = [
        *one_sentence(written, recipe, step),
        *habits(written, recipe, step),
        *length(written, decode, step, finished=finished),
    ]
    count = len(written.outputs)
    if count < PAIRS:
        few_pairs = f"habits of the translations: {count} validation pairs are fewer than {PAIRS}"
        return Examined(found, not_looked_at=[few_pairs])
    looked_at = (
        f"translations: {count} of the validation data, beams = {decode.beams}: "
        "copies, loops, empty or equal ones, script, length"
    )
    return Examined(found, [looked_at])
