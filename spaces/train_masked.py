"""Train the embedded masked-word model: python -m scrimp.spaces.train_masked --help."""

from __future__ import annotations

import argparse
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..resources import fetch
from .card import write_card
from .corpus import Ids, Texts, read_texts, whole_starts, windows
from .filling import EMBEDDED, bare
from .rules import Field, stop_words
from .tokens import Word
from .wordnet import WordNet

if TYPE_CHECKING:
    import torch

KINDS = {"reviews": 0.45, "sentences": 0.15, "glosses": 0.25, "books": 0.15}  # shares of the windows
FUNCTION = 0.15  # a function word is masked so many times as often as a content word: attacks leave them alone
HELD_WORD = 5  # one word in so many never meets a synonym in training, so that synonyms can be measured on it
APOSTROPHE = "'"


class Batch(NamedTuple):
    ids: torch.Tensor  # int64[n, length]
    types: torch.Tensor  # 1 in the second half of a pair
    seen: torch.Tensor  # 0 where padded
    rows: torch.Tensor  # the masks: which row,
    places: torch.Tensor  # where in it,
    targets: torch.Tensor  # and the number, among the words, of what was there


class Targets:
    """Which ids are words that may be masked and proposed, and how they are drawn."""

    def __init__(self, tokenizer: Any, synonyms: float) -> None:
        pieces = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
        stop = stop_words()
        words = [number for number, piece in enumerate(pieces) if is_target(piece)]
        self.words = np.array(words, np.int64)
        self.numbers = np.full(len(pieces), -1, np.int64)
        self.numbers[self.words] = np.arange(len(words))
        self.starts = whole_starts(tokenizer)
        self.weights = np.array([FUNCTION if p in stop else 1.0 if is_target(p) else 0.0 for p in pieces])
        self.weights[self.numbers < 0] = 0.0
        self.special = (tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.mask_token_id, tokenizer.pad_token_id)
        self.apostrophe = tokenizer.convert_tokens_to_ids(APOSTROPHE)
        self.synonyms = find_synonyms([pieces[i] for i in words], words) if synonyms else {}
        self.share = synonyms

    def open(self, window: Ids) -> NDArray[np.float64]:
        """How likely each place is to be masked: 0 for parts of words, marks and halves of don't."""
        weights = self.weights[window]
        cut = np.flatnonzero(~self.starts[window])
        weights[cut - 1] = 0.0
        quotes = np.flatnonzero(window == self.apostrophe)
        weights[np.maximum(quotes - 1, 0)] = 0.0
        weights[np.minimum(quotes + 1, len(window) - 1)] = 0.0
        return weights

    def hide(self, window: Ids, share: float, rng: np.random.Generator) -> NDArray[np.int64]:
        """Places to mask, in order; none where nothing can be masked."""
        weights = self.open(window)
        choices = np.flatnonzero(weights)
        count = min(len(choices), max(1, round(share * len(window))))
        keys = rng.random(len(choices)) ** (1 / weights[choices])
        return np.sort(choices[np.argsort(-keys)[:count]])

    def disguise(self, window: Ids, places: NDArray[np.int64], rng: np.random.Generator) -> Ids:
        """The window as it is shown before a masked copy: with synonyms, now and then, of what is masked there."""
        shown = window.copy()
        for place in places:
            others = self.synonyms.get(int(window[place]))
            if others is not None and rng.random() < self.share:
                shown[place] = others[rng.integers(len(others))]
        return shown


def is_target(piece: str) -> bool:
    return piece.isascii() and piece.isalpha() and (len(piece) > 1 or piece in "ai")


def held_word(word: str) -> bool:
    return zlib.crc32(word.encode()) % HELD_WORD == 0


def find_synonyms(words: Sequence[str], ids: Sequence[int]) -> dict[int, NDArray[np.int64]]:
    """WordNet's synonyms, in the word's form, that are words of the vocabulary; no held-out word on either side."""
    number = dict(zip(words, ids, strict=True))
    field = Field(0, "", [Word(0, len(word), word) for word in words], ())
    found = WordNet(pos=False)(field, range(len(words)))
    table = {}
    for word, others in zip(words, found, strict=True):
        known = [number[other] for other in others if other in number and not held_word(other)]
        if known and not held_word(word):
            table[number[word]] = np.array(known)
    return table


