"""Labels only, by a genetic search (Maheshwary et al. 2021): replace words until the label flips, put back what is not needed,
then breed flipped texts that stay nearer to the original. As printed, and as the released code behaves."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from ..attacks.types import Answers, Ask, Asking, Bools, Codes, Floats, Grid, Reply, Search
from .moves import Slots, without

SHARE = 0.3  # of the words are replaced at most, as printed; the released code has no limit
MEMBERS = 30  # K
ROUNDS = 100  # T
MUTATIONS = 25  # lambda, per slot
DRAWS = 2500  # of the whole text, when no prefix flips the label (released)
TIRED = 15  # rounds with the same best text, or with no survivor, before the released code stops
STILL = 5  # rounds in which all members are one text; each tries up to 29 mutations of it
BLOCK = 16  # rows of one ask: what a success spares counts as asked, and these forms would not have asked it
LEAST = float(np.cos(1.0))  # the released score is 1 - arccos(cosine) and must be above 0


def nearness(answers: Answers, codes: Codes) -> Floats:
    """Cosine to the original; without an encoder a stand-in that falls with the share of slots changed."""
    share = (codes > 0).mean(1)
    return np.where(np.isnan(answers.similarity), 1 - 0.4 * share, answers.similarity)


def _in_turn(codes: Codes) -> Generator[Ask, Reply, int | None]:
    """Pay row by row up to the first that flips the label; its number. Only that one is encoded: it is asked for again."""
    for start in range(0, len(codes), BLOCK):
        answers = yield Ask(codes[start : start + BLOCK], until_fooled=True)
        if answers.fooled.any():
            hit = start + int(answers.fooled.argmax())
            yield Ask(codes[hit : hit + 1], encode=True)
            return hit
    return None


def _odds(values: Floats) -> Floats:
    weights = np.exp(values - values.max())
    return np.asarray(weights / weights.sum(), np.float64)


def _put_back(code: Codes) -> Generator[Ask, Reply, tuple[Codes, bool]]:
    """One pass of search space reduction, and whether any single word could go.

    The words that can go alone go together, nearest text first, up to the first that brings the old label back.
    """
    slots = code.nonzero()[0]
    codes = np.tile(code, (len(slots), 1))
    codes[np.arange(len(slots)), slots] = 0
    answers = yield Ask(codes, encode=True)
    able = answers.fooled.nonzero()[0][::-1]  # among equals the released code takes the later word
    able = able[np.argsort(-nearness(answers, codes)[able], kind="stable")]
    for slot in slots[able]:
        trial = without(code, slot[None])
        answers = yield Ask(trial[None], encode=True)
        if not answers.fooled[0]:
            break
        code = trial
    return code, bool(len(able))


def _choices(grid: Grid, code: Codes, slot: int) -> Codes:
    codes = np.tile(code, (int(grid.sizes[slot]), 1))
    codes[:, slot] = np.arange(1, len(codes) + 1)
    return codes


def _crossed(first: Codes, second: Codes, rng: np.random.Generator) -> Codes:
    return np.where(rng.random(first.shape) < 0.5, first, second).astype(np.int16)


# --- as printed ----------------------------------------------------------------------------------------------------------


def _paper(grid: Grid, rng: np.random.Generator) -> Asking:
    n = len(grid.sizes)
    start = yield from _start_printed(grid, rng)
    if start is None:
        return
    code, _ = yield from _put_back(start)
    slots = code.nonzero()[0]
    counts = np.zeros(n, np.int64)
    population = []
    for slot in slots[:MEMBERS]:
        population.append((yield from _mutate_printed(grid, code, int(slot))))
    still = 0
    for _ in range(ROUNDS):
        members = np.array(population)
        # A population of one text that no mutation moves could only repeat itself up to the last round: nothing more would be
        # charged, and the printed form would go on asking.
        still = still + 1 if (members == population[0]).all() else 0
        if still == STILL:
            return
        answers = yield Ask(members, pay=False, encode=True)
        near = nearness(answers, members)
        final = members[near.argmax()]
        # One pair is drawn and crossed K - 1 times. Its children are filtered by label and similarity at once, so all are paid.
        first, second = members[rng.choice(len(members), 2, p=_odds(near))]
        children = _crossed(np.tile(first, (MEMBERS - 1, 1)), np.tile(second, (MEMBERS - 1, 1)), rng)
        answers = yield Ask(children, encode=True)
        kept = children[answers.fooled & (nearness(answers, children) >= near.max())]
        population = [final]
        for child, slot in zip(kept, rng.choice(slots, len(kept)), strict=True):
            if child[slot] and counts[slot] < MUTATIONS:
                counts[slot] += 1
                population.append((yield from _mutate_printed(grid, child, int(slot))))
            else:
                population.append(child)


def _start_printed(grid: Grid, rng: np.random.Generator) -> Generator[Ask, Reply, Codes | None]:
    """Words at random places, one more each time, up to a share of the text.

    Nothing is printed about a text whose label has not flipped by then. Most have not, yet nearly all are said to fall, so
    other places are drawn, for as many texts as the released code draws, or until every such text was asked.
    """
    most = min(len(grid.sizes), max(1, int(SHARE * grid.n_words + 1e-9)))
    there, seen = _reachable(grid, most), set[bytes]()
    for _ in range(-(-DRAWS // most)):
        slots = rng.permutation(len(grid.sizes))[:most]
        codes = np.zeros((most, len(grid.sizes)), np.int16)
        codes[:, slots] = np.tri(most, dtype=np.int16) * rng.integers(1, grid.sizes[slots] + 1).astype(np.int16)
        flipped = yield from _in_turn(codes)
        if flipped is not None:
            return np.asarray(codes[flipped], np.int16)
        seen.update(code.tobytes() for code in codes)
        if len(seen) == there:
            return None
    return None


def _reachable(grid: Grid, most: int) -> int:
    """How many codes change from 1 to `most` words."""
    ways = [1] + [0] * most  # by number of words changed
    for size in grid.sizes.tolist():
        ways = [ways[0]] + [stay + size * fewer for stay, fewer in zip(ways[1:], ways[:-1], strict=True)]
    return sum(ways[1:])


def _mutate_printed(grid: Grid, code: Codes, slot: int) -> Generator[Ask, Reply, Codes]:
    """The original word if the label stays flipped, else the flipping synonym of the nearest text. The present one is among
    them, so there always is one."""
    back = without(code, np.array([slot]))
    answers = yield Ask(back[None], encode=True)
    if answers.fooled[0]:
        return back
    codes = _choices(grid, code, slot)
    answers = yield Ask(codes, encode=True)
    near = np.where(answers.fooled, nearness(answers, codes), -np.inf)
    return np.asarray(codes[near.argmax()], np.int16)


# --- as released ---------------------------------------------------------------------------------------------------------
# Not kept: the faults in its own count of queries, since the account counts. The similarity of mutation and crossover is
# that of a window around the word at hand, of selection and reduction that of the whole text; here all take what the recipe
# sets, which with a window is cut around all changed words. Candidates of another part of speech are dropped only by its
# mutation; here the space decides.


def _released(grid: Grid, rng: np.random.Generator) -> Asking:
    code = yield from _start_released(grid, rng)
    if code is None:
        return
    able = True
    while able:
        code, able = yield from _put_back(code)
    slots = code.nonzero()[0]
    if len(slots) == 1:
        return
    counts = np.zeros(len(grid.sizes), np.int64)
    population = []
    for slot in slots:
        child = yield from _mutate_released(grid, code, int(slot))
        if child is not None:
            population.append(child)
    best, same, empty = np.zeros_like(code), 0, 0
    for _ in range(ROUNDS):
        if not population or max(same, empty) == TIRED:
            return
        members = np.array(population)
        fewest = members[len(members) - 1 - (members > 0).sum(1)[::-1].argmin()]  # the last of equals
        same = same + 1 if (fewest == best).all() else 0
        best = fewest
        yield Ask(best[None], encode=True)  # it makes sure of what it knows
        if (best > 0).sum() == 1:
            return
        children = yield from _bred_released(members, best, slots, rng)
        population = yield from _next_released(grid, children, slots, counts, rng)
        empty = 0 if population else empty + 1
        population.append(best)


def _start_released(grid: Grid, rng: np.random.Generator) -> Generator[Ask, Reply, Codes | None]:
    """One word more each time, every word drawn afresh, as often as the text has words; then the whole text again and again."""
    n = len(grid.sizes)
    place = np.argsort(rng.permutation(n))
    growing = rng.integers(1, grid.sizes + 1, (grid.n_words, n))
    growing[place >= np.arange(1, grid.n_words + 1)[:, None]] = 0
    for lot in (growing, rng.integers(1, grid.sizes + 1, (DRAWS, n))):
        codes = lot.astype(np.int16)
        flipped = yield from _in_turn(codes)
        if flipped is not None:
            return np.asarray(codes[flipped], np.int16)
    return None


def _mutate_released(grid: Grid, code: Codes, slot: int) -> Generator[Ask, Reply, Codes | None]:
    """The original word if the label stays flipped, else another synonym that flips it and is at least as near, else none."""
    back = without(code, np.array([slot]))
    answers = yield Ask(back[None], encode=True)
    if answers.fooled[0]:
        return back
    codes = _choices(grid, code, slot)
    answers = yield Ask(codes, encode=True)
    near, here = nearness(answers, codes), int(code[slot]) - 1
    fit = answers.fooled & (near >= near[here]) & (near > LEAST)
    fit[here] = False
    if not fit.any():
        return None
    return np.asarray(codes[(fit & (near == near[fit].max())).nonzero()[0][-1]], np.int16)


def _bred_released(members: Codes, best: Codes, slots: Slots, rng: np.random.Generator) -> Generator[Ask, Reply, Codes]:
    """The flipped children of K - 1 pairs; a word that is neither the original nor the best text's must keep it as near."""
    everybody = np.concatenate([members, best[None]])
    answers = yield Ask(everybody, pay=False, encode=True)
    near = nearness(answers, everybody)
    score = 1 - np.arccos(np.clip(near[:-1], -1, 1))
    first, second = rng.choice(len(members), (2, MEMBERS - 1), p=_odds(score))
    children = _crossed(members[first], members[second], rng)
    other = ((children != 0) & (children != best))[:, slots].sum(1)
    answers = yield Ask(children, pay=False, encode=True)
    fit: Bools = (other == 0) | ((nearness(answers, children) >= near[-1]) & (other <= (best > 0).sum()))
    children = children[fit]
    answers = yield Ask(children, encode=True)
    return np.asarray(children[answers.fooled], np.int16)


def _next_released(
    grid: Grid, children: Codes, slots: Slots, counts: Slots, rng: np.random.Generator
) -> Generator[Ask, Reply, list[Codes]]:
    """As many children as there are changed slots go on, the others are lost; each is mutated at a slot drawn for it."""
    population = []
    for child, slot in zip(children, rng.choice(slots, min(len(slots), len(children))), strict=False):
        if not child[slot]:
            population.append(child)
        elif counts[slot] <= MUTATIONS:  # so 26 times
            mutated = yield from _mutate_released(grid, child, int(slot))
            if mutated is not None:
                counts[slot] += 1
                population.append(mutated)
    return population


hard_label_paper = Search("hard-label-paper", "label", "genetic search by labels alone, as printed", _paper)
hard_label_released = Search("hard-label-released", "label", "genetic search by labels alone, as released", _released)
