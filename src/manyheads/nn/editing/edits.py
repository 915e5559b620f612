"""Change one thing inside a model while it runs: `with edit() as changes: ...`.

Stacks and kinds are those of legends; layers and heads count from 1, tokens and rows from 0.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.nn.editing.seam import (
    HEAD,
    PARTS,
    PATTERN,
    STATE,
    ActivationRecord,
    Seat,
    added_by,
    opened,
    site_name,
)
from manyheads.nn.recording.attention_record import AttentionRecord
from manyheads.nn.recording.trace import LayerId, Trace

Part = Float[Tensor, "row *head token size"]
Function = Callable[[Tensor], Tensor]
Number = int | None  # None: all heads, or all rows
Indices = int | Sequence[int] | None  # one, or several; None: all
LONGEST = 200  # characters of a site's name


@dataclass(frozen=True, slots=True)
class Selected:
    """Rows and tokens of a tensor that an edit changes: their numbers in batch and sequence."""

    rows: list[int]
    tokens: list[int | None]  # None: not known
    whole: bool  # these are all tokens of the sequence


Change = Callable[[Part, Selected], Tensor]


@dataclass(eq=False)
class Site:
    """One site of a model, and what to do there: a call of a method below is one edit.

    `tokens` and `row` limit it to some tokens, and to one row of the batch that the model runs.
    """

    site: LayerId
    edits: "Edit"
    head_number: Number = None
    tokens: tuple[int, ...] | None = None
    row: Number = None
    change: Change | None = None
    fired: bool = False
    seen: set[int] = field(default_factory=set)  # tokens that were changed
    known: int = 0  # tokens that passed here

    @property
    def name(self) -> str:
        """Such as "decoder layer 2 cross head 2"."""
        return site_name(self.site, self.head_number)

    def zero(self) -> None:
        """Replace it by zeros."""
        self._set(lambda x, _: torch.zeros_like(x))

    def mean(self, source: Trace | Sequence[Trace]) -> None:
        """Replace it by its mean over rows and tokens of one trace or several, padding included."""
        traces = [source] if isinstance(source, Trace) else list(source)
        if not traces:
            raise UsageError(f"{self.name}: give a trace of record(states=True), or several.")
        vectors = [self._recorded(each).movedim(-2, 1).flatten(0, 1) for each in traces]
        mean = torch.cat(vectors).mean(dim=0)
        self.replace(mean if mean.ndim == 1 else mean[None, :, None])  # of each head its own

    def take(self, source: Trace, row: int = 0, tokens: Indices = None) -> None:
        """Replace it by that of a row of a trace, token by token: see `replace`."""
        self.replace(source, row, tokens)

    def replace(self, source: Trace | Tensor, row: Number = None, tokens: Indices = None) -> None:
        """Replace it.

        Args:
            source: what was recorded of another input by `record(states=True)`; or a tensor: one
                vector, (token, size) or (row, token, size).
            row: of the source; None: its only row, or row by row.
            tokens: of the source, in the order of this edit's tokens; None: the same.
        """
        self._set(_replacement(self, self._recorded(source), row, tokens))

    def add(self, source: Trace | Tensor) -> None:
        """Add a vector, or a tensor or trace as for `replace`."""
        given = _replacement(self, self._recorded(source), None, None)
        self._set(lambda x, at: x + given(x, at))

    def apply(self, function: Function) -> None:
        """Replace it by a function of it; it gets and returns (row, token, size)."""
        self._set(lambda x, _: function(x))

    def _recorded(self, source: Trace | Tensor) -> Tensor:
        if isinstance(source, Trace):
            return recorded(source, self.site, self.head_number)
        if not isinstance(source, Tensor):
            raise UsageError(
                f"{self.name}: a value is a trace of record(states=True) or a tensor, and this is "
                f"{type(source).__name__}."
            )
        return source

    def _set(self, change: Change) -> None:
        self.change = change
        self.edits.idle.discard(self)
        self.edits.sites.append(self)

    def run(self, x: Tensor, seat: Seat) -> Tensor:
        """Change a tensor that passes this site."""
        heads = x.shape[1] if x.ndim == 4 else 0
        if self.head_number is not None and self.head_number > heads:
            there = f"s are 1 to {heads}" if heads else " has no heads"
            raise UsageError(f"There is no {self.name!r}: {site_name(self.site)}{there}.")
        view = x if self.head_number is None else x[:, self.head_number - 1]
        if seat.partitioned and (self.tokens is not None or self.row is not None):
            raise UsageError(
                f"{self.name}: tokens are divided among windows there, so an edit changes all "
                "tokens and rows: leave tokens and row out."
            )
        # A sentence's beams have the number of the sentence.
        rows = list(range(len(view)))
        if seat.rows is not None and len(seat.rows) and not len(view) % len(seat.rows):
            rows = [int(row) for row in seat.rows for _ in range(len(view) // len(seat.rows))]
        count = view.shape[-2]
        positions: list[int | None] = [seat.first] * count
        if seat.first is not None and not seat.stepping:
            positions = list(range(seat.first, seat.first + count))
        if self.tokens is not None and None in positions:
            raise UsageError(
                f"{self.name}: the index of the token is not known here, because the model is not "
                "run by a search: leave tokens out."
            )
        self.known = max([self.known, *(1 + each for each in positions if each is not None)])
        places = [i for i, at in enumerate(positions) if self.tokens is None or at in self.tokens]
        chosen = [i for i, number in enumerate(rows) if self.row is None or number == self.row]
        if not places or not chosen:
            return x
        self.fired = True
        self.seen.update(at for i in places if (at := positions[i]) is not None)
        whole = self.tokens is None and seat.first == 0 and not seat.stepping
        selected = Selected([rows[i] for i in chosen], [positions[i] for i in places], whole)
        assert self.change is not None
        place, own = (torch.tensor(each, device=x.device) for each in (places, chosen))
        part = view[own].index_select(-2, place)
        new = self.change(part, selected)
        if not isinstance(new, Tensor) or not _fits(new, part):
            shape = tuple(new.shape) if isinstance(new, Tensor) else type(new).__name__
            raise UsageError(
                f"{self.name}: the new value has the shape {shape}, and what it replaces has "
                f"{tuple(part.shape)} (row, {'head, ' if part.ndim == 4 else ''}token, size)."
            )
        new = new.to(part).expand_as(part)
        part = view[own].index_copy(-2, place, new)
        view = view.index_copy(0, own, part)
        if self.head_number is None:
            return view
        head = torch.tensor([self.head_number - 1], device=x.device)
        return x.index_copy(1, head, view[:, None])


@dataclass(eq=False)
class AttentionSite:
    """One attention: its map, and its queries, keys and values, of all heads or of one."""

    whole: Site  # of its kind, with the chosen head, tokens and row

    def pattern(self, value: Function | Trace | Tensor) -> None:
        """Replace the map: a function gets (row, head, query, key), or without the head axis.

        `tokens` are queries. Hidden keys have the weight 0, and the output is the product of the
        new map and the values.
        """
        self._set(PATTERN, value)

    def q(self, value: Function | Trace | Tensor) -> None:
        """Replace the queries."""
        self._set("q", value)

    def k(self, value: Function | Trace | Tensor) -> None:
        """Replace the keys, those in a cache included."""
        self._set("k", value)

    def v(self, value: Function | Trace | Tensor) -> None:
        """Replace the values, those in a cache included."""
        self._set("v", value)

    def _set(self, part: str, value: Function | Trace | Tensor) -> None:
        self.whole.edits.idle.discard(self.whole)
        site = replace(self.whole.site, kind=f"{self.whole.site.kind} {part}")
        one = replace(self.whole, site=site, seen=set())
        if isinstance(value, Trace | Tensor) or not callable(value):
            one.replace(value)
        else:
            one.apply(value)


@dataclass(eq=False)
class Edit:
    """The edits of one `with edit()`; several at one site happen in the order they were made."""

    sites: list[Site] = field(default_factory=list)
    idle: set[Site] = field(default_factory=set)  # chosen, but nothing is done there
    starts: dict[str, tuple[int, Tensor]] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)
    passed: dict[LayerId, int] = field(default_factory=dict)  # with the number of heads, or 0

    def head(
        self,
        stack: str,
        layer: int,
        kind: str,
        head: Number,
        *,
        tokens: Indices = None,
        row: Number = None,
    ) -> Site:
        """Choose a head's output, before the output projection; None: of all, in one tensor."""
        return self._site(stack, layer, f"{kind} {HEAD}", head, tokens, row)

    def state(self, stack: str, layer: int, *, tokens: Indices = None, row: Number = None) -> Site:
        """Choose the residual stream after a layer; layer 0 is what enters the first."""
        return self._site(stack, layer, STATE, None, tokens, row, first=0)

    def added(
        self, stack: str, layer: int, part: str, *, tokens: Indices = None, row: Number = None
    ) -> Site:
        """Choose what "attention", "cross" or "feedforward" adds to the residual stream."""
        if part not in PARTS:
            raise UsageError(f"{part!r} adds nothing: choose one of {', '.join(PARTS)}.")
        return self._site(stack, layer, f"added {part}", None, tokens, row)

    def attention(
        self,
        stack: str,
        layer: int,
        kind: str,
        head: Number = None,
        *,
        tokens: Indices = None,
        row: Number = None,
    ) -> AttentionSite:
        """Choose an attention, or one head of it."""
        return AttentionSite(self._site(stack, layer, kind, head, tokens, row))

    def resume(self, stack: str, layer: int, state: Tensor) -> None:
        """Let an encoder go on behind a layer, from 1, with its state (1 or row, token, dim).

        So the layers before an edit are computed once for many passes.
        """
        self.starts[stack] = layer, state

    def resumed(self, stack: str) -> tuple[int, Tensor] | None:
        """Return the layer behind which a stack goes on, and its state there."""
        self.started.add(stack)
        return self.starts.get(stack)

    def at(self, site: LayerId) -> Site:
        """Choose the site of a record, with all of its heads."""
        return Site(site, self)

    def site(self, name: str, *, tokens: Indices = None, row: Number = None) -> Site:
        """Choose a site by its name, such as "decoder layer 2 cross head 2".

        Raises:
            UsageError: this is no name of a site.
        """
        stack, _, rest = name.rpartition(" layer ")
        layer, _, kind = rest.partition(" ")
        before, _, number = kind.rpartition(" ")
        head = int(number) if number.isdecimal() else None
        kind = kind if head is None else before
        known = kind and (head is not None or not kind.endswith(HEAD))
        if not (stack and layer.isdecimal() and known and len(name) < LONGEST):
            raise UsageError(
                f"{name[:80]!r} is no name of a site. Names are like 'encoder layer 1 state', "
                "'decoder layer 2 cross head 2', 'decoder layer 2 added feedforward' or "
                "'decoder layer 2 cross q'."
            )
        return self._site(stack, int(layer), kind, head, tokens, row, first=int(kind != STATE))

    def _site(
        self,
        stack: str,
        layer: int,
        kind: str,
        head: Number,
        tokens: Indices,
        row: Number,
        first: int = 1,
    ) -> Site:
        for name, number, least in (("layer", layer, first), ("head", head, 1), ("row", row, 0)):
            if number is not None and (not isinstance(number, int) or number < least):
                raise UsageError(f"The {name} is {number!r}: it counts from {least}.")
        site = Site(LayerId(stack, layer - 1, kind), self, head, _indices(tokens), row)
        self.idle.add(site)
        return site

    def has(self, site: LayerId) -> bool:
        """Whether an edit names this site; what passes is remembered."""
        self.passed.setdefault(site, 0)
        return any(each.site == site for each in self.sites)

    def change(self, site: LayerId, x: Tensor, seat: Seat) -> Tensor:
        """Apply the edits of a site."""
        self.passed[site] = x.shape[1] if x.ndim == 4 else 0
        for each in self.sites:
            if each.site == site:
                x = each.run(x, seat)
        return x

    def check(self) -> None:
        """Refuse an edit that changed nothing.

        Raises:
            UsageError: with the nearest name of a site that the model passed.
        """
        if self.idle:
            name = min(each.name for each in self.idle)
            raise UsageError(
                f"{name} was chosen, and nothing is done there: call a method, such as zero()."
            )
        unused = self.starts.keys() - self.started
        if unused:
            raise UsageError(f"No encoder of blocks named {min(unused)!r} ran, so none resumed.")
        for each in self.sites:
            if each.site not in self.passed:
                raise UsageError(f"No model has the site {each.name!r}{self._nearest(each)}")
            if each.row is not None and not each.fired:
                raise UsageError(
                    f"{each.name}: there was no row {each.row}"
                    + (f" with the tokens {list(each.tokens)}" if each.tokens else "")
                    + " in the batch; rows count from 0."
                )
            if missed := set(each.tokens or ()) - each.seen:
                raise UsageError(
                    f"{each.name}: there is no token {min(missed)}; tokens 0 to {each.known - 1} "
                    "passed there."
                )

    def _nearest(self, missing: Site) -> str:
        """Suggest a site that ran, and list those of its stack."""
        if not self.passed:
            return ": no model ran while the edit was open."
        names = {site_name(site): site for site in self.passed}
        near = names[get_close_matches(site_name(missing.site), list(names), n=1, cutoff=0)[0]]
        kind = missing.site.kind  # an attention's own: what is meant is all that it adds
        both = (added_by(kind), f"{kind} {HEAD}")
        whole, heads_of = (replace(missing.site, kind=each) for each in both)
        if {whole, heads_of} <= self.passed.keys():
            near = whole
        own = [site for site in self.passed if site.stack == near.stack]
        kinds = ", ".join(dict.fromkeys(site.kind for site in own))
        first, last = min(site.layer for site in own) + 1, max(site.layer for site in own) + 1
        heads = self.passed[near]
        number = min(missing.head_number, heads) if missing.head_number and heads else None
        return (
            f": did you mean {site_name(near, number)!r}? The stack {near.stack!r} has layers "
            f"{first} to {last}, with {kinds}."
        )


