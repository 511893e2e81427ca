"""One run: a victim, examples and a recipe in; results out, on disk as they come."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ..attacks.engine import Engine
from ..attacks.goals import Misclassify, Target
from ..attacks.recipes import RECIPES, Recipe, recipe_named
from ..attacks.record import Record
from ..attacks.replies import ReplyStore
from ..attacks.types import Encoder, Example, Goal, Space, Victim
from ..ranking.attention import Attended, Attention, choose_attention
from ..ranking.learning import Learning
from ..ranking.prior import Guided, Prior, Surrogate, choose_prior, fitting
from ..spaces import space_named
from ..spaces.encoders import ENCODERS
from ..victims import VICTIMS, load_victim
from ..victims.wrap import labels_only as only_labels
from ..victims.wrap import wrap
from .data import from_rows, read_examples
from .memory import peak_mb
from .records import Journal
from .results import Cost, Results
from .spec import Spec

Report = Callable[[Record], None]


def as_victim(victim: Any, labels_only: bool = False) -> Victim:
    """A victim from a name, from any callable `list[str] -> scores`, or as it is."""
    if isinstance(victim, str):
        found = load_victim(victim)
    elif hasattr(victim, "gives") and hasattr(victim, "name") and callable(victim):
        found = victim
    elif callable(victim):
        found = wrap(victim, name=getattr(victim, "__name__", type(victim).__name__))
    else:
        raise TypeError(f"{type(victim).__name__} is not a victim; give a name, a function list[str] -> scores, or a Victim")
    return only_labels(found) if labels_only and found.gives != "label" else found


def as_examples(examples: Any, victim: Victim) -> list[Example]:
    """Examples from a file, a DataFrame, a Hugging Face data set, (text, label) pairs, or as they are."""
    if isinstance(examples, str | Path):
        return read_examples(examples, labels=victim.labels)
    if hasattr(examples, "to_dict") and hasattr(examples, "columns"):  # pandas
        return from_rows(examples.to_dict("records"), labels=victim.labels)
    return from_rows(examples, labels=victim.labels)


def default_recipe(victim: Victim) -> str:
    return "scrimp-labels" if victim.gives == "label" else "scrimp"


def _encoder(name: str | Encoder | None) -> Encoder | None:
    if name is None or not isinstance(name, str):
        return name
    if name not in ENCODERS:
        raise ValueError(f"no encoder {name!r}; there are {', '.join(ENCODERS)}")
    return ENCODERS[name]()


def as_prior(prior: Any, victim: Victim) -> Prior | None:
    """A prior from a name or a file, or from a model that is asked in the victim's place."""
    model = isinstance(prior, str) and (prior in VICTIMS or Path(prior).is_dir() or (":" in prior and prior[-4:] != ".npz"))
    if model:
        return fitting(Surrogate(load_victim(prior)), victim)
    if callable(prior) and hasattr(prior, "gives"):
        return fitting(Surrogate(prior), victim)
    return choose_prior(prior, victim)


def _warn_if_shared(model: Prior | Attention, victim: Victim) -> None:
    shared = sorted(set(model.data) & set(getattr(victim, "trained_on", ())))
    if shared:
        kind = "prior" if hasattr(model, "seen") else "attention model"
        warnings.warn(f"{kind} {model.name} and victim {victim.name} were both trained on {', '.join(shared)}", stacklevel=4)


def _warn_if_seen(prior: Prior, victim: Victim, examples: list[Example]) -> None:
    _warn_if_shared(prior, victim)
    seen = prior.seen([example.text for example in examples])
    if seen:
        warnings.warn(
            f"prior {prior.name} was trained on {seen} of these {len(examples)} texts, or near copies", stacklevel=3
        )


def _check_needs(recipe: Recipe, victim: Victim) -> None:
    if recipe.search.needs == "scores" and victim.gives == "label":
        able = [name for name, other in RECIPES.items() if other.search.needs == "label"]
        raise ValueError(
            f"{recipe.name} needs scores but {victim.name} gives labels only; recipes for labels: {', '.join(able)}"
        )