def endless(pool: Sequence[Ids], rng: np.random.Generator) -> Iterator[Ids]:
    while True:
        for place in rng.permutation(len(pool)).tolist():
            yield pool[place]


def batches(pools: dict[str, list[Ids]], words: Targets, how: argparse.Namespace) -> Iterator[Batch]:
    """Endless batches of windows of like length; a pair is twice as long, so there are half as many."""
    rng = np.random.default_rng(how.seed)
    kinds = [kind for kind in KINDS if kind in pools]
    shares = np.array([KINDS[kind] for kind in kinds])
    streams = {kind: endless(pools[kind], rng) for kind in kinds}
    while True:
        drawn = [next(streams[kinds[k]]) for k in rng.choice(len(kinds), how.batch * 32, p=shares / shares.sum())]
        drawn.sort(key=len)
        groups: list[tuple[list[Ids], bool]] = []
        for at in range(0, len(drawn), how.batch):
            group = drawn[at : at + how.batch]
            if rng.random() < how.pairs:
                groups += [(group[: how.batch // 2], True), (group[how.batch // 2 :], True)]
            else:
                groups.append((group, False))
        for place in rng.permutation(len(groups)).tolist():
            group, pair = groups[place]
            yield stack(group, pair, words, how.mask, rng)


def stack(group: Sequence[Ids], pair: bool, words: Targets, share: float, rng: np.random.Generator) -> Batch:
    import torch

    first, last, mask, pad = words.special
    rows, types, masked = [], [], []
    for row, window in enumerate(group):
        places = words.hide(window, share, rng)
        copy = window.copy()
        copy[places] = mask
        shown = [first, *words.disguise(window, places, rng), last] if pair else [first]
        rows.append([*shown, *copy, last])
        types.append(len(shown) if pair else len(rows[-1]))
        masked += [(row, len(shown) + int(place), int(words.numbers[window[place]])) for place in places]
    length = max(map(len, rows))
    ids = torch.full((len(rows), length), pad)
    for place, pieces in enumerate(rows):
        ids[place, : len(pieces)] = torch.tensor(pieces)
    lengths = torch.tensor([len(pieces) for pieces in rows])[:, None]
    columns = torch.arange(length)[None]
    second = (columns >= torch.tensor(types)[:, None]) & (columns < lengths)
    where = torch.tensor(masked, dtype=torch.long).reshape(-1, 3)
    return Batch(ids, second.long(), (columns < lengths).long(), where[:, 0], where[:, 1], where[:, 2])


def make_network(rank: int, words: Targets, seed: int) -> Any:
    """MiniLM with a new head; everything else is frozen but low-rank adapters, norms, the two types and the mask.

    With rank 0 only the head learns.
    """
    import torch
    from torch import nn
    from torch.nn.functional import linear

    mask = words.special[2]

    class Adapted(nn.Module):
        def __init__(self, frozen: nn.Linear) -> None:
            super().__init__()
            self.weight = nn.Parameter(frozen.weight.detach().bfloat16(), requires_grad=False)
            self.bias = nn.Parameter(frozen.bias.detach().bfloat16(), requires_grad=False)
            self.down = nn.Parameter(torch.randn(rank, frozen.in_features) / frozen.in_features**0.5)
            self.up = nn.Parameter(torch.zeros(frozen.out_features, rank))

        def forward(self, given: torch.Tensor) -> torch.Tensor:
            return linear(given, self.weight, self.bias) + linear(linear(given, self.down), self.up)

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = bare(attention="eager")  # its backward pass is several times as fast on a processor
            self.model.requires_grad_(False)
            self.model.cls.predictions.transform.requires_grad_(True)
            embeddings = self.model.bert.embeddings.word_embeddings.weight.detach()
            self.register_buffer("decoder", embeddings[torch.from_numpy(words.words)].bfloat16())
            self.bias = nn.Parameter(torch.zeros(len(words.words)))
            self.mask = nn.Parameter(embeddings[mask].clone(), requires_grad=rank > 0)
            if rank:
                self.model.bert.embeddings.token_type_embeddings.requires_grad_(True)
                for module in list(self.model.bert.modules()):
                    if isinstance(module, nn.LayerNorm):
                        module.requires_grad_(True)
                for name, module in list(self.model.bert.encoder.named_modules()):
                    if isinstance(module, nn.Linear):
                        parent, _, own = name.rpartition(".")
                        setattr(self.model.bert.encoder.get_submodule(parent), own, Adapted(module))

        def forward(self, batch: Batch) -> torch.Tensor:
            """Log odds of every word for every mask."""
            given = self.model.bert.embeddings.word_embeddings(batch.ids)
            given = torch.where((batch.ids == mask)[..., None], self.mask, given)
            hidden = self.model.bert(inputs_embeds=given, token_type_ids=batch.types, attention_mask=batch.seen)[0]
            hidden = self.model.cls.predictions.transform(hidden[batch.rows, batch.places])
            return linear(hidden, self.decoder).float() + self.bias  # type: ignore[arg-type]

        def learned(self) -> dict[str, torch.Tensor]:
            """What training changed, under the names of the model: this is what is shipped."""
            found = {n: p for n, p in self.model.named_parameters() if p.requires_grad}
            return {**found, "mask": self.mask, "words.bias": self.bias}

    torch.manual_seed(seed)
    return Network()


def first_bias(pools: dict[str, list[Ids]], words: Targets) -> NDArray[np.float32]:
    """Log shares of the words: a head start for the head."""
    counts = np.zeros(len(words.numbers))
    for kind, pool in pools.items():
        total = np.bincount(np.concatenate(pool), minlength=len(counts))
        counts += KINDS[kind] * total / total.sum()
    counts = counts[words.words] * words.weights[words.words]
    bias: NDArray[np.float32] = np.log(counts / counts.sum() + 1e-7).astype(np.float32)
    return bias


def top_shares(network: Any, checks: Sequence[Batch]) -> list[float]:
    """How often the masked word is the first, among the first 10, and among the first 50."""
    import torch

    ranks = []
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        for batch in checks:
            odds = network(batch)
            own = odds.gather(1, batch.targets[:, None])
            ranks += (odds > own).sum(1).tolist()
    return [round(float(np.mean(np.array(ranks) < k)), 4) for k in (1, 10, 50)]


def fit(pools: dict[str, list[Ids]], valid: list[Ids], words: Targets, how: argparse.Namespace) -> dict[str, Any]:
    """The learned weights."""
    import torch

    torch.set_num_threads(1)  # the order of sums, and so the result, depends on it
    network = make_network(how.rank, words, how.seed)
    with torch.no_grad():
        network.bias.copy_(torch.from_numpy(first_bias(pools, words)))
    learned = list(network.learned().values())
    matrices = [weight for weight in learned if weight.ndim == 2 and weight.requires_grad]
    vectors = [weight for weight in learned if weight.ndim == 1 and weight.requires_grad]
    adam = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": how.decay}, {"params": vectors, "weight_decay": 0.0}],
        lr=how.rate,
        betas=(0.9, 0.98),
    )
    warm = max(1, how.steps // 30)
    pace = torch.optim.lr_scheduler.LambdaLR(adam, lambda n: min((n + 1) / warm, (how.steps - n) / (how.steps - warm)))
    checks = {pair: checks_of(valid, pair, words) for pair in (False, True)}
    network.eval()  # no dropout: most windows are seen once
    begun, lately, count = time.perf_counter(), [], 0
    for step, batch in zip(range(1, how.steps + 1), batches(pools, words, how), strict=False):
        with torch.autocast("cpu", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(network(batch), batch.targets)
        adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(matrices + vectors, 1.0)
        adam.step()
        pace.step()
        lately.append(loss.item())
        count += len(batch.ids)
        if step % 100 == 0 or step == how.steps:
            speed = count / (time.perf_counter() - begun)
            line = f"step {step} of {how.steps}: loss {np.mean(lately):.3f}, {speed:.0f} windows/s"
            if step % how.check == 0 or step == how.steps:
                shown = {pair: "/".join(f"{100 * s:.1f}" for s in top_shares(network, checks[pair])) for pair in checks}
                line += f"; validation top 1/10/50 % plain {shown[False]}, pair {shown[True]}"
                save(how.out, network.learned(), words)
            print(line, flush=True)
            lately = []
    return dict(network.learned())


def checks_of(pool: Sequence[Ids], pair: bool, words: Targets) -> list[Batch]:
    """One masked word in every window, always the same. The visible half of a pair shows the word itself."""
    rng = np.random.default_rng(0)
    share, words.share = words.share, 0.0
    order = sorted(pool, key=len)
    found = [stack(order[at : at + 50], pair, words, 0.0, rng) for at in range(0, len(order), 50)]
    words.share = share
    return found


def save(file: Path, learned: dict[str, Any], words: Targets) -> None:
    """Half precision; names as in the model, with .down and .up where a product is added to a weight."""
    from safetensors.numpy import save_file

    tensors = {name: weight.detach().float().numpy().astype(np.float16) for name, weight in learned.items()}
    bias = np.full(len(words.numbers), -30.0, np.float16)  # never proposed
    bias[words.words] = tensors.pop("words.bias")
    file.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors | {"cls.predictions.bias": bias}, file)


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scrimp.spaces.train_masked",
        description="Train the masked-word model that comes with scrimp: all-MiniLM-L6-v2 with a new head and low-rank "
        "adapters, on movie reviews, WordNet's definitions and examples, and eleven books. About 50 minutes on one core "
        "that computes in bfloat16; the first run fetches MiniLM (84 MB), the reviews (13 MB) and WordNet with the books "
        "(45 MB). The same command on the same machine gives the same weights.",
        epilog="Writes NAME.safetensors (what was learned, in half precision; MiniLM itself stays where it is) and "
        "NAME.card.json (data, options, accuracy). Use the result with scrimp.spaces.masked.Masked(model=PATH). Options "
        "are chosen on the 700 validation sentences; held-out rows are scored at the end. --rank 0 trains the head "
        "alone, which is not enough.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--out", type=Path, default=EMBEDDED, help="the .safetensors file to write")
    parser.add_argument("--seed", type=int, default=1, help="for weights, windows, masks and order")
    parser.add_argument("--steps", type=int, default=9000, help="batches to learn from")
    parser.add_argument("--batch", type=int, default=48, help="windows per step; pairs are twice as long and half as many")
    parser.add_argument("--rank", type=int, default=24, help="of the adapters: 83 kB each on disk")
    parser.add_argument("--rate", type=float, default=1.5e-3, help="highest learning rate; it rises, then falls to 0")
    parser.add_argument("--decay", type=float, default=0.01, help="weight decay of matrices")
    parser.add_argument("--mask", type=float, default=0.22, help="share of the word pieces of a window that are masked")
    parser.add_argument("--pairs", type=float, default=0.25, help="share of windows shown as a pair: intact, then masked")
    text = "how often the intact half of a pair shows a WordNet synonym in a masked word's place"
    parser.add_argument("--synonyms", type=float, default=0.6, help=text)
    parser.add_argument("--texts", type=int, default=0, help="use so many texts of each kind only; 0 for all")
    parser.add_argument("--check", type=int, default=500, help="validate and save every so many steps")
    return parser


def prepare(texts: Texts, tokenizer: Any, how: argparse.Namespace) -> tuple[dict[str, list[Ids]], list[Ids]]:
    """Windows to train on by kind, and to validate on."""
    rng = np.random.default_rng(how.seed)
    pools = {}
    for kind, some in texts.train.items():
        chosen = rng.permutation(len(some))[: how.texts or None]
        pools[kind] = windows([some[i] for i in chosen], tokenizer, rng)
    return pools, windows(texts.valid[: how.texts or None], tokenizer, rng)


def main(arguments: Sequence[str] | None = None) -> None:
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    how = options().parse_args(arguments)
    if how.out.suffix != ".safetensors":
        raise SystemExit(f"--out {how.out} must end in .safetensors")
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(fetch("minilm")), local_files_only=True)
    texts = read_texts()
    pools, valid = prepare(texts, tokenizer, how)
    words = Targets(tokenizer, how.synonyms)
    counts = ", ".join(f"{len(pool)} of {kind}" for kind, pool in pools.items())
    print(f"windows: {counts}; {len(words.words)} words, {len(words.synonyms)} with synonyms", flush=True)
    begun = time.perf_counter()
    valid = [window for window in valid if words.open(window).any()]
    save(how.out, fit(pools, valid, words, how), words)
    write_card(how, arguments, texts, {kind: len(pool) for kind, pool in pools.items()}, time.perf_counter() - begun)


if __name__ == "__main__":
    main()
