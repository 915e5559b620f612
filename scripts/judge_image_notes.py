"""Ask whether notes stand on wrong classes: of images of a known class, and of foreign ones.

MANYHEADS_DATA=FOLDER python -m scripts.judge_image_notes

100 images of a model's own validation data, and 66 of each of three foreign kinds: pictures
(photographs, for cifar10-cct-2-3x2 emoji), drawn letters, and noise or a flat colour. Any class of
a foreign image is wrong. emoji-search chooses from ten words: for its own images their name and
nine others', for photographs CIFAR-10's classes, where the right one counts as right.
"""

import string
from random import Random
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

import manyheads
from manyheads.recipe_data.caption_splits import captioned_splits
from manyheads.recipe_data.image_splits import find_images, image_split
from scripts.judge_notes import SEED, report

Images = list[tuple[Image.Image, str]]  # each with its class


def drawn(random: Random) -> dict[str, Images]:
    """66 letters, and 66 of noise or of one colour."""
    numbers, font = np.random.default_rng(SEED), ImageFont.load_default(48)
    letters, plain = [], []
    for number in range(66):
        paper = Image.new("RGB", (64, 64), "white")
        ImageDraw.Draw(paper).text((14, 2), random.choice(string.ascii_letters), "black", font)
        letters.append((paper, ""))
        shape = (64, 64, 3) if number % 2 else (1, 1, 3)
        pixels = numbers.integers(0, 256, shape, dtype=np.uint8)
        plain.append((Image.fromarray(np.broadcast_to(pixels, (64, 64, 3)).copy()), ""))
    return {"letters": letters, "noise or a flat colour": plain}


def chosen(random: Random, images: Any, classes: list[str], count: int) -> Images:
    """Images of a set with their classes."""
    rows = random.sample(range(len(images)), count)
    return [(Image.fromarray(np.asarray(images.open(n)).copy()), classes[n]) for n in rows]


def main() -> None:
    """Ask each model, and print."""
    models: dict[str, Any] = {
        n: manyheads.load(n) for n in ("cifar10-cct-2-3x2", "digits", "emoji-search")
    }
    recipes = {name: model.folder.recipe for name, model in models.items()}
    cifar = recipes["cifar10-cct-2-3x2"].data
    _, emoji = captioned_splits(recipes["emoji-search"])
    names = [emoji.texts[emoji.captions(n)[0]] for n in range(len(emoji))]
    photos = find_images(cifar.test, cifar)
    for name, model in models.items():
        random, search = Random(SEED), name == "emoji-search"
        if search:
            own = chosen(random, emoji.images, names, 100)
        else:
            valid = image_split("valid", recipes[name])
            own = chosen(random, valid, [valid.classes[n] for n in valid.labels], 100)
        if name.startswith("cifar10"):
            others = chosen(random, emoji.images, [""] * len(emoji), 66)
        else:
            labels = [photos.classes[n] if search else "" for n in photos.labels]
            others = chosen(random, photos, labels, 66)
        kinds, right, noted, score = [], [], [], []
        for kind, images in {"own": own, "pictures": others, **drawn(random)}.items():
            for image, label in images:
                words = {}
                if search and kind == "pictures":
                    words = {"labels": tuple(photos.classes)}
                elif search:
                    rest = random.sample(sorted({*names} - {label}), 9 if label else 10)
                    words = {"labels": tuple(filter(None, (label, *rest)))}
                (answer,) = model.respond(model.request(images=[image], **words))
                kinds.append(kind)
                right.append(answer.classes[0].label == label)
                noted.append(bool(answer.notes))
                score.append(answer.classes[0].probability)
        report(name, kinds, right, noted, score)


if __name__ == "__main__":
    main()