@contextmanager
def edit() -> Iterator[Edit]:
    """Change the enclosed forward passes of this thread.

    For example `with edit() as changes: changes.head("decoder", 3, "cross", 2).zero(); model(x)`.
    Edits of an outer `with edit()` come first.

    Raises:
        UsageError: at the end, if an edit changed nothing; during a pass, if its shape is wrong.
    """
    changes = Edit()
    with opened(changes):
        yield changes
    changes.check()


@contextmanager
def zeroed(names: Sequence[str], maps: Mapping[str, Function] | None = None) -> Iterator[None]:
    """Set sites to zero, by names such as "decoder layer 2 cross head 2"; none: change nothing.

    A name may end in tokens: "encoder layer 1 state tokens 4, 5". `maps` are functions of the maps
    of attentions, by names such as "decoder layer 3 cross".

    Raises:
        UsageError: as `edit` does.
    """
    if not names and not maps:
        yield
        return
    with edit() as changes:
        for each in names:
            name, given, listed = each[:LONGEST].partition(" token")
            tokens = listed.removeprefix("s").replace(",", " ").split()
            if given and not (tokens and all(map(str.isdecimal, tokens))):
                raise UsageError(
                    f"{each[:80]!r}: tokens are numbers from 0, such as in 'encoder layer 1 state "
                    "tokens 4, 5'."
                )
            changes.site(name, tokens=[int(number) for number in tokens] or None).zero()
        for name, function in (maps or {}).items():
            changes.site(f"{name[:LONGEST]} {PATTERN}").apply(function)
        yield