def attack(
    victim: Victim | Callable[..., Any] | str,
    examples: Iterable[Any] | str | Path,
    recipe: Recipe | str | None = None,
    *,
    budget: int = 1000,
    seed: int = 0,
    goal: Goal | None = None,
    space: Space | str | None = None,
    floor: float | None = None,
    window: int | None = None,
    guide: Encoder | str | None = "use",
    judge: Encoder | str | None = "minilm",
    prior: Prior | str | None = None,
    attention: Attention | str | None = None,
    learn: int = 0,
    labels_only: bool = False,
    width: int = 64,
    batch: int = 256,
    stride: int = 1,
    out: str | Path | None = None,
    resume: bool = False,
    cache: str | Path | None = None,
    trace: bool = False,
    report: Report | None = None,
) -> Results:
    """Attack `victim` on `examples` with a recipe (the recommended one), each example under a strict query budget.

    With `out`, every finished example is a line of out/records.jsonl and every reply is kept in out/replies.sqlite
    (or `cache`), so that a killed run goes on with `resume=True` and sends nothing twice. `guide` measures similarity and
    holds the floor, `judge` measures the final texts; None leaves them out. `prior` is a name, a file, a model that you own,
    or "none"; without it the recipe's. `attention` is a name, a file, a model, or "none"; without it the recipe's. `learn`
    lets the prior learn from finished examples in generations of so many, in the order given (0: not at all). `report` is
    called with each new record.
    """
    started, cpu = time.perf_counter(), time.process_time()
    target = as_victim(victim, labels_only)
    chosen = recipe if isinstance(recipe, Recipe) else recipe_named(recipe or default_recipe(target))
    if space is not None:
        chosen = replace(chosen, space=space_named(space) if isinstance(space, str) else space)
    if floor is not None or window is not None:
        chosen = replace(
            chosen, floor=chosen.floor if floor is None else floor, window=chosen.window if window is None else window
        )
    _check_needs(chosen, target)
    todo = as_examples(examples, target)
    guiding, judging = _encoder(guide), _encoder(judge)
    goal = goal or Misclassify()
    expecting = as_prior(chosen.prior if prior is None else prior, target)
    if learn:
        expecting = Learning(expecting, learn)
    if expecting is not None:
        _warn_if_seen(expecting, target, todo)
        wanted = goal.label if isinstance(goal, Target) else None
        chosen = replace(chosen, space=Guided(chosen.space, expecting, wanted))
    looking = choose_attention(chosen.attention if attention is None else attention, target)
    if looking is not None:
        _warn_if_shared(looking, target)
        chosen = replace(chosen, space=Attended(chosen.space, looking))
    known = ", ".join(part.name for part in (expecting, looking) if part is not None)
    spec = Spec(
        victim=target.name,
        gives=target.gives,
        goal=goal.name,
        recipe=chosen.name,
        space=chosen.space.name,
        search=chosen.search.name,
        budget=budget,
        seed=seed,
        stride=stride,
        floor=chosen.floor,
        window=chosen.window,
        guide=guiding.name if guiding else None,
        judge=judging.name if judging else None,
        prior=known or None,
    )
    engine = Engine(
        victim=target,
        goal=goal,
        space=chosen.space,
        search=chosen.search,
        budget=budget,
        seed=seed,
        width=width,
        batch=batch,
        stride=stride,
        floor=chosen.floor,
        window=chosen.window,
        guide=guiding,
        judge=judging,
        trace=trace,
        spec=spec.key,
        prior=known,
    )
    journal = Journal(out, spec.key, resume) if out is not None else None
    kept = cache if cache is not None else (Path(out) / "replies.sqlite" if out is not None else None)
    records: dict[str, Record] = {}
    try:
        if kept is not None:
            engine.cashier.store = ReplyStore(kept)
        if journal:
            journal.describe(asdict(spec) | {"key": spec.key})
            records = _finished(journal, todo)
        for at in range(0, len(todo), learn or max(1, len(todo))):
            part = todo[at : at + (learn or len(todo))]
            for record in engine.run([example for example in part if example.id not in records]):
                if journal:
                    journal.append(record)
                records[record.id] = record
                if report:
                    report(record)
            if isinstance(expecting, Learning):
                expecting.take_in([records[example.id] for example in part])
    finally:
        if journal:
            journal.close()
        if engine.cashier.store:
            engine.cashier.store.close()
    spent = engine.cashier.spent
    cost = Cost(
        wall_s=time.perf_counter() - started,
        victim_s=spent.seconds,
        victim_calls=spent.calls,
        sent=spent.sent,
        peak_rss_mb=peak_mb(),
        cpu_s=time.process_time() - cpu,
        victim_cpu_s=spent.cpu,
        encoder_cpu_s=engine.encoder_cpu,
    )
    return Results(tuple(records[example.id] for example in todo), cost)


def _finished(journal: Journal, todo: list[Example]) -> dict[str, Record]:
    texts = {example.id: example.text for example in todo}
    for record in journal.done:
        if record.id in texts and texts[record.id] != record.text:
            raise ValueError(
                f"{journal.path}: example {record.id!r} had another text; resume with the same data, or another --out"
            )
    return {record.id: record for record in journal.done if record.id in texts and record.status != "error"}
