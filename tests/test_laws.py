"""The laws, over random worlds and every registered search. Each law is also broken on purpose, to see that it notices."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scrimp import RECIPES, SEARCHES, SPACES, Ask, Example, Search, attack, load_victim
from scrimp.attacks.account import Account, Cashier
from scrimp.attacks.engine import Engine
from scrimp.attacks.goals import Misclassify
from scrimp.attacks.record import Record
from scrimp.attacks.replies import ReplyStore
from scrimp.attacks.types import Asking, Grid
from scrimp.spaces.grid import WordGrid
from scrimp.victims import HELD_OUT, wrap

from .toys import ToyVictim, World, scatter

Law = Callable[[Search, World], None]
worlds = st.builds(
    World,
    seed=st.integers(0, 10_000),
    n=st.integers(1, 8),
    length=st.integers(1, 9),
    budget=st.integers(1, 60),
    share=st.sampled_from([0.2, 0.5, 1.0]),
    floor=st.sampled_from([None, None, 0.7, 0.95]),
)
quick = settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
ALL = SEARCHES | {search.name: search for search in (scatter("scores"), scatter("label"))}
every_search = pytest.mark.parametrize("search", ALL.values(), ids=ALL)


# 1
def never_over_budget(search: Search, world: World) -> None:
    for example in world.examples:
        victim = world.victim(search)
        world.run(search, victim, [example])
        assert len(victim.sent) <= world.budget
    victim = world.victim(search)
    records = world.run(search, victim)
    assert all(record.charged <= world.budget for record in records.values())
    assert len(victim.sent) == sum(record.charged - record.cached for record in records.values())


# 2
def charged_is_what_the_victim_answered(search: Search, world: World) -> None:
    first = world.run(search)
    for example in world.examples:
        victim = world.victim(search)
        (record,) = world.run(search, victim, [example]).values()
        assert record.charged == len(set(victim.sent)) == len(victim.sent) == len(record.trace)
        assert record.asked >= record.charged + record.spared
        assert record.cached == 0
        # answers from the cache save the victim, and change no figure
        assert record.outcome() == first[example.id].outcome()
    store = ReplyStore(":memory:")
    again = world.victim(search)
    for _ in range(2):
        kept = world.run(search, again, store=store)
        assert {i: r.outcome() for i, r in kept.items()} == {i: r.outcome() for i, r in first.items()}
    assert all(record.cached == record.charged for record in kept.values())
    assert len(again.sent) == len(set(again.sent))


# 3
def width_batch_and_order_do_not_matter(search: Search, world: World) -> None:
    first = {i: r.outcome() for i, r in world.run(search, width=64, batch=256).items()}
    for width, batch, turn in ((1, 1, 1), (3, 2, -1), (64, 5, -1)):
        other = world.run(search, examples=world.examples[::turn], width=width, batch=batch)
        assert {i: r.outcome() for i, r in other.items()} == first


# 4
def a_small_budget_is_a_prefix(search: Search, world: World) -> None:
    for example in world.examples:
        short, long = world.victim(search), world.victim(search)
        (small,) = world.run(search, short, [example], width=1).values()
        (large,) = world.run(search, long, [example], width=1, budget=2 * world.budget).values()
        assert short.sent == long.sent[: len(short.sent)]
        assert len(short.sent) == min(world.budget, len(long.sent))
        assert small.improvements == tuple(step for step in large.improvements if step.charge <= world.budget)
        if small.status != "skipped":
            assert (small.status == "fooled") == any(step.fooled for step in small.improvements)


# 5
def the_engine_keeps_the_best(search: Search, world: World) -> None:
    fresh = world.victim(search)
    for example in world.examples:
        grid = world.space([example])[0]
        (record,) = world.run(search, examples=[example]).values()
        if record.status == "skipped":
            continue
        wins = [step["text"] for step in record.trace if step["fooled"]]
        assert (record.status == "fooled") == bool(wins)
        if record.adversarial is None:
            continue
        assert fresh.label(record.adversarial) == record.label_after != example.target
        assert [*record.adversarial] in wins
        assert [step.fooled for step in record.improvements] == sorted(step.fooled for step in record.improvements)
        text, shift = example.text[0], 0
        for change in record.changes:
            at = change.start + shift
            assert text[at : at + len(change.before)] == change.before
            text = text[:at] + change.after + text[at + len(change.before) :]
            shift += len(change.after) - len(change.before)
        assert (text,) == record.adversarial
        assert len(record.changes) <= max(1, int(world.share * grid.n_words + 1e-9))
        assert len(record.changes) == min(_distance(example.text[0], win[0]) for win in wins)
        if world.floor is not None:
            assert record.similarity is not None
            assert record.similarity >= world.floor - 1e-6


def _distance(before: str, after: str) -> int:
    return sum(a != b for a, b in zip(before.split(), after.split(), strict=True))


# 6
def failures_stay_their_own(search: Search, world: World) -> None:
    healthy = world.run(search)
    poison = next((text for text in (e.text for e in world.examples) if text[0]), None)

    class Poisoned(ToyVictim):
        def __call__(self, texts: Any) -> Any:
            if poison in texts:
                raise RuntimeError("cannot read this text")
            return super().__call__(texts)

    gives = world.victim(search).gives
    records = world.run(search, Poisoned(world.seed, gives))
    for example in world.examples:
        record = records[example.id]
        if example.text == poison:
            assert record.status == "error"
            assert "cannot read this text" in record.reason
            assert record.error is not None
            assert "Traceback" in record.error
        elif record.status != "error":  # an attack may also walk into the poisoned text
            assert record.outcome() == healthy[example.id].outcome()
        judged = ToyVictim(world.seed).label(example.text)
        if judged != example.target and example.text != poison:
            assert record.status == "skipped"
            assert record.charged == 1


# 7
def refused_searches_end(search: Search, world: World) -> None:
    """The search stands aside here: an endless one takes its place."""

    def endless(grid: Grid, rng: np.random.Generator) -> Asking:
        for count in itertools.count():
            assert count < 200, "asked long after patience"
            yield Ask(np.zeros((1, len(grid.sizes)), np.int16))

    records = world.run(replace(search, name="endless", run=endless), patience=50)
    for record in records.values():
        assert record.status in ("held", "skipped")
        if "endless" in record.reason:
            assert record.charged == 1
    if any(len(grid.sizes) for grid in world.space(world.examples)) and {r.status for r in records.values()} == {"held"}:
        assert any("endless proposed nothing new" in record.reason for record in records.values())


# 8
def zeros_decode_to_the_original(search: Search, world: World) -> None:
    for example, grid in zip(world.examples, world.space(world.examples), strict=True):
        assert grid.decode(np.zeros((2, len(grid.sizes)), np.int16)) == [example.text] * 2


# 9; a real kill -9 is in test_resume.py
class Killed(BaseException):
    """As sudden as a process can end and still tell the tale."""


def a_crash_loses_nothing_paid(search: Search, world: World) -> None:
    whole = world.run(search, width=2)

    class Mortal(ToyVictim):
        calls_left = 1 + world.seed % 7

        def __call__(self, texts: Any) -> Any:
            if not self.calls_left:
                raise Killed
            self.calls_left -= 1
            return super().__call__(texts)

    victim = Mortal(world.seed, world.victim(search).gives)
    store = ReplyStore(":memory:")
    done: dict[str, Record] = {}
    lives = 0
    while len(done) < world.n:
        engine = world.engine(search, victim, width=2, store=store)
        try:
            for record in engine.run([example for example in world.examples if example.id not in done]):
                done[record.id] = record
        except Killed:
            lives += 1
            victim.calls_left = 2 * lives
    assert {i: r.outcome() for i, r in done.items()} == {i: r.outcome() for i, r in whole.items()}
    assert len(victim.sent) == len(set(victim.sent))


LAWS: dict[str, Law] = {
    "1 budget": never_over_budget,
    "2 charged": charged_is_what_the_victim_answered,
    "3 width": width_batch_and_order_do_not_matter,
    "4 prefix": a_small_budget_is_a_prefix,
    "5 best": the_engine_keeps_the_best,
    "6 failures": failures_stay_their_own,
    "7 patience": refused_searches_end,
    "8 identity": zeros_decode_to_the_original,
    "9 crash": a_crash_loses_nothing_paid,
}


@every_search
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_law(law: Law, search: Search) -> None:
    @quick
    @given(worlds)
    def holds(world: World) -> None:
        law(search, world)

    holds()


# --- the laws broken on purpose ------------------------------------------------------------------------------------


def one_too_many(patch: pytest.MonkeyPatch) -> None:
    bill = Account.bill

    def generous(self: Account, text: Any) -> bool:
        self.budget += 1
        try:
            return bill(self, text)
        finally:
            self.budget -= 1

    patch.setattr(Account, "bill", generous)


def repeats_are_charged(patch: pytest.MonkeyPatch) -> None:
    bill = Account.bill

    def twice(self: Account, text: Any) -> bool:
        known = text in self.charges
        paid = bill(self, text)
        self.charged += known
        return paid

    patch.setattr(Account, "bill", twice)


def cached_is_free(patch: pytest.MonkeyPatch) -> None:
    pay = Cashier.pay

    def forgiving(self: Cashier, accounts: Any) -> None:
        everybody = list(accounts)
        before = [account.cached for account in everybody]
        pay(self, everybody)
        for account, cached in zip(everybody, before, strict=True):
            account.charged -= account.cached - cached

    patch.setattr(Cashier, "pay", forgiving)


def luck_by_order(patch: pytest.MonkeyPatch) -> None:
    count = itertools.count()
    patch.setattr("scrimp.attacks.engine.zlib", SimpleNamespace(crc32=lambda text: next(count)))


def last_ask_is_lost(patch: pytest.MonkeyPatch) -> None:
    read = Engine._read

    def hasty(self: Engine, flights: Any) -> None:
        read(self, [flight for flight in flights if not flight.done])

    patch.setattr(Engine, "_read", hasty)


def only_what_fits(patch: pytest.MonkeyPatch) -> None:
    bill = Engine._bill

    def proud(self: Engine, flights: Any) -> None:
        for flight in flights:
            if flight.page and not flight.done and len(flight.page.rows) > flight.account.budget - flight.account.charged:
                flight.done = ("held", "the ask does not fit")
        bill(self, flights)

    patch.setattr(Engine, "_bill", proud)


def the_latest_wins(patch: pytest.MonkeyPatch) -> None:
    remember = Engine._remember

    def forgetful(self: Engine, flight: Any, *rest: Any) -> None:
        flight.best.changed, flight.best.fooled = 1000, False
        remember(self, flight, *rest)

    patch.setattr(Engine, "_remember", forgetful)


def floor_is_ignored(patch: pytest.MonkeyPatch) -> None:
    encode = Engine._encode

    def lax(self: Engine, flights: Any) -> None:
        floor, self.floor = self.floor, -1.0
        encode(self, flights)
        self.floor = floor

    patch.setattr(Engine, "_encode", lax)


def a_crash_is_robust(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Engine, "_fail", lambda self, flight, fault: setattr(flight, "done", ("held", "gave up")))


def a_bad_text_takes_all_down(patch: pytest.MonkeyPatch) -> None:
    def send(self: Cashier, texts: Any, keys: Any, known: Any, owed: Any) -> None:
        try:
            known |= {keys[text]: row for text, row in zip(texts, self._call(texts), strict=True)}
        except Exception as fault:
            for text in texts:
                for account in owed[text]:
                    account.failure = fault

    patch.setattr(Cashier, "_send", send)


def endless_patience(patch: pytest.MonkeyPatch) -> None:
    prepare = Engine.__post_init__

    def patient(self: Engine) -> None:
        prepare(self)
        self.patience = 1 << 30

    patch.setattr(Engine, "__post_init__", patient)


def blanks_are_tidied(patch: pytest.MonkeyPatch) -> None:
    decode = WordGrid.decode
    patch.setattr(WordGrid, "decode", lambda self, codes: [(" ".join(t[0].split()),) for t in decode(self, codes)])


def replies_are_not_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReplyStore, "put", lambda self, replies: None)


BREAKS: list[tuple[str, Callable[[pytest.MonkeyPatch], None]]] = [
    ("1 budget", one_too_many),
    ("2 charged", repeats_are_charged),
    ("2 charged", cached_is_free),
    ("3 width", luck_by_order),
    ("4 prefix", last_ask_is_lost),
    ("4 prefix", only_what_fits),
    ("5 best", the_latest_wins),
    ("5 best", floor_is_ignored),
    ("6 failures", a_crash_is_robust),
    ("6 failures", a_bad_text_takes_all_down),
    ("7 patience", endless_patience),
    ("8 identity", blanks_are_tidied),
    ("9 crash", replies_are_not_kept),
]


@pytest.mark.parametrize(("law", "mutate"), BREAKS, ids=[f"{law}-{mutate.__name__}" for law, mutate in BREAKS])
def test_a_broken_law_is_noticed(
    law: str, mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    searches = [ALL[name] for name in ("greedy-random", "restore", "scatter-scores")]
    tried = [World(seed, budget=budget, floor=floor) for seed in range(6) for budget, floor in ((8, None), (60, 0.8))]
    for search, world in itertools.product(searches, tried):
        LAWS[law](search, world)
    mutate(monkeypatch)
    noticed = 0
    for search, world in itertools.product(searches, tried):
        try:
            LAWS[law](search, world)
        except AssertionError:
            noticed += 1
    assert noticed, f"{mutate.__name__} passes for lawful"


# --- on the real parts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_is_lawful_on_the_embedded_victim(recipe: str) -> None:
    victim = load_victim("wordcnn-mr")
    settings: dict[str, Any] = {"budget": 60, "labels_only": RECIPES[recipe].search.needs == "label"}
    rows = [line.split("\t") for line in HELD_OUT.read_text().splitlines()[:12]]
    examples = [Example(str(i), (text,), int(label)) for i, (label, text) in enumerate(rows)]
    encodes = RECIPES[recipe].floor is not None or "lsh(" in RECIPES[recipe].search.name
    settings["guide"] = "use" if encodes else None
    wide = attack(victim, examples, recipe, judge=None, width=64, trace=True, **settings)
    slim = attack(victim, examples[::-1], recipe, judge=None, width=1, **settings)
    assert [r.outcome() for r in wide] == [r.outcome() for r in slim][::-1]
    assert any(record.status == "fooled" for record in wide)
    for record in wide:
        assert record.charged <= 60
        assert record.charged == len({tuple(step["text"]) for step in record.trace}) == len(record.trace)
        if record.adversarial is not None:
            (fresh,) = victim([record.adversarial])
            assert int(fresh.argmax()) == record.label_after != record.target


@pytest.mark.parametrize("space", SPACES)
@quick
@given(text=st.text(st.characters(), max_size=60) | st.sampled_from(["  a\tgood  film\r\n", "<br />Fine 😀 e\u0301 film"]))
def test_every_space_keeps_the_original(space: str, text: str) -> None:
    (grid,) = SPACES[space]([Example("x", (text,), 0)])
    assert grid.decode(np.zeros((1, len(grid.sizes)), np.int16)) == [(text,)]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (lambda grid, rng: iter([Ask(np.zeros((1, 99), np.int16))]), "asked about codes the grid does not have"),
        (lambda grid, rng: iter([Ask(np.full((1, len(grid.sizes)), 99, np.int16))]), "out of range"),
        (lambda grid, rng: iter([Ask(None)]), "asked about codes the grid does not have"),  # type: ignore[arg-type]
        (lambda grid, rng: iter(["a text"]), "a search yields Ask"),
        (lambda grid, rng: iter([Ask(np.zeros((1, 3), np.int16), grid=_other_grid())]), "a grid of another text"),
        (lambda grid, rng: iter([1 / 0]), "raised ZeroDivisionError"),
    ],
)
def test_a_broken_search_is_named(fault: Any, message: str) -> None:
    def run(grid: Grid, rng: np.random.Generator) -> Asking:
        yield from fault(grid, rng)

    world = World(3)
    records = world.run(Search("crooked", "label", "", run)).values()
    broken = [record for record in records if record.status == "error"]
    assert broken
    for record in broken:
        assert "crooked" in record.reason
        assert message in record.reason


def _other_grid() -> Grid:
    return World(3).space([Example("other", ("b b b",), 0)])[0]


def test_among_equally_short_successes_the_nearest_is_kept() -> None:
    def run(grid: Grid, rng: np.random.Generator) -> Asking:
        codes = np.zeros((int(grid.sizes.sum()), len(grid.sizes)), np.int16)
        codes[np.arange(len(codes)), np.repeat(np.arange(len(grid.sizes)), grid.sizes)] = np.concatenate(
            [np.arange(1, size + 1) for size in grid.sizes]
        )
        answers = yield Ask(codes, encode=True)
        seen.append(answers.similarity[answers.fooled])

    choices = 0
    for seed in range(12):
        seen: list[NDArray[np.float64]] = []
        for record in World(seed, n=1, length=12, budget=200).run(Search("all", "label", "", run)).values():
            if record.status == "fooled":
                assert record.similarity == pytest.approx(seen[0].max(), abs=1e-5)
                choices += len(set(seen[0])) > 1
    assert choices


def test_a_search_may_ask_about_candidates_proposed_after_an_edit() -> None:
    def run(grid: Grid, rng: np.random.Generator) -> Asking:
        code = np.ones(len(grid.sizes), np.int16)
        fresh, code = grid.around(code)
        assert fresh is not grid
        for slot in range(len(fresh.sizes)):
            code[slot] = fresh.sizes[slot]
            yield Ask(code[None], grid=fresh)

    rows = [Example(str(i), (text,), 0) for i, text in enumerate(["a good film", "one fine and warm comedy"])]
    victim = wrap(lambda texts: [[0.4, 0.6] if "movie" in t or "fond" in t else [0.6, 0.4] for t in texts], "fresh@1")
    engine = Engine(victim, Misclassify(), SPACES["wordnet"], Search("anew", "label", "", run), budget=50)
    for record in engine.run(rows):
        if record.adversarial:
            text = record.text[0]
            for change in reversed(record.changes):
                text = text[: change.start] + change.after + text[change.start + len(change.before) :]
            assert (text,) == record.adversarial
        assert record.status in ("fooled", "held"), record.reason
        assert record.charged > 1


# 10
OFFLINE = """
import sys
def watch(event, args):
    if event in ("socket.connect", "socket.getaddrinfo", "pickle.find_class"):
        print("not allowed:", event, args[-1])
        sys.stdout.flush()
        import os
        os._exit(3)
sys.addaudithook(watch)
import scrimp, scrimp.cli
results = scrimp.attack("wordcnn-mr", scrimp.read_examples(scrimp.victims.HELD_OUT, n=30), "pwws", budget=20)
print(results.summary["n"])
{more}
"""


@pytest.mark.parametrize(
    ("more", "event"),
    [
        ("", None),
        ("import socket; socket.create_connection(('127.0.0.1', 9))", "socket"),
        ("import pickle; pickle.loads(pickle.dumps(print))", "pickle.find_class"),
    ],
)
def test_no_network_and_no_pickle(more: str, event: str | None, tmp_path: Path) -> None:
    if event is None:  # make sure that everything is in the cache
        attack("wordcnn-mr", [("a fine film", 1)], "pwws", budget=2)
    run = subprocess.run(
        [sys.executable, "-c", OFFLINE.format(more=more) if event is None else OFFLINE.split("import scrimp")[0] + more],
        cwd=tmp_path,
        env=os.environ | {"SCRIMP_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if event is None:
        assert (run.returncode, run.stdout.strip()) == (0, "30"), run.stdout + run.stderr
    else:
        assert run.returncode == 3
        assert event in run.stdout
