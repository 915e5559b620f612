"""The parity gate: an engine is kept if it answers as torch; targets join from outside."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import manyheads
from manyheads.engine_export import export
from manyheads.engines.engine import ENGINES
from manyheads.engines.engine_parity import Parity, ParityError
from manyheads.engines.exporter import EXPORTERS
from manyheads.errors import OutputError, UsageError
from manyheads.extend import (
    EngineModel,
    Exported,
    ExportOptions,
    TorchEngine,
    engine_files,
    register_engine,
    register_exporter,
)
from manyheads.files import UNFINISHED
from manyheads.project.folder import ModelFolder
from manyheads.project.lock import LOCK, locked
from tests.remarks import remarks

TEXTS = ["Friday, 20 November 2026", "1 May 2027", "2026-03-04"]


class Stored:
    """Stores the weights, changed by a share of themselves: a target from outside."""

    name = "stored"
    engine: str | None = "stored"
    quantizations = ("float32", "int8")
    suffix: str | None = ".stored"
    standalone = False
    takes: tuple[str, ...] = ()
    change = 0.0

    def export(self, folder: ModelFolder, out: Path, options: ExportOptions) -> Exported:
        weights = load_file(folder.path / "model.safetensors")
        noise = {name: torch.randn_like(each) * self.change for name, each in weights.items()}
        changed = {name: each * (1 + noise[name]) for name, each in weights.items()}
        save_file(changed, out / "weights.stored")
        return Exported({"stored": "1.2"}, ("a remark",))


class StoredEngine(TorchEngine):
    """Loads them."""

    name = "stored"

    def load(self, folder: ModelFolder, image_size: tuple[int, int] | None) -> nn.Module:
        path = engine_files(folder, self.name)
        model = super().load(folder, image_size)
        model.load_state_dict(load_file(path / "weights.stored"), strict=False)
        return model


@pytest.fixture(autouse=True)
def stored() -> Iterator[Stored]:
    """The target, for one test."""
    exporter = Stored()
    register_exporter(exporter)
    register_engine("stored", StoredEngine)
    torch.manual_seed(1)
    yield exporter
    del EXPORTERS["stored"], ENGINES["stored"]


def test_an_export_lies_in_the_model_folder(own_translator: Path) -> None:
    before = ModelFolder(own_translator).manifest
    made = export(own_translator, to="stored", texts=["nine", "five"])
    assert made.model == own_translator
    assert made.path == own_translator / "engines/stored"
    assert sorted(path.name for path in made.path.iterdir()) == [
        "engine.json",
        "parity.json",
        "weights.stored",
    ]
    record = json.loads((made.path / "engine.json").read_text("utf-8"))
    assert record["weights"] == before["sha256"]["model.safetensors"]
    assert set(record["sha256"]) == {"weights.stored", "parity.json"}
    assert record["versions"].keys() == {"manyheads", "torch", "python", "stored"}
    assert not record["forced"]
    report = json.loads((made.path / "parity.json").read_text("utf-8"))
    assert report == json.loads(json.dumps(made.parity.to_json()))
    assert (report["inputs"], report["difference"], report["changed"]) == (2, 0.0, 0.0)
    assert made.remarks == ("a remark",)
    assert ModelFolder(own_translator).manifest == before
    assert "- stored, float32: on 2 inputs" in (own_translator / "README.md").read_text("utf-8")
    loaded: Any = manyheads.load(own_translator, engine="stored")
    assert loaded("nine") == manyheads.load(own_translator)("nine")


def test_past_the_bar_nothing_is_kept(stored: Stored, own_translator: Path) -> None:
    stored.change = 0.05
    before = sorted(own_translator.rglob("*"))
    with pytest.raises(ParityError, match=r"log-probabilities of tokens differ by up to") as caught:
        export(own_translator, to="stored", texts=["nine", "five"])
    assert "Nothing was kept" in str(caught.value)
    assert caught.value.parity.difference > 1e-4
    assert sorted(own_translator.rglob("*")) == before


def test_an_export_before_is_kept_if_the_new_one_is_not(
    stored: Stored, own_translator: Path
) -> None:
    made = export(own_translator, to="stored", texts=["nine"])
    before = (made.path / "engine.json").read_bytes()
    stored.change = 0.05
    with pytest.raises(ParityError):
        export(own_translator, to="stored", texts=["nine"])
    assert (made.path / "engine.json").read_bytes() == before


@pytest.mark.usefixtures("stored")
def test_an_export_before_is_kept_if_the_new_one_cannot_be_moved(
    own_translator: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had been moved away already."""
    made = export(own_translator, to="stored", texts=["nine"])
    before = {path.name: path.read_bytes() for path in made.path.iterdir()}
    real = Path.rename

    def refused(path: Path, target: Path) -> Path:
        if target == made.path and path.name == "stored":
            raise PermissionError(13, "Permission denied")
        return real(path, target)

    monkeypatch.setattr(Path, "rename", refused)
    with pytest.raises(OutputError, match="What was there before is as it was"):
        export(own_translator, to="stored", texts=["nine"])
    assert {path.name: path.read_bytes() for path in made.path.iterdir()} == before


