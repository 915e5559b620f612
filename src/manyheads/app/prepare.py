"""From a recipe's names to data in memory: what a run needs before its model."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch

from manyheads.app.folder import (
    CACHE,
    LEFT_OUT,
    ModelFolder,
    read_json,
    write_atomically,
    write_json,
    write_labels,
    write_left_out,
    write_preprocessing,
    write_vocabularies,
)
from manyheads.app.paths import find_model
from manyheads.app.recipe import (
    ClassifyRecipe,
    FillRecipe,
    GenerateRecipe,
    PictureRecipe,
    Recipe,
    ReconstructRecipe,
    TagRecipe,
    TranslateRecipe,
)
from manyheads.app.sentences import sentences, training_sentences
from manyheads.app.sources import (
    corpus_split,
    image_splits,
    refuse_test_splits,
    training_corpus,
)
from manyheads.app.start import start_vocabularies
from manyheads.app.vocabulary import (
    Vocabularies,
    learn_vocabularies,
    load_vocabularies,
    sizes,
    tokenizers,
)
from manyheads.data.characters import Characters
from manyheads.data.images import ImageSet
from manyheads.data.monolingual import Sentences
from manyheads.data.spacing import without_spaces
from manyheads.data.splits import refuse_test
from manyheads.data.streamed import StreamedCorpus
from manyheads.data.text import Corpus
from manyheads.data.token_store import TokenStore, encode_on_disk
from manyheads.data.tokenizer import TextTokenizer, Tokenizer
from manyheads.errors import DataError, RecipeError
from manyheads.models.presets import Config
from manyheads.models.reach import limited, reach
from manyheads.models.vit import VitConfig
from manyheads.tasks.classify import ClassifyTask
from manyheads.tasks.decoding import SpecialIds
from manyheads.tasks.distil import Teacher
from manyheads.tasks.language import MaskedToken, NextToken
from manyheads.tasks.metrics import TEXT_METRICS
from manyheads.tasks.reconstruct import ReconstructTask
from manyheads.tasks.tag import Spacing
from manyheads.tasks.tag import measure as measure_spacing
from manyheads.tasks.tokenwise import Examples, TokenTask
from manyheads.tasks.tokenwise import measure as measure_tokens
from manyheads.tasks.translate import TranslateTask
from manyheads.train.device import best_device
from manyheads.train.task import Task


class Prepared(NamedTuple):
    """What a run is made of before its model."""

    task: Task[Any]
    config: Config
    write_inputs: Callable[[Path], None]  # the tokenizer, or preprocessing and labels
    # What a resumed run should find again: sha256 over the data, and over the teacher's folder.
    conditions: dict[str, str]


def prepare(recipe: Recipe, out: Path, say: Callable[[str], None]) -> Prepared:
    """Read a recipe's data; take the tokenizer from the run folder `out`, if it is there.

    Raises:
        NotFoundError: data are missing.
        DataError: data cannot be used.
        UsageError: data are a test split.
    """
    say(f"reading {recipe.data.train}")
    if isinstance(recipe, TranslateRecipe):
        return _prepare_text(recipe, out, say)
    if isinstance(recipe, GenerateRecipe | FillRecipe):
        return _prepare_language(recipe, out, say)
    if isinstance(recipe, TagRecipe):
        return _prepare_tags(recipe, out, say)
    if isinstance(recipe, ReconstructRecipe):
        return _prepare_reconstruction(recipe, out, say)
    return _prepare_images(recipe, out, say)


def _prepare_text(recipe: TranslateRecipe, out: Path, say: Callable[[str], None]) -> Prepared:
    for name in recipe.evaluate.metrics:
        # A missing package is found before training.
        TEXT_METRICS[name](["text"], ["text"], recipe.data.target)
    corpus, valid = training_corpus(recipe.data), corpus_split("valid", recipe.data)
    refuse_test_splits(corpus, valid)
    found = load_vocabularies(out)
    if not found:
        sources, targets = corpus.sample(recipe.seed)
        if recipe.start is not None:
            say("taking over the vocabulary of the models to start from")
            found = start_vocabularies(recipe, sources, targets)
        else:
            kind = "a vocabulary" if recipe.tokenizer.shared else "two vocabularies"
            which = "" if isinstance(corpus, Corpus) else "a sample of "
            say(f"learning {kind} from {which}{len(sources):,} pairs")
            found = learn_vocabularies(sources, targets, recipe.tokenizer)
    config = recipe.config(**sizes(found))
    task = TranslateTask(
        corpus,
        valid,
        tokenizers(found),
        recipe.train,
        recipe.evaluate,
        seed=recipe.seed,
        ids=cast(SpecialIds, config),
        sampling=recipe.tokenizer.sampling,
        store=_on_disk(corpus, found, recipe, out / CACHE, say),
        language=recipe.data.target,
    )
    if task.left_out:
        say(
            f"left out {task.left_out:,} of {len(task.store):,} pairs, longer than "
            f"train.max_length = {recipe.train.max_length} tokens"
        )
    if limited(config):  # or the validation data would be encoded for nothing
        encoded = tokenizers(found).source.encode(valid.source)
        longest = max(len(tokens) + 1 for tokens in encoded)  # with the end
        _refuse_longer(config, longest, *(side.max() for side in task.lengths))
    return Prepared(
        task,
        config,
        lambda folder: write_vocabularies(folder, found),
        {"data": _digest(*corpus.hashes, *valid.hashes)},
    )


def _on_disk(
    corpus: Corpus | StreamedCorpus,
    vocabularies: Vocabularies,
    recipe: TranslateRecipe,
    cache: Path,
    say: Callable[[str], None],
) -> TokenStore | None:
    """Encode a large corpus into files, or find them; None for one that fits into memory."""
    if isinstance(corpus, Corpus):
        return None
    say(f"encoding {corpus.origin} into {cache}")

    def pairs() -> Iterator[tuple[str, str]]:
        for number, pair in enumerate(corpus.pairs(), 1):
            yield pair
            if number % 1_000_000 == 0:
                say(f"encoded {number:,} pairs")

    texts = recipe.tokenizer.sampling > 0
    columns = recipe.data.model_dump_json(
        include={"source", "target", "source_column", "target_column"}
    )
    models = [hashlib.sha256(tokenizer.model).hexdigest() for tokenizer in vocabularies.values()]
    key = _digest(*corpus.hashes, *models, columns, f"texts={texts}")
    return encode_on_disk(pairs(), tokenizers(vocabularies), cache, key, texts=texts)


def _prepare_images(recipe: ClassifyRecipe, out: Path, say: Callable[[str], None]) -> Prepared:
    images, valid = _pictures(recipe, out, say)
    missing = set() if images.multi_label else set(range(len(images.classes))) - set(images.labels)
    if missing:
        names = ", ".join(images.classes[number] for number in sorted(missing))
        raise DataError(
            f"There are no training pictures of {names}. Remove the empty class, or add pictures."
        )
    learned = out / "labels.json"
    if learned.exists() and (before := read_json(learned)) != images.classes:
        raise DataError(
            f"The classes of the data are {', '.join(images.classes)}, but the run in {out} began "
            f"with {', '.join(map(str, before))}: give them their names back, or start another run "
            "with --out."
        )
    say(f"{len(images):,} pictures of {len(images.classes)} classes")
    teacher, conditions = _teacher(recipe, images.classes)
    task = ClassifyTask(
        images,
        valid,
        recipe.image,
        recipe.augment,
        recipe.train,
        seed=recipe.seed,
        device=best_device(),
        distil=recipe.distil,
        teacher=teacher,
    )
    config = recipe.config(classes=len(images.classes))

    def write(folder: Path) -> None:
        write_labels(folder, recipe, images.classes)
        write_left_out(folder, _left_out(images, valid))

    return Prepared(
        task,
        config,
        write,
        {"data": _digest(*images.hashes, *valid.hashes)} | conditions,
    )


def _prepare_reconstruction(
    recipe: ReconstructRecipe, out: Path, say: Callable[[str], None]
) -> Prepared:
    images, valid = _pictures(recipe, out, say)
    say(f"{len(images):,} pictures")
    config = recipe.config()
    assert isinstance(config, VitConfig)
    task = ReconstructTask(
        images,
        valid,
        recipe.image,
        recipe.augment,
        recipe.train,
        config.patch,
        seed=recipe.seed,
        device=best_device(),
    )

    def write(folder: Path) -> None:
        write_preprocessing(folder, recipe)
        write_left_out(folder, _left_out(images, valid))

    return Prepared(
        task,
        config,
        write,
        {"data": _digest(*images.hashes, *valid.hashes)},
    )


def _pictures(
    recipe: PictureRecipe, out: Path, say: Callable[[str], None]
) -> tuple[ImageSet, ImageSet]:
    """Read every training and validation picture once; say what was left out, or stop.

    Raises:
        DataError: some cannot be read, and data.bad is "stop".
    """
    train, valid = image_splits(recipe)
    refuse_test_splits(train, valid)
    if recipe.data.bad == "stop":
        threads = torch.get_num_threads()
        lost = _left_out(*(part.readable(recipe.image, threads) for part in (train, valid)))
        if lost:
            raise DataError(
                f"{len(lost):,} of {len(train) + len(valid):,} pictures cannot be read: "
                f"{_first(lost)}. Remove them or save them again; "
                'data.bad = "skip" trains without them.'
            )
    elif lost := _left_out(train, valid):
        say(
            f"left out {len(lost):,} pictures that cannot be read, listed in {out / LEFT_OUT}: "
            f"{_first(lost)}"
        )
    return train, valid


def _left_out(*parts: ImageSet) -> list[str]:
    return list(dict.fromkeys(each for part in parts for each in part.left_out))


def _first(names: list[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def _teacher(recipe: ClassifyRecipe, classes: list[str]) -> tuple[Teacher | None, dict[str, str]]:
    """Load the classifier that a recipe learns from, and say which it is."""
    if recipe.distil is None:
        return None, {}
    folder = ModelFolder(find_model(recipe.distil.teacher))
    if not isinstance(folder.recipe, ClassifyRecipe):
        raise RecipeError(
            f"distil.teacher: the task of {folder.path} is {folder.recipe.task!r}; a teacher is a "
            "classifier."
        )
    teacher = Teacher(
        folder.model(), folder.preprocessing(), recipe.image, folder.labels(), classes
    )
    return teacher, {"teacher": _digest(*folder.manifest["sha256"].values())}


def _prepare_language(
    recipe: GenerateRecipe | FillRecipe, out: Path, say: Callable[[str], None]
) -> Prepared:
    train, valid = training_sentences(recipe.data)
    stored = out / "tokenizer.model"
    if stored.exists():
        tokenizer = Tokenizer(stored.read_bytes())
    else:
        parts = [sentences(name, recipe.data) for name in recipe.data.vocabulary] or [train]
        for part in parts:
            refuse_test(part.hashes, part.origin)
        say(f"learning a vocabulary from {sum(map(len, parts)):,} lines")
        tokenizer = Tokenizer.train(
            [line for part in parts for line in part.lines], recipe.tokenizer
        )
    examples: Examples
    if isinstance(recipe, GenerateRecipe):
        examples = NextToken(train, tokenizer, recipe.train.max_length)
    else:
        examples = MaskedToken(
            train,
            tokenizer,
            recipe.train.max_length,
            masked=recipe.train.masked,
            seed=recipe.seed,
        )
    _say_left_out(examples, recipe.train.max_length, say)
    measured = language_examples(recipe, valid, tokenizer)
    task = TokenTask(
        examples,
        measured,
        recipe.train,
        measure_tokens,
        seed=recipe.seed,
    )
    config = recipe.config(vocabulary=len(tokenizer))
    _refuse_longer(config, examples.lengths.max(), measured.lengths.max())
    return Prepared(
        task,
        config,
        lambda folder: write_atomically(folder / "tokenizer.model", tokenizer.model),
        {"data": _digest(*train.hashes, *valid.hashes)},
    )


def _prepare_tags(recipe: TagRecipe, out: Path, say: Callable[[str], None]) -> Prepared:
    train, valid = training_sentences(recipe.data)
    stored = out / "characters.json"
    if stored.exists():
        characters = Characters(read_json(stored))
    else:
        characters = Characters.learn(without_spaces(line)[0] for line in train.lines)
    examples = Spacing(train, characters, recipe.train.max_length)
    say(f"{len(train):,} lines, {len(characters):,} characters")
    _say_left_out(examples, recipe.train.max_length, say)
    measured = Spacing(valid, characters)
    task = TokenTask(examples, measured, recipe.train, measure_spacing, seed=recipe.seed)
    config = recipe.config(vocabulary=len(characters))
    _refuse_longer(config, examples.lengths.max(), measured.lengths.max())
    return Prepared(
        task,
        config,
        lambda folder: write_json(folder / "characters.json", characters.alphabet),
        {"data": _digest(*train.hashes, *valid.hashes)},
    )


def language_examples(
    recipe: GenerateRecipe | FillRecipe, lines: Sentences, tokenizer: TextTokenizer
) -> Examples:
    """Make what a language model is measured on: the same hidden tokens at every measurement."""
    if isinstance(recipe, GenerateRecipe):
        return NextToken(lines, tokenizer)
    return MaskedToken(lines, tokenizer, masked=recipe.train.masked)


def _say_left_out(examples: Examples, max_length: int, say: Callable[[str], None]) -> None:
    if examples.left_out:
        say(
            f"left out {examples.left_out:,} of {len(examples.sentences):,} lines, longer than "
            f"train.max_length = {max_length} tokens"
        )


def _refuse_longer(config: Config, *lengths: int) -> None:
    """Refuse texts with more tokens than the model learns positions for."""
    longest, most = max(lengths), reach(config)
    if longest > most:
        raise RecipeError(
            f"A text to learn from or to validate on has {longest:,} tokens, but the model learns "
            f"only model.max_length = {most} positions: raise it, take other positions "
            '(model.positions = "sinusoidal"), or leave out long texts: train.max_length does so '
            "in training, and what is longer in data.valid must be split."
        )


def _digest(*hashes: str) -> str:
    return hashlib.sha256("".join(hashes).encode()).hexdigest()
