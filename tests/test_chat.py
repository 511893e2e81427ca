"""Chat victims against a real server on the loopback: prompts, labels, replies without a label, tokens and money."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scrimp import Example, attack, read_records
from scrimp.attacks.account import NO_LABEL
from scrimp.victims import ChatVictim, VictimError, endpoint_victim, load_victim
from scrimp.victims.limits import Stopped

from .loopback import Server, letters, serving
from .toys import ToySpace

TEXTS = [" ".join("abc bed face dab cab fed ade bcf"[at : at + 17]) for at in range(8)]
EXAMPLES = [Example(f"e{at}", (text,), int(letters(text)[1] > letters(text)[0])) for at, text in enumerate(TEXTS)]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def saying(words: Any, prompt: int = 20, completion: int = 2) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    return {"choices": [{"message": {"role": "assistant", "content": words}}], "usage": usage}


def opinion(number: int, body: Any) -> Any:
    """A model whose label is known, in the manner of a chat model."""
    text = body["messages"][-1]["content"]
    few, many = letters(text)
    return saying(f"I'd say: {'Many' if many > few else 'Few'}.")


def chat(server: Server, folder: Path | None = None, **settings: Any) -> ChatVictim:
    common = {"url": server.url, "model": "toy-1", "labels": ["few", "many"], "prompt": "{text}", "backoff": 0.001}
    made = endpoint_victim(common | settings, folder)
    assert isinstance(made, ChatVictim)
    return made


def run(target: Any, recipe: str = "restore-wordnet", **settings: Any) -> dict[str, Any]:
    found = attack(target, EXAMPLES, recipe, space=ToySpace(3), guide=None, judge=None, budget=40, **settings)
    return {record.id: record for record in found}


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("spam", 0),
        ("  **Spam**!\n", 0),
        ("SPAM, clearly spam", 0),
        ("Not  spam.", 1),
        ("it's ham", 1),
        ("spam or not spam", NO_LABEL),
        ("spammer", NO_LABEL),
        ("I cannot help with that", NO_LABEL),
        ("", NO_LABEL),
    ],
)
def test_labels_are_found_in_words(reply: str, label: int) -> None:
    with serving() as server:
        target = chat(server, labels=["spam", "not spam"], answers={"not spam": ["ham"]})
    assert target.parse(reply) == label


def test_requests() -> None:
    with serving(lambda n, b: saying("few")) as server:
        prompt = "Is it {labels}?\n{text}"
        odd = "{labels} {text} \ud800"
        chat(server, prompt=prompt, system="Be brief.", max_tokens=3, labels=["few", "some", "many"])([(odd,)])
        chat(server, prompt="{first}|{second}", options={"seed": 1, "max_tokens": None, "top_p": 1})([("a", "b")])
    said = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": f"Is it few, some or many?\n{odd}"}]
    assert server.bodies[0] == {"model": "toy-1", "messages": said, "temperature": 0, "max_tokens": 3}
    pair = [{"role": "user", "content": "a|b"}]
    assert server.bodies[1] == {"model": "toy-1", "messages": pair, "temperature": 0, "seed": 1, "top_p": 1}


def test_an_attack_with_labels_only() -> None:
    with serving(opinion) as server:
        target = chat(server)
        assert (target.gives, target.labels) == ("label", ("few", "many"))
        records = run(target)
    fooled = [record for record in records.values() if record.status == "fooled"]
    assert fooled
    for record in fooled:
        few, many = letters(record.adversarial[0])
        assert int(many > few) == record.label_after != record.target
    assert set(server.answered.values()) == {1}
    assert len(server.answered) == target.endpoint.requests == sum(r.charged - r.cached for r in records.values())


def test_a_reply_without_a_label_is_never_a_success(tmp_path: Path) -> None:
    clean = set(TEXTS[1:])

    def mute(number: int, body: Any) -> Any:
        text = body["messages"][-1]["content"]
        return opinion(number, body) if text in clean else saying(None if number % 2 else "Well, few or many.")

    with serving(mute) as server:
        target = chat(server, tmp_path, transcript="said.jsonl")
        records = run(target, trace=True, out=tmp_path / "run")
        asked = len(server.bodies)
        again = run(chat(server), trace=True, cache=tmp_path / "run" / "replies.sqlite")
    assert len(server.bodies) == asked  # such replies are kept like any other
    assert {name: record.outcome() for name, record in again.items()} == {n: r.outcome() for n, r in records.items()}
    assert records["e0"].status == "error"
    assert "the reply to the clean text names no label" in records["e0"].reason
    others = [record for name, record in records.items() if name != "e0"]
    assert {record.status for record in others} == {"held"}
    assert all(record.charged > 1 for record in others)
    assert all(not step["fooled"] for record in others for step in record.trace)
    lines = [json.loads(line) for line in (tmp_path / "said.jsonl").read_text().splitlines()]
    assert len(lines) == asked
    assert target.notes["unparsed"] == sum(line["label"] is None for line in lines) == asked - len(clean)


def test_tokens_are_paid_for(tmp_path: Path) -> None:
    money = {"cap": 0.01, "per_million_prompt_tokens": 50, "per_million_completion_tokens": 100}
    with serving(opinion) as server:
        target = chat(server, money=money, max_tokens=4, concurrency=4)
        records = run(target, out=tmp_path)
        spent = target.notes
        assert spent["money"] == round(len(server.bodies) * (20 * 50 + 2 * 100) / 1e6, 6) <= 0.01
        assert (spent["prompt_tokens"], spent["completion_tokens"]) == (20 * len(server.bodies), 2 * len(server.bodies))
        broke = [record for record in records.values() if record.status == "error"]
        assert broke
        assert all("the money cap is reached" in record.reason for record in broke)
        run(chat(server, money=money | {"cap": 1}, max_tokens=4), out=tmp_path, resume=True)
        assert {record.status for record in read_records(tmp_path / "records.jsonl")} <= {"fooled", "held", "skipped"}
    assert set(server.answered.values()) == {1}
    with serving(lambda n, b: {"choices": [{"message": {"content": "few"}}]}) as server:
        target = chat(server, money={"cap": 1, "per_million_prompt_tokens": 50})
        target([("x" * 36,)])
        assert target.notes["money"] == 0.005  # no usage in the reply: 36 bytes and 64 around them, as tokens


def test_a_server_of_another_kind() -> None:
    message = r"'choices.0.message.content' leads nowhere: .*model not loaded"
    with serving(lambda n, b: {"error": {"message": "model not loaded"}}) as server, pytest.raises(Stopped, match=message):
        chat(server)([("x",)])


BAD: list[tuple[dict[str, Any], str]] = [
    ({"labels": ["one"]}, "a classifier needs at least two"),
    ({"labels": ["yes", "Yes"]}, "each another word"),
    ({"prompt": "Hello"}, "the prompt has no place for the text; write {text}"),
    ({"max_tokens": 0}, "an answer takes at least 1 token"),
    ({"max_tokens": "many"}, "max_tokens is 'many'; it must be a whole number"),
    ({"answers": {"lots": ["x"]}}, "answers has words for 'lots', which is not one of ['few', 'many']"),
    ({"answers": {"few": ["many"]}}, "'many' stands for two labels"),
    ({"body": {}}, "no setting is called 'body'"),
    ({"transcript": "no/such/folder/x"}, "transcript 'no/such/folder/x' cannot be written"),
]


@pytest.mark.parametrize(("settings", "message"), BAD)
def test_bad_settings(settings: dict[str, Any], message: str) -> None:
    with serving() as server, pytest.raises(VictimError) as caught:
        chat(server, **settings)
    assert message in str(caught.value)


def test_files(tmp_path: Path) -> None:
    with serving(opinion) as server:
        plain = {"url": server.url, "model": "toy-1", "labels": ["few", "many"]}
        (tmp_path / "chat.json").write_text(json.dumps(plain))
        target = load_victim(str(tmp_path / "chat.json"))
        target([(TEXTS[0],)])
    assert "Is this text few or many?" in server.bodies[0]["messages"][0]["content"]
    assert target.name.startswith("toy-1@")
    with serving() as other:
        assert chat(other, prompt="a {text}").name != chat(other, prompt="b {text}").name
        assert chat(other).name == chat(server).name  # a port is no part of a model
    (tmp_path / "chat.json").write_text(json.dumps({"url": server.url, "model": "m"}))
    with pytest.raises(VictimError, match=r"chat\.json: labels missing; an endpoint needs url, model, labels"):
        load_victim(str(tmp_path / "chat.json"))
