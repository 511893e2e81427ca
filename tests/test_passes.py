"""Forward passes: no row's result depends on its company, to the last bit, and oneDNN says what torch says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scrimp.spaces import passes as module
from scrimp.spaces.encoders import minilm
from scrimp.spaces.passes import ROWS, STEP, linear, one_thread, packed, padded, passes, spread, stacked

SIZES = ((384, 384), (1536, 384), (384, 1536), (384, 21722))


@given(st.lists(st.integers(1, 100), max_size=60), st.sampled_from([40, 256]))
def test_every_row_goes_once_with_rows_of_its_padded_length(lengths: list[int], most: int) -> None:
    rows = [[0] * min(length, most) for length in lengths]
    groups = passes(rows, most)
    assert sorted(place for group in groups for place in group) == list(range(len(rows)))
    for group in groups:
        assert 1 <= len(group) <= ROWS
        assert len({padded(len(rows[place]), most) for place in group}) == 1


@given(st.integers(1, 512))
def test_a_length_is_padded_to_a_step_within_the_model(length: int) -> None:
    assert length <= padded(length, 512) < length + STEP
    assert padded(length, 512) % STEP == 0
    assert padded(length, length) == length


def test_stacked_rows_say_what_is_padding() -> None:
    given = stacked([[5, 6, 7], [8]], pad=1, most=512)
    assert given["input_ids"].shape == (2, STEP)
    assert given["input_ids"][0, :4].tolist() == [5, 6, 7, 1]
    assert given["attention_mask"].sum(1).tolist() == [3, 1]


@settings(deadline=None, max_examples=25, derandomize=True)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=12), st.integers(0, 2**32 - 1))
def test_company_changes_no_bit_of_minilm(lengths: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [rng.integers(1000, 20_000, length).tolist() for length in lengths]
    model = minilm()._model

    def states(some: list[list[int]]) -> list[NDArray[np.float32]]:
        found: list[NDArray[np.float32]] = [np.zeros(0, np.float32)] * len(some)
        for group in passes(some, 256):
            with torch.inference_mode():
                out = model(**stacked([some[place] for place in group], 0, 256)).last_hidden_state.numpy()
            for place, row in zip(group, out, strict=True):
                found[place] = row[: len(some[place])]
        return found

    together = spread(states, [rows], one_thread)[0]
    alone = spread(lambda row: states([row])[0], rows, one_thread)
    backwards = spread(states, [rows[::-1]], one_thread)[0][::-1]
    for one, two, three in zip(together, alone, backwards, strict=True):
        assert one.tobytes() == two.tobytes() == three.tobytes()


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("onednn", [True, False])
def test_products_of_four_rows_and_more_share_their_bits(
    size: tuple[int, int], onednn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not onednn:
        monkeypatch.setattr(module, "_reorder", lambda: None)
    inside, outside = size
    torch.manual_seed(0)
    weight, bias, rows = torch.randn(outside, inside), torch.randn(outside), torch.randn(48, inside)
    layer = linear(weight, bias)

    def product(some: torch.Tensor) -> NDArray[np.float32]:
        with torch.inference_mode():
            found: NDArray[np.float32] = layer(some).numpy()
        return found

    def check(count: int) -> bool:
        return product(rows[5 : 5 + count]).tobytes() == whole[5 : 5 + count].tobytes()

    (whole,) = spread(product, [rows], one_thread)
    assert all(spread(check, [4, 5, 7, 8, 13, 16, 32, 40], one_thread))
    assert np.allclose(whole, torch.nn.functional.linear(rows, weight, bias).numpy(), atol=2e-3)


def test_a_packed_model_says_what_it_said() -> None:
    torch.manual_seed(0)
    model: Any = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 3, bias=False)).eval()
    given = torch.randn(5, 8)
    with torch.inference_mode():
        before = model(given)
        after = packed(model)(given)
    assert torch.allclose(before, after, atol=1e-6)
    assert not any(isinstance(part, torch.nn.Linear) for part in model) or module._reorder() is None


def test_halves_of_32_bits_and_a_torch_without_onednn_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    half = torch.nn.Sequential(torch.nn.Linear(8, 3)).bfloat16()
    assert isinstance(packed(half)[0], torch.nn.Linear)
    monkeypatch.setattr(module, "_reorder", lambda: None)
    assert isinstance(packed(torch.nn.Sequential(torch.nn.Linear(8, 3)))[0], torch.nn.Linear)


def test_work_is_spread_in_order_and_threads_are_prepared() -> None:
    threads = torch.get_num_threads()
    found = spread(lambda item: (item, torch.get_num_threads()), range(40), one_thread)
    assert found == [(item, 1) for item in range(40)]
    assert torch.get_num_threads() == threads