def recorded(trace: Trace, site: LayerId, head: Number = None) -> Tensor:
    """Return the tensor that a recorder of states kept at a site, (row, token, size).

    Steps of one row are joined; with `head` its own, else (row, head, token, size) where there are
    heads. Of a map, (row, head, query, key).

    Raises:
        UsageError: nothing was recorded there, or several batches.
    """
    name = site_name(site, head)
    if site.kind.endswith(f" {PATTERN}"):
        own = LayerId(site.stack, site.layer, site.kind.removesuffix(f" {PATTERN}"))
        maps = [r for r in trace if isinstance(r, AttentionRecord) and r.layer_id == own]
        found = [each.weights() for each in maps]
    else:
        kept = [r for r in trace if isinstance(r, ActivationRecord) and r.layer_id == site]
        if len(kept) > 1 and all(len(r.x) == 1 and r.decode_step is not None for r in kept):
            kept = [kept[0].join(kept[1:])]
        found = [each.x for each in kept]
    if len(found) != 1:
        known = {site_name(r.layer_id) for r in trace if isinstance(r, ActivationRecord)}
        near = get_close_matches(site_name(site), list(known), n=1, cutoff=0)
        hint = f": did you mean {near[0]!r}?" if near else ". Record with record(states=True)."
        raise UsageError(
            f"The trace has nothing at {name!r}{hint}"
            if not found
            else f"The trace has {len(found)} records at {name!r}: record one pass, or take one "
            "output of a search with lens.trace.decoding_trace.decoded()."
        )
    x = found[0]
    if head is not None and (x.ndim != 4 or head > x.shape[1]):
        raise UsageError(f"The trace has nothing at {name!r}: its shape there is {tuple(x.shape)}.")
    return x if head is None else x[:, head - 1]


