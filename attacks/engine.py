"""The engine: decodes codes, judges them, removes repeats, pays, calls the victim once for everybody in flight, remembers
the best text and answers the searches."""

from __future__ import annotations

import time
import traceback
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .account import Account, Cashier
from .record import Improvement, Record, Status
from .replies import ReplyStore
from .types import (
    Answers,
    Ask,
    Asking,
    Bools,
    Codes,
    Encoder,
    Example,
    Floats,
    Goal,
    Grid,
    Scored,
    Search,
    Space,
    Text,
    Victim,
)


class SearchFault(RuntimeError):
    """A search broke its contract. The message names it."""


@dataclass
class _Best:
    """The best text so far: a success first, then fewer changed words, then the nearer one, then the one found earlier."""

    fooled: bool = False
    changed: int = 0
    margin: float = -np.inf
    near: float = np.nan  # similarity to the original, where it was encoded
    code: Codes | None = None
    text: Text | None = None
    grid: Grid | None = None  # what the code means


@dataclass(slots=True)
class _Page:
    """An ask being answered."""

    ask: Ask
    grid: Grid
    texts: list[Text]
    allowed: Bools
    rows: list[int]  # allowed rows, in order of payment
    probes: Bools | None  # which rows are no results; None: none of them
    start: int  # charges before this ask
    similarity: Floats | None = None  # None: nothing was encoded
    vectors: NDArray[np.float32] | None = None
    cursor: int = 0  # how many of `rows` are billed
    read: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))  # rows for the guide encoder
    # What is known of the first of `rows`. Lists, because most rounds add one row, and an array costs more than that row.
    fooled: list[bool] = field(default_factory=list)
    margin: list[float] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    won: bool = False

    def spread(self, known: Sequence[Any], missing: Any) -> NDArray[Any]:
        """What is known of the first of `rows`, put at their places."""
        if len(known) == len(self.texts):
            return np.array(known, type(missing))
        whole = np.full(len(self.texts), missing)
        whole[self.rows[: len(known)]] = known
        return whole


@dataclass(slots=True)
class _Flight:
    """One attack under way."""

    example: Example
    account: Account
    started: float
    clean: NDArray[Any] | None = None
    grid: Grid | None = None
    asking: Asking | None = None
    page: _Page | None = None
    pending: Ask | None = None  # an ask that waits for the encoder
    origin: NDArray[np.float32] | None = None  # the original's vector
    best: _Best = field(default_factory=_Best)
    improvements: list[Improvement] = field(default_factory=list)
    idle: int = 0  # asks in a row that paid for nothing
    done: tuple[Status, str] | None = None
    error: str | None = None
    trace: list[dict[str, Any]] = field(default_factory=list)
    won: set[Text] = field(default_factory=set)  # texts seen to succeed


_Told = tuple[_Flight, list[bool], list[float], list[float]]  # fooled, margin and score of the texts of an attack


def _plain(row: NDArray[Any] | None) -> tuple[int | float | None, tuple[float, ...] | None]:
    if row is None:
        return None, None
    if row.ndim:
        return int(row.argmax()), tuple(float(value) for value in row)
    return row.item(), None


def _cosines(a: NDArray[np.float32], b: NDArray[np.float32]) -> Floats:
    # Rounded, because the last bits of a sum depend on how many rows are summed at once.
    return np.asarray(np.round((a.astype(np.float64) * b).sum(1), 6), np.float64)


@lru_cache(maxsize=256)
def _not_encoded(n: int) -> tuple[Floats, NDArray[np.float32]]:
    """Similarity and vectors of n texts that no encoder has seen; shared, so nobody may write into them."""
    similarity, vectors = np.full(n, np.nan), np.zeros((n, 0), np.float32)
    similarity.flags.writeable = vectors.flags.writeable = False
    return similarity, vectors


