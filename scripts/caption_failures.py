"""Draw images whose caption is not one of theirs: the image, what was written, what was right.

    MANYHEADS_DATA=FOLDER .venv/bin/python scripts/caption_failures.py emoji-caption \
        "emoji/noto72.parquet[split=test_unseen]" docs/images/emoji-failures.png

The images are spread evenly over the wrong ones, in their order: nobody chose them.
"""

import argparse
from pathlib import Path

import numpy as np

import manyheads
from manyheads.data.images.pixels import Pixels
from manyheads.recipe_data.caption_splits import read_captioned
from manyheads.tasks.caption.predictor import Captioner
from manyheads.tasks.caption.task import caption, references

COUNT = 10


def main() -> None:
    """Caption the images and draw some failures."""
    from matplotlib import pyplot

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("out", type=Path)
    parser.add_argument("--language", default="en")
    given = parser.parse_args()
    model = manyheads.load(given.model)
    assert isinstance(model, Captioner)
    recipe = model.folder.recipe
    images = read_captioned(given.data, recipe.data)  # type: ignore[arg-type]
    right = {key: texts for key, texts in references(images).items() if key[1] == given.language}
    pixels = Pixels(images.images, model.preprocessing)
    found = caption(model.model, model.tokenizer, pixels, list(right), model.decode)
    wrong = [
        (index, best.text, texts[0])
        for (best, *_), ((index, _), texts) in zip(found, right.items(), strict=True)
        if best.text not in texts
    ]
    print(f"{len(wrong):,} of {len(right):,} captions in {given.language} are not the given one")
    chosen = [wrong[n] for n in np.linspace(0, len(wrong) - 1, COUNT).astype(int)]
    figure, axes = pyplot.subplots(2, COUNT // 2, figsize=(12, 5.6), layout="constrained")
    for axis, (index, written, meant) in zip(axes.flat, chosen, strict=True):
        axis.imshow(images.images.image(index).convert("RGBA"))
        axis.set_title(f"{_folded(written)}", fontsize=8, color="#b3261e")
        axis.set_xlabel(_folded(meant), fontsize=8, color="#444444")
        axis.set_xticks([])
        axis.set_yticks([])
        for side in axis.spines.values():
            side.set_visible(False)
    figure.suptitle("Written above, in red; below it what is right", fontsize=10)
    figure.savefig(given.out, dpi=120)
    print(f"wrote {given.out}")


def _folded(text: str, width: int = 26) -> str:
    """Break a long text into lines."""
    lines = [""]
    for word in text.split(" "):
        if len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)


if __name__ == "__main__":
    main()