def test_forced_is_marked(stored: Stored, own_translator: Path) -> None:
    """In engine.json, in the model card, and by a warning whenever it is loaded."""
    stored.change = 0.05
    made = export(own_translator, to="stored", texts=["nine", "five"], force=True)
    assert len(made.failures) == 1
    record = json.loads((made.path / "engine.json").read_text("utf-8"))
    assert record["forced"]
    assert "**Fails the parity check; kept by `force`**" in (
        own_translator / "README.md"
    ).read_text("utf-8")
    with remarks("It was kept by `force`"):
        manyheads.load(own_translator, engine="stored")


def test_without_right_answers_int8_is_not_judged(own_translator: Path) -> None:
    with pytest.raises(ParityError, match=r"int8 is judged by a metric.*give `data`"):
        export(own_translator, to="stored", quantization="int8", texts=["nine"])


def test_int8_is_judged_by_the_metric(stored: Stored, tmp_path: Path) -> None:
    made = export("date-en-ko", to="stored", quantization="int8", limit=30, out=tmp_path / "good")
    assert made.parity.metric == "exact"
    stored.change = 1.0
    with pytest.raises(ParityError, match=r"exact is .*, and .* with torch; at most 0\.5"):
        export("date-en-ko", to="stored", quantization="int8", limit=30, out=tmp_path / "bad")
    assert [path.name for path in tmp_path.iterdir()] == ["good"]


def test_the_bar() -> None:
    def failures(quantization: str, **changes: Any) -> list[str]:
        given: dict[str, Any] = {"data": "d", "inputs": 9, "compared": "logits", "changed": 0.0}
        return list(Parity(**given | {"difference": 0.0} | changes).failures(quantization))

    score = {"metric": "bleu", "before": 30.0, "allowed": 0.3}
    assert failures("float32", difference=1e-4) == []
    assert len(failures("float32", difference=2e-4)) == 1
    assert len(failures("float32", difference=float("nan"))) == 1
    assert failures("int8", difference=0.2, after=29.8, **score) == []
    assert failures("int8", difference=0.2, after=31.0, **score) == []
    assert len(failures("int8", after=29.6, **score)) == 1
    assert len(failures("int8", after=float("nan"), **score)) == 1
    loss = {"metric": "loss", "before": 2.0, "lower_is_better": True}
    assert failures("int8", after=1.0, **loss) == []
    assert len(failures("int8", after=2.6, **loss)) == 1
    assert len(failures("int8")) == 1


def test_a_shipped_model_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written into the package."""
    monkeypatch.chdir(tmp_path)
    made = export("date-en-ko", to="stored", texts=TEXTS)
    assert made.model == Path("runs/date-en-ko")
    assert not ModelFolder(made.model).shipped
    again = export("date-en-ko", to="stored", texts=TEXTS)  # into the same copy
    assert again.path == made.path
    assert list(Path("runs").iterdir()) == [Path("runs/date-en-ko")]
    package = Path(manyheads.__file__).parent / "pretrained"
    assert not list(package.rglob("engines"))


def test_one_file(own_translator: Path, tmp_path: Path) -> None:
    """For anybody's runtime: no model folder, and the report beside it."""
    out = tmp_path / "made" / "reverse.stored"
    made = export(own_translator, to="stored", texts=["nine"], out=out)
    assert (made.path, made.model) == (out, None)
    assert sorted(path.name for path in out.parent.iterdir()) == [
        "reverse.parity.json",
        "reverse.stored",
    ]
    assert not (own_translator / "engines").exists()


def test_one_file_that_is_past_the_bar_says_so(
    stored: Stored, own_translator: Path, tmp_path: Path
) -> None:
    """Its report is all that goes with it."""
    stored.change = 0.05
    out = tmp_path / "reverse.stored"
    made = export(own_translator, to="stored", texts=["nine"], out=out, force=True)
    report = json.loads((tmp_path / "reverse.parity.json").read_text("utf-8"))
    assert report["forced"]
    assert report["failures"] == made.failures