@dataclass
class Engine:
    """Runs one search over many examples, `width` of them in flight. Width and batch change speed, never a result."""

    victim: Victim
    goal: Goal
    space: Space
    search: Search
    budget: int
    seed: int = 0
    width: int = 64
    batch: int = 256
    stride: int = 1  # rows paid per round by until_fooled; more than 1 suits slow remote victims and is charged in full
    floor: float | None = None  # least cosine to the original, by the guide
    window: int | None = None  # words around the changes that the floor compares; None: the whole text
    guide: Encoder | None = None
    judge: Encoder | None = None
    store: ReplyStore | None = None
    patience: int = 1000
    trace: bool = False
    spec: str = ""
    prior: str = ""  # the name of the prior behind the space, for the records
    encoder_cpu: float = 0.0  # processor seconds spent in guide and judge

    def __post_init__(self) -> None:
        if self.budget < 1:
            raise ValueError(f"budget={self.budget}: the clean text costs one query, so the budget must be at least 1")
        if self.width < 1 or self.batch < 1 or self.stride < 1:
            raise ValueError(f"width={self.width}, batch={self.batch}, stride={self.stride}: each must be at least 1")
        if self.seed < 0:
            raise ValueError(f"seed={self.seed}: a seed is a whole number from 0")
        if self.window is not None and self.window < 1:
            raise ValueError(f"window={self.window}: a window holds at least 1 word; leave it out for the whole text")
        if self.floor is not None and not -1 <= self.floor <= 1:
            raise ValueError(f"floor={self.floor}: a floor is a cosine, between -1 and 1")
        if self.floor is not None and self.guide is None:
            raise ValueError(f"floor={self.floor} needs a guide encoder; pass guide=scrimp.spaces.use()")
        if not self.goal.accepts(self.victim.gives):
            raise ValueError(
                f"goal {self.goal.name} cannot read {self.victim.name}, which gives {self.victim.gives}; "
                "misclassify and target read scores and labels, shift reads values"
            )
        if self.search.needs == "scores" and self.victim.gives == "label":
            raise ValueError(f"{self.search.name} needs scores but {self.victim.name} gives labels only")
        self.cashier = Cashier(self.victim, self.batch, self.store)

    # --- the loop -----------------------------------------------------------------------------------------------

    def run(self, examples: Iterable[Example]) -> Iterator[Record]:
        """Records, in the order in which the attacks end."""
        waiting = iter(examples)
        ready: deque[_Flight] = deque()
        flights: list[_Flight] = []
        while True:
            while len(flights) < self.width:
                if not ready:
                    chunk = list(islice(waiting, self.width))
                    if not chunk:
                        break
                    admitted = self._admit(chunk)
                    ready.extend(flight for flight in admitted if flight.done is None)
                    yield from self._finish([flight for flight in admitted if flight.done])
                    continue
                flights.append(self._launch(ready.popleft()))
            if not flights:
                return
            self._encode(flights)
            self._bill(flights)
            self.cashier.pay(flight.account for flight in flights)
            self._read(flights)
            for flight in flights:
                self._guarded(flight, self._settle)
            over = [flight for flight in flights if flight.done]
            if over:
                flights = [flight for flight in flights if not flight.done]
                yield from self._finish(over)

    def _guarded(self, flight: _Flight, step: Any) -> None:
        """The one place where an example's failure is caught: it becomes its `error` record and the others go on."""
        if flight.done:
            return
        try:
            step(flight)
        except Exception as fault:
            self._fail(flight, fault)

    def _fail(self, flight: _Flight, fault: BaseException) -> None:
        flight.done = ("error", f"{type(fault).__name__}: {fault}")
        flight.error = "".join(traceback.format_exception(fault))

    def _admit(self, chunk: Sequence[Example]) -> list[_Flight]:
        """Ask the clean texts of a chunk in one call, then build the grids of those that are right in one batch."""
        flights = [_Flight(example, Account(self.budget), time.perf_counter()) for example in chunk]
        for flight in flights:
            flight.account.bill(flight.example.text)
        self.cashier.pay(flight.account for flight in flights)
        self._judge_clean(flights)
        right = [flight for flight in flights if not flight.done]
        try:
            grids: list[Grid | None] = list(self.space([flight.example for flight in right])) if right else []
        except Exception:  # one example breaks the batch: build one by one so that only it fails
            grids = [None] * len(right)
        for flight, grid in zip(right, grids, strict=True):
            flight.grid = grid
            self._guarded(flight, self._open)
        return flights

    def _judge_clean(self, flights: Sequence[_Flight]) -> None:
        for flight, fooled, margin, _ in self._verdicts([(flight, [flight.example.text]) for flight in flights]):
            example = flight.example
            flight.clean = flight.account.replies[example.text]
            flight.best.margin = margin[0]
            if self.trace:
                self._note(flight, [example.text], fooled)
            if fooled[0]:
                label, _ = _plain(flight.clean)
                flight.done = (
                    "skipped",
                    f"the clean text already meets the goal: the victim says {label}, target {example.target}",
                )

    def _open(self, flight: _Flight) -> None:
        if flight.grid is None:
            flight.grid = self.space([flight.example])[0]
        if not len(flight.grid.sizes):
            flight.done = ("held", flight.grid.why_empty)

    def _launch(self, flight: _Flight) -> _Flight:
        assert flight.grid is not None
        rng = np.random.default_rng([self.seed, zlib.crc32(flight.example.id.encode("utf-8", "surrogatepass"))])
        flight.asking = self.search.run(flight.grid, rng)
        self._guarded(flight, lambda f: self._turn(f, None))
        return flight

    # --- one round ----------------------------------------------------------------------------------------------

    def _turn(self, flight: _Flight, reply: Answers | None) -> None:
        """Hand the search its reply and take its next ask, until it needs the encoder or the victim."""
        assert flight.asking is not None
        assert flight.grid is not None
        while True:
            try:
                ask = next(flight.asking) if reply is None else flight.asking.send(reply)
            except StopIteration:
                flight.done = ("held", "the search ended")
                return
            except Exception as fault:
                raise SearchFault(f"{self.search.name} raised {type(fault).__name__}: {fault}") from fault
            flight.idle += 1
            if flight.idle > self.patience:
                flight.done = ("held", f"{self.search.name} proposed nothing new in {self.patience} asks")
                return
            if not isinstance(ask, Ask):
                raise SearchFault(f"{self.search.name} yielded {type(ask).__name__}; a search yields Ask(codes)")
            self._open_page(flight, ask)
            if flight.pending is not None or (ask.pay and flight.page and flight.page.rows):
                return
            reply = self._answers(flight)

    def _open_page(self, flight: _Flight, ask: Ask) -> None:
        grid = ask.grid or flight.grid
        assert grid is not None
        try:
            texts = grid.decode(ask.codes)
            allowed = grid.legal(ask.codes)
        except (ValueError, TypeError, IndexError, AttributeError) as fault:
            raise SearchFault(f"{self.search.name} asked about codes the grid does not have: {fault}") from fault
        n = len(texts)
        if ask.grid is not None and grid.decode(np.zeros((1, len(grid.sizes)), np.int16))[0] != flight.example.text:
            raise SearchFault(f"{self.search.name} asked in a grid of another text; ask in one that grid.around gave")
        flight.page = _Page(
            ask=ask,
            grid=grid,
            texts=texts,
            allowed=allowed,
            rows=allowed.nonzero()[0].tolist(),
            probes=np.asarray((ask.codes < 0).any(1)) if np.minimum.reduce(ask.codes, None, initial=0) < 0 else None,
            start=flight.account.charged,
        )
        if self.guide is not None and (self.floor is not None or ask.encode):
            # A probe is no result, so no floor holds it back, and what a rule refuses needs no floor.
            page, wanted = flight.page, flight.page.allowed | ask.encode
            if page.probes is not None:
                wanted &= ~page.probes | ask.encode
            page.read = np.flatnonzero(wanted)
            if len(page.read):
                flight.pending, page.similarity = ask, np.full(n, np.nan)

    def _joined(self, flight: _Flight, text: Text) -> str:
        return "\n".join(text[field] for field in flight.example.editable if 0 <= field < len(text))

    def _vectors(self, encoder: Encoder, texts: list[str]) -> NDArray[np.float32]:
        cpu = time.process_time()
        distinct = list(dict.fromkeys(texts))
        place = {text: i for i, text in enumerate(distinct)}
        vectors = encoder(distinct)[[place[text] for text in texts]]
        self.encoder_cpu += time.process_time() - cpu
        return vectors

    def _reads(self, ask: Ask) -> tuple[bool, bool, bool]:
        """Whether an ask needs vectors of its own window, vectors of whole texts, and similarity."""
        judged = not ask.window or self.floor is not None
        return bool(ask.window), (judged and not self.window) or (ask.vectors and not ask.window), judged

    def _unread(self, flight: _Flight) -> list[str]:
        """What the guide must read for the flight's page, in the order in which `_encode` takes the vectors."""
        page = flight.page
        assert page is not None
        cut, whole, judged = self._reads(page.ask)
        codes, texts = page.ask.codes[page.read], list[Text]()
        if cut:
            texts += page.grid.windows(codes, page.ask.window or 0)[1]
        if whole:
            texts += [page.texts[row] for row in page.read] + [flight.example.text] * (flight.origin is None)
        if judged and self.window:
            before, after = page.grid.windows(codes, self.window)
            texts += before + after
        return [self._joined(flight, text) for text in texts]

    def _encode(self, flights: Sequence[_Flight]) -> None:
        """Vectors and similarity of every new page in one encoder batch, then the floor: before anything is paid."""
        while waiting := [flight for flight in flights if flight.pending is not None and not flight.done]:
            assert self.guide is not None
            texts: list[str] = []
            for flight in waiting:
                texts += self._unread(flight)
            vectors = iter(self._vectors(self.guide, texts))
            for flight in waiting:
                page = flight.page
                assert page is not None
                assert page.similarity is not None
                n = len(page.read)
                cut, whole, judged = self._reads(page.ask)
                found = np.zeros((n, 0), np.float32)
                if cut:
                    found = np.array(list(islice(vectors, n)))
                if whole:
                    rows = np.array(list(islice(vectors, n)))
                    if flight.origin is None:
                        flight.origin = next(vectors)
                    found = found if cut else rows
                    page.similarity[page.read] = _cosines(rows, flight.origin)
                if judged and self.window:
                    old, new = np.array(list(islice(vectors, n))), np.array(list(islice(vectors, n)))
                    page.similarity[page.read] = _cosines(old, new)
                if page.ask.encode:  # then every row was read
                    page.vectors = found
                if self.floor is not None:
                    fit = page.similarity >= self.floor
                    if page.probes is not None:  # a probe is no result, so no floor holds it back
                        fit |= page.probes
                    page.allowed = page.allowed & fit
                page.rows = page.allowed.nonzero()[0].tolist()
                flight.pending = None
                if not page.ask.pay or not page.rows:
                    self._guarded(flight, lambda f: self._turn(f, self._answers(f)))

    def _bill(self, flights: Sequence[_Flight]) -> None:
        for flight in flights:
            page, account = flight.page, flight.account
            if flight.done or page is None:
                continue
            slow = page.ask.until_fooled
            while page.cursor < len(page.rows):
                if slow and len(account.due) >= self.stride:
                    break
                text = page.texts[page.rows[page.cursor]]
                if not account.bill(text):
                    flight.done = ("held", "budget spent")  # what is billed so far is still read at the end
                    break
                page.cursor += 1
                if slow and text in flight.won:
                    break

    def _verdicts(self, told: Sequence[tuple[_Flight, list[Text]]]) -> Iterator[_Told]:
        """What the goal says of each attack's texts, asked once for everybody in flight; one that cannot be judged fails."""
        replies: list[NDArray[Any]] = []
        examples: list[Example] = []
        judged = []
        for flight, texts in told:
            account = flight.account
            if account.failure:
                self._fail(flight, account.failure)
                continue
            judged.append((flight, texts))
            for text in texts:
                replies.append(account.replies[text])
                examples.append(flight.example)
        if not judged:
            return
        try:
            verdict = self.goal(replies, examples, self.victim.gives)
        except Exception as fault:
            if len(judged) == 1:
                self._fail(judged[0][0], fault)
            else:  # find whose replies cannot be judged, so that the other attacks go on
                for alone in judged:
                    yield from self._verdicts([alone])
            return
        fooled, margin, score = verdict.fooled.tolist(), verdict.margin.tolist(), verdict.score.tolist()
        end = 0
        for flight, texts in judged:
            start, end = end, end + len(texts)
            yield flight, fooled[start:end], margin[start:end], score[start:end]

    def _read(self, flights: Sequence[_Flight]) -> None:
        """Take in the replies to what was billed since the last round."""
        told = []
        for flight in flights:
            page = flight.page
            if page is not None and len(page.fooled) < page.cursor:
                told.append((flight, [page.texts[row] for row in page.rows[len(page.fooled) : page.cursor]]))
        for flight, fooled, margin, score in self._verdicts(told):
            self._take(flight, fooled, margin, score)

    def _take(self, flight: _Flight, fooled: list[bool], margin: list[float], score: list[float]) -> None:
        """Write down the verdict on the rows billed last, and remember the best of them."""
        page = flight.page
        assert page is not None
        rows = page.rows[len(page.fooled) : page.cursor]
        best = flight.best
        page.score += score
        page.margin += margin
        if page.probes is not None:  # never a success, and never the best
            probes = page.probes[rows].tolist()
            fooled = [won and not probe for won, probe in zip(fooled, probes, strict=True)]
            margin = [-np.inf if probe else value for value, probe in zip(margin, probes, strict=True)]
        page.fooled += fooled
        if flight.account.charged > page.start:
            flight.idle = 0
        if self.trace:
            self._note(flight, [page.texts[row] for row in rows], fooled)
        won = True in fooled
        if won:
            page.won = True
            flight.won.update(page.texts[row] for row, fools in zip(rows, fooled, strict=True) if fools)
        if won or (not best.fooled and max(margin) > best.margin):
            self._remember(flight, page, rows, fooled, margin)

    def _settle(self, flight: _Flight) -> None:
        page = flight.page
        if page is None:
            return
        if page.won and page.ask.until_fooled:
            left = len(page.rows) - page.cursor
            flight.account.asked += left
            flight.account.spared += left
        elif page.cursor < len(page.rows):
            return
        self._turn(flight, self._answers(flight))

    def _remember(self, flight: _Flight, page: _Page, rows: list[int], fooled: list[bool], margin: list[float]) -> None:
        best, charge, charges = flight.best, page.start, flight.account.charges
        for row, fools, value in zip(rows, fooled, margin, strict=True):
            text = page.texts[row]
            charge = max(charge, charges[text])
            if not fools and (best.fooled or value <= best.margin):
                continue
            code = page.ask.codes[row]
            changed = int(np.count_nonzero(code))
            near = np.nan if page.similarity is None else float(page.similarity[row])
            if text == best.text and np.isnan(best.near):
                best.near = near  # asked for again to learn how near it is
            # A success is better than none; then fewer words, then the nearer text, never where either was not encoded.
            if best.fooled and not (changed < best.changed or (changed == best.changed and near > best.near)):
                continue
            flight.best = best = _Best(fools, changed, value, near, code.copy(), text, page.grid)
            flight.improvements.append(Improvement(charge, fools, changed, value, None if np.isnan(near) else near))

    def _note(self, flight: _Flight, texts: Sequence[Text], fooled: Sequence[bool]) -> None:
        """The trace: every charged text once, with its reply."""
        for text, won in zip(texts, fooled, strict=True):
            if flight.account.charges[text] > len(flight.trace):
                reply = flight.account.replies[text].tolist()
                charge = flight.account.charges[text]
                flight.trace.append({"charge": charge, "text": list(text), "reply": reply, "fooled": won})

    def _answers(self, flight: _Flight) -> Answers:
        page = flight.page
        assert page is not None
        known, (similarity, vectors) = len(page.fooled), _not_encoded(len(page.texts))
        common = (
            page.allowed,
            page.allowed if known == len(page.rows) else page.spread([True] * known, False),
            page.spread(page.fooled, False),
            similarity if page.similarity is None else page.similarity,
            vectors if page.vectors is None else page.vectors,
        )
        if self.search.needs != "scores":
            return Answers(*common)
        return Scored(*common, page.spread(page.margin, -np.inf), page.spread(page.score, -np.inf))

    # --- the end of an attack -----------------------------------------------------------------------------------

    def _finish(self, flights: Sequence[_Flight]) -> Iterator[Record]:
        for flight in flights:
            if flight.asking is not None:
                flight.asking.close()
            if flight.done and flight.done[0] == "held" and flight.best.fooled:
                flight.done = ("fooled", flight.done[1])
        won = [flight for flight in flights if flight.done and flight.done[0] == "fooled"]
        near = self._final(self.guide, won)
        judged = self._final(self.judge, won)
        for flight in flights:
            yield self._record(flight, near.get(id(flight)), judged.get(id(flight)))

    def _final(self, encoder: Encoder | None, won: Sequence[_Flight]) -> dict[int, float]:
        if encoder is None or not won:
            return {}
        texts: list[str] = []
        for flight in won:
            assert flight.best.text is not None
            texts += [self._joined(flight, flight.example.text), self._joined(flight, flight.best.text)]
        vectors = self._vectors(encoder, texts)
        cosines = _cosines(vectors[0::2], vectors[1::2])
        return {id(flight): float(cosine) for flight, cosine in zip(won, cosines, strict=True)}

    def _record(self, flight: _Flight, near: float | None, judged: float | None) -> Record:
        example, account, grid, best = flight.example, flight.account, flight.grid, flight.best
        assert flight.done is not None
        status, reason = flight.done
        won = status == "fooled"
        assert not won or (best.text is not None and best.code is not None and best.grid is not None)
        changes = best.grid.changes(best.code) if won and best.grid and best.code is not None else []
        before = _plain(flight.clean)
        after = _plain(account.replies[best.text]) if won and best.text is not None else (None, None)
        return Record(
            id=example.id,
            status=status,
            reason=reason,
            text=example.text,
            adversarial=best.text if won else None,
            changes=tuple(changes),
            target=example.target,
            label_before=before[0],
            label_after=after[0],
            scores_before=before[1],
            scores_after=after[1],
            charged=account.charged,
            asked=account.asked,
            cached=account.cached,
            spared=account.spared,
            improvements=tuple(flight.improvements),
            n_words=grid.n_words if grid else 0,
            perturbed_pct=round(100 * len(changes) / grid.n_words, 4) if won and grid else None,
            similarity=near,
            judged=judged,
            wall_s=round(time.perf_counter() - flight.started, 4),
            seed=self.seed,
            spec=self.spec,
            prior=self.prior,
            error=flight.error,
            trace=tuple(flight.trace),
        )