def _indices(tokens: Indices) -> tuple[int, ...] | None:
    if tokens is None:
        return None
    found = (tokens,) if isinstance(tokens, int) else tuple(tokens)
    if not found or not all(isinstance(each, int) and each >= 0 for each in found):
        raise UsageError(f"The tokens are {list(found)}: they are indices from 0, at least one.")
    return found


def _replacement(site: Site, value: Tensor, row: Number, tokens: Indices) -> Change:
    """Look up the new value of selected rows and tokens."""
    if value.is_inference() and not torch.is_inference_mode_enabled():
        value = value.clone()  # so that gradients can be computed behind it
    tokens = _indices(tokens)
    if tokens is not None and (site.tokens is None or len(tokens) != len(site.tokens)):
        raise UsageError(
            f"{site.name}: {len(tokens)} tokens of the source are given for "
            f"{'all' if site.tokens is None else len(site.tokens)} of the edit: give as many."
        )
    if row is not None and not (value.ndim > 2 and 0 <= row < len(value)):
        raise UsageError(f"{site.name}: the source has no row {row}.")

    def replacement(x: Part, at: Selected) -> Tensor:
        if value.ndim < 2 or value.ndim == 3 < x.ndim:
            return value
        found = value if value.ndim == x.ndim else value[(None,) * (x.ndim - value.ndim)]
        if row is not None:
            found = found[row : row + 1]
        elif len(found) > 1:
            if max(at.rows) >= len(found):
                raise UsageError(
                    f"{site.name}: the source has {len(found)} rows, and the batch has row "
                    f"{max(at.rows)}: say which row to take."
                )
            found = found[at.rows]
        wanted = at.tokens
        if tokens is not None:
            assert site.tokens is not None
            other = dict(zip(site.tokens, tokens, strict=True))
            wanted = [None if each is None else other[each] for each in wanted]
        length = found.shape[-2]
        if length == 1 and tokens is None:
            return found
        last = max(each or 0 for each in wanted)
        if None in wanted or last >= length or (at.whole and len(wanted) != length):
            raise UsageError(
                f"{site.name}: the source has tokens 0 to {length - 1}, and those up to {last} are "
                "to be replaced: name tokens that both have, with tokens=."
            )
        return found.index_select(-2, torch.tensor(wanted, device=found.device))

    return replacement


def _fits(new: Tensor, part: Tensor) -> bool:
    """Whether a value is a vector or a table, or has these axes up to a row or token for all."""
    if new.ndim not in (1, 2, part.ndim) or new.shape[-1] != part.shape[-1]:
        return False
    return all(a in (1, b) for a, b in zip(new.shape[::-1], part.shape[::-1], strict=False))