def test_one_file_replaces_only_an_export(own_translator: Path, tmp_path: Path) -> None:
    """And its report only a report."""
    out, report = tmp_path / "a.stored", tmp_path / "a.parity.json"
    given: dict[str, Any] = {"to": "stored", "texts": ["nine"], "out": out}
    for path in (out, report):
        path.write_text("mine")
        with pytest.raises(UsageError, match="was not written by an export"):
            export(own_translator, **given)
        assert path.read_text() == "mine"
        path.unlink()
    for _ in range(2):
        export(own_translator, **given)
    for inside in (own_translator / "new", own_translator / "engines" / "x" / "new.stored"):
        with pytest.raises(UsageError, match="in the model folder"):
            export(own_translator, **given | {"out": inside})


def test_what_a_killed_export_left_goes(own_translator: Path) -> None:
    """But not what one that is still at work has."""
    stages = [own_translator / "engines" / UNFINISHED.format(name) for name in ("dead", "alive")]
    for stage in stages:
        stage.mkdir(parents=True)
        (stage / "content").write_text("half")
        (stage / LOCK).write_text("process 1")
    with locked(stages[1], "exports"):
        export(own_translator, to="stored", texts=["nine"])
        assert [stage.exists() for stage in stages] == [False, True]


def test_what_a_target_has_no_use_for_is_refused(own_translator: Path, tmp_path: Path) -> None:
    """By name, before anything is done."""
    for name in ("calibrate", "runtime"):
        with pytest.raises(UsageError, match=f"has no use for `{name}`"):
            export(own_translator, to="stored", texts=["nine"], **{name: tmp_path})


def test_where_it_may_be_written(own_translator: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not empty, and no copy of own-translator"):
        export(own_translator, to="stored", texts=["nine"], out=tmp_path / "full")
    other = export("date-en-ko", to="stored", texts=TEXTS, out=tmp_path / "dates")
    with pytest.raises(UsageError, match="holds another model than"):
        export(own_translator, to="stored", texts=["nine"], out=other.model)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match=r"`out` is .*a file: give a folder"):
        export(own_translator, to="stored", texts=["nine"], out=tmp_path / "file")
    weights = own_translator / "link.stored"
    weights.hardlink_to(own_translator / "model.safetensors")
    with pytest.raises(UsageError, match="would be written over"):
        export(own_translator, to="stored", texts=["nine"], out=weights)


def test_a_folder_of_its_own(own_translator: Path, tmp_path: Path) -> None:
    """A target that is no engine compares by itself, and writes no model folder."""

    class Page(Stored):
        name = "page"
        engine = None
        standalone = True
        suffix = None

        def export(self, folder: ModelFolder, out: Path, options: ExportOptions) -> Exported:
            (out / "index.html").write_text("<p>")
            given: dict[str, Any] = {"data": "d", "inputs": 1, "compared": "logits"}
            return Exported({}, parity=Parity(**given, difference=self.change, changed=0.0))

    page = Page()
    register_exporter(page)
    try:
        made = export(own_translator, to="page", out=tmp_path / "web")
        assert (made.path, made.model) == (tmp_path / "web", None)
        names = sorted(path.name for path in (tmp_path / "web").iterdir())
        assert names == ["index.html", "parity.json"]
        page.change = 1.0
        with pytest.raises(ParityError):
            export(own_translator, to="page", out=tmp_path / "other")
        assert not (tmp_path / "other").exists()
        with pytest.raises(UsageError, match="is there already"):
            export(own_translator, to="page", out=tmp_path / "web")
    finally:
        del EXPORTERS["page"]


def test_names(own_translator: Path) -> None:
    with pytest.raises(UsageError, match=r"by the name 'stord': did you mean 'stored'\? Targets:"):
        export(own_translator, to="stord")
    with pytest.raises(UsageError, match="`quantization` is 'int4'; stored has float32, int8"):
        export(own_translator, to="stored", quantization="int4")
    with pytest.raises(UsageError, match="There is an exporter 'stored' already"):
        register_exporter(Stored())
    with pytest.raises(UsageError, match="it lacks being an instance"):
        register_exporter(Stored)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="it lacks name, engine, quantizations"):
        register_exporter(object())  # type: ignore[arg-type]


def test_an_engine_that_only_answers() -> None:
    """Whoever calls it as the torch module is told what to do."""
    with pytest.raises(UsageError, match="`engine='torch'`"):
        EngineModel(None)(torch.zeros(1))
