"""HTTP victims against a real server on the loopback: every paid reply is kept, none is asked twice, no secret gets out."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scrimp import Example, attack, labels_only, read_records
from scrimp.attacks.account import Account, Cashier
from scrimp.attacks.replies import ReplyStore
from scrimp.victims import HttpVictim, VictimError, endpoint_victim, load_victim, wrap
from scrimp.victims.limits import Pace, RemoteError, Stopped

from .loopback import CLOSE, HANG, Server, letters, scores, serving
from .toys import ToySpace

KEY = "sk-never-to-be-seen-1234567890"
TEXTS = [" ".join("abc bed face dab cab fed ade bcf"[at : at + 17]) for at in range(8)]
EXAMPLES = [Example(f"e{at}", (text,), int(letters(text)[1] > letters(text)[0])) for at, text in enumerate(TEXTS)]


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TEST_KEY", KEY)


def described(server: Server, **settings: Any) -> dict[str, Any]:
    common = {"url": server.url, "name": "toy", "body": {"inputs": "{texts}"}, "reply": "results.*.scores"}
    quick = {"timeout": 5, "backoff": 0.001, "retries": 3, "texts_per_request": 3, "concurrency": 3}
    return common | quick | settings


def victim(server: Server, **settings: Any) -> HttpVictim:
    made = endpoint_victim(described(server, **settings))
    assert isinstance(made, HttpVictim)
    return made


def run(target: Any, **settings: Any) -> dict[str, dict[str, Any]]:
    common = {"space": ToySpace(3), "guide": None, "judge": None, "width": 4, "budget": 40}
    found = attack(target, EXAMPLES, "pwws", **(common | settings))
    return {record.id: record.outcome() for record in found}


def local() -> dict[str, dict[str, Any]]:
    return run(wrap(lambda texts: [letters(text) for text in texts], victim_name()))


def victim_name() -> str:
    with serving() as server:
        return victim(server).name


def pay(target: Any, texts: list[str], store: ReplyStore | None = None) -> list[Account]:
    accounts = [Account(10) for _ in texts]
    for account, text in zip(accounts, texts, strict=True):
        account.bill((text,))
    Cashier(target, store=store).pay(accounts)
    return accounts


# --- requests and replies ------------------------------------------------------------------------------------------------


REPLIES: list[tuple[Any, str, dict[str, Any], Any]] = [
    ([[0.25, 0.75]], "", {}, [0.25, 0.75]),
    ({"out": [{"p": [0.25, 0.75]}]}, "out.*.p", {}, [0.25, 0.75]),
    ([{"no": 0.25, "yes": 0.75}], "", {"labels": ["no", "yes"]}, [0.25, 0.75]),
    ([[{"label": "yes", "score": 0.75}, {"label": "no", "score": 0.25}]], "", {"labels": ["no", "yes"]}, [0.25, 0.75]),
    ([{"label": "yes"}], "", {"labels": ["no", "yes"], "gives": "label"}, 1),
    ([{"deep": [["yes"]]}], "*.deep.0.-1", {"labels": ["no", "yes"], "gives": "label"}, 1),
    ([1], "", {"gives": "label"}, 1),
    ({"values": [3.5]}, "values", {"gives": "value"}, 3.5),
]


@pytest.mark.parametrize(("reply", "path", "settings", "row"), REPLIES)
def test_rows_of_many_forms(reply: Any, path: str, settings: dict[str, Any], row: Any) -> None:
    with serving(lambda number, body: reply) as server:
        (found,) = victim(server, reply=path, **settings)([("x",)])
    assert found.tolist() == row


def test_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = 'a "quoted" {text} {texts} \ud800 😀\n'
    with serving(lambda number, body: [0.5, 0.5]) as server:
        victim(server, body={"a": ["Say: {text}!", 1, None]}, reply="")([(odd,), ("b",)])
        pair = {"premise": "{first}", "hypothesis": "{second}"}
        victim(server, body=pair, reply="")([("{second}", "q")])
    assert sorted(server.bodies[:2], key=str) == [{"a": [f"Say: {odd}!", 1, None]}, {"a": ["Say: b!", 1, None]}]
    assert server.bodies[2] == {"premise": "{second}", "hypothesis": "q"}
    with serving(lambda number, body: [[0.5, 0.5]] * len(body["in"])) as server:
        many = victim(server, body={"in": {"each": pair}}, reply="", concurrency=1)
        assert len(many([(str(at), "h") for at in range(5)])) == 5
        assert len(victim(server, body={"in": "{texts}"}, reply="")([("p", "q")])) == 1
    assert [len(body["in"]) for body in server.bodies] == [3, 2, 1]
    assert server.bodies[0]["in"][1] == {"premise": "1", "hypothesis": "h"}
    assert server.bodies[2]["in"] == [["p", "q"]]
    with pytest.raises(VictimError, match=r"has room for 1 field\(s\), got a text of 2; use \{text\} for one field"):
        victim(server, body="{text}")([("a", "b")])


def test_the_name_is_what_decides_a_reply() -> None:
    with serving() as server, serving() as other:
        name = victim(server).name
        assert name.startswith("toy@")
        same = {"headers": {"X-Key": "${TEST_KEY}"}, "money": {"cap": 1, "per_call": 1}, "timeout": 9, "per_second": 5.5}
        assert victim(other, **same).name == name  # another port, key, cap: the same model
        assert len({name, victim(server, labels=["a", "b"]).name, victim(server, body={"i": "{texts}"}).name}) == 3
        assert victim(server, name="").name != victim(other, name="").name


# --- servers that misbehave --------------------------------------------------------------------------------------------

LATER = {
    "429": (429, {"Retry-After": "0.01"}, b"slow down"),
    "500": (500, {}, b"oops"),
    "503": (503, {"Retry-After": "0"}, b""),
    "close": CLOSE,
    "hang": HANG,
}
UNREADABLE = {
    "broken JSON": (200, {}, b'{"results": [{"sco'),
    "HTML": (200, {"Content-Type": "text/html"}, b"<html>Please log in</html>"),
    "too few rows": (200, {}, b'{"results": []}'),
    "nowhere": (200, {}, b'{"error": "busy"}'),
    "NaN": (200, {}, b'{"results": [{"scores": [NaN, 1]}, {"scores": [NaN, 1]}, {"scores": [NaN, 1]}]}'),
}


@pytest.mark.parametrize("fault", LATER)
def test_what_may_be_answered_later_is_asked_again(fault: str) -> None:
    def answer(number: int, body: Any) -> Any:
        return LATER[fault] if number % 3 == 1 and number < 8 else scores(number, body)

    with serving(answer) as server:
        assert run(victim(server, timeout=0.3)) == local()
    assert set(server.answered.values()) == {1}
    assert len(server.bodies) > len(server.answered) / 3


@pytest.mark.parametrize("fault", UNREADABLE)
def test_a_reply_that_cannot_be_read_is_one_error_and_resume_mends_it(fault: str, tmp_path: Path) -> None:
    broken = [True]

    def answer(number: int, body: Any) -> Any:
        return UNREADABLE[fault] if number == 4 and broken else scores(number, body)

    with serving(answer) as server:
        first = run(victim(server), out=tmp_path)
        failed = [record for record in read_records(tmp_path / "records.jsonl") if record.status == "error"]
        assert 1 <= len(failed) < len(EXAMPLES)
        assert all(server.url in record.reason for record in failed)
        whole = local()
        assert all(first[name] == whole[name] for name in first if name not in {record.id for record in failed})
        again = len(server.bodies)
        broken.clear()
        resumed = run(victim(server), out=tmp_path, resume=True)
    key = "spec"  # which names the victim's kind too
    assert {n: {k: v for k, v in r.items() if k != key} for n, r in resumed.items()} == {
        n: {k: v for k, v in r.items() if k != key} for n, r in whole.items()
    }
    assert len(server.bodies) > again
    assert set(server.answered.values()) == {1}  # nothing that was answered was asked again


def test_a_text_that_breaks_the_server_fails_alone() -> None:
    for code in (400, 422, 500):

        def answer(number: int, body: Any, code: int = code) -> Any:
            return (code, {}, b"bad text") if "poison" in body["inputs"] else scores(number, body)

        with serving(answer) as server:
            accounts = pay(victim(server, texts_per_request=8, retries=1), [*TEXTS[:5], "poison", *TEXTS[5:]])
        assert [account.failure is None for account in accounts] == [True] * 5 + [False] + [True] * 3
        assert str(code) in str(accounts[5].failure)
        assert server.answered == dict.fromkeys(TEXTS, 1)


def test_one_bad_row_is_that_texts_failure() -> None:
    def answer(number: int, body: Any) -> Any:
        return {"results": [{"scores": [0.5, 0.5] if text != "odd" else [2, 3]} for text in body["inputs"]]}

    with serving(answer) as server:
        good, odd, other = pay(victim(server), ["good", "odd", "other"])
    assert good.failure is None is other.failure
    assert "must sum to one" in str(odd.failure)
    assert len(server.bodies) == 1


def test_a_slow_server_and_many_at_once() -> None:
    def answer(number: int, body: Any) -> Any:
        server.over.wait(0.002)
        return scores(number, body)

    texts = [f"text number {at}" for at in range(1000)]
    with serving(answer) as server:
        target = victim(server, concurrency=16, texts_per_request=1)
        accounts = pay(target, texts)
    assert all(np.allclose(account.replies[text,], letters(text)) for account, text in zip(accounts, texts, strict=True))
    assert server.answered == dict.fromkeys(texts, 1)
    assert target.notes == {"requests": 1000}


def test_labels_only_streams_too() -> None:
    with serving(lambda n, b: scores(n, b) if n != 1 else (404, {}, b"")) as server:
        accounts = pay(labels_only(victim(server, concurrency=1)), TEXTS[:6])
    assert [account.failure is None for account in accounts] == [True] * 3 + [False] * 3
    assert accounts[0].replies[TEXTS[0],].tolist() == int(np.argmax(letters(TEXTS[0])))


# --- when to stop --------------------------------------------------------------------------------------------------------

FATAL: dict[str, tuple[Any, str]] = {
    "401": ((401, {}, b"no key"), "status 401 Said: 'no key'; check the key"),
    "404": ((404, {}, b""), "check the url"),
    "redirect": ((302, {"Location": "https://elsewhere.example/login"}, b""), "sends on: 'https://elsewhere.example/login'"),
    "HTML": (UNREADABLE["HTML"], "the reply is not JSON (text/html): '<html>Please log in</html>'; the url must be that of"),
    "nowhere": (
        {"out": [{"p": 1}]},
        "reply path 'results.*.scores' leads nowhere: at the top there is an object with 'out'",
    ),
    "label": ({"results": [{"scores": ["POS"]}]}, "where scores are expected; if it returns class names, pass gives="),
    "rows": ({"results": []}, "leads to 0 rows for 1 texts; it must give one row per text"),
    "long pause": ((429, {"Retry-After": "7200"}, b""), "asks for a pause of 7200 s, more than longest_wait=300"),
}


@pytest.mark.parametrize("fault", FATAL)
def test_settings_that_cannot_work_end_the_run_at_once(fault: str, tmp_path: Path) -> None:
    reply, message = FATAL[fault]
    with serving(lambda number, body: reply) as server:
        run(victim(server, concurrency=1, texts_per_request=1), out=tmp_path)
    records = read_records(tmp_path / "records.jsonl")
    assert len(server.bodies) == 1
    assert {record.status for record in records} == {"error"}
    assert len(records) == len(EXAMPLES)
    assert all(message in record.reason for record in records)
    assert len({len(record.error or "") for record in records[1:]}) == 1  # tracebacks do not pile up


def test_label_names_that_do_not_match() -> None:
    with serving(lambda n, b: ["POS"] * len(b["inputs"])) as server:
        target = victim(server, reply="", gives="label", labels=["neg", "pos"])
        with pytest.raises(Stopped, match=r"the label 'POS', which is not one of \['neg', 'pos'\]; did you mean 'pos'\?"):
            target([("x",)])
        with pytest.raises(ValueError, match="positive"):
            attack(target, [{"text": "a fine film", "label": "positive"}], "scrimp-labels", guide=None, judge=None)


def test_a_server_that_is_down() -> None:
    with serving() as server:
        pass  # closed again: nobody listens at this address
    target = victim(server, retries=1, concurrency=1)
    accounts = pay(target, TEXTS)
    assert target.endpoint.requests == 6  # three requests of two tries; a group of three is halved, and then it is clear
    assert all("no connection" in str(account.failure) for account in accounts)
    assert "3 requests in a row failed" in str(accounts[-1].failure)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_a_certificate_nobody_vouches_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pem = tmp_path / "own.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=loopback"]
    made += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(tmp_path / "key"), "-out", str(pem)]
    subprocess.run(made, check=True, capture_output=True)
    pem.write_text(pem.read_text() + (tmp_path / "key").read_text())
    with serving(scores, pem) as server:
        with pytest.raises(Stopped, match=r"certificate is not trusted \(self.signed certificate\); .* SSL_CERT_FILE"):
            victim(server, headers={"Authorization": "Bearer ${TEST_KEY}"})([("x",)])
        assert not server.bodies
        monkeypatch.setenv("SSL_CERT_FILE", str(pem))
        assert len(victim(server)([("x",)])) == 1


# --- waiting ---------------------------------------------------------------------------------------------------------------


def test_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    replies = [(429, {"Retry-After": "7"}, b""), (503, {"Retry-After": later}, b""), (500, {"Retry-After": "?"}, b"")]
    with serving(lambda n, b: replies[n] if n < 3 else scores(n, b)) as server:
        target = victim(server, backoff=0.5)
        target.endpoint.pause = slept.append
        target.endpoint.pace = Pace(None, slept.append)
        target([("x",)])
    backoffs, asked = [slept[0], slept[2], slept[4]], [slept[1], slept[3]]
    assert all(0.5 * wait <= took <= 1.5 * wait for wait, took in zip((0.5, 1, 2), backoffs, strict=True))
    assert 6 < asked[0] <= 7
    assert 55 < asked[1] <= 60


def test_pace() -> None:
    now, slept = [0.0], []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    pace = Pace(4, sleep, lambda: now[0])
    for _ in range(3):
        pace.wait()
    pace.wait(8)
    pace.wait()
    assert slept == [0.25, 0.25, 0.25, 2.0]
    for rate in (0, -1, float("nan"), float("inf")):
        with pytest.raises(VictimError, match="a rate is a number above 0"):
            Pace(rate)


# --- money -------------------------------------------------------------------------------------------------------------------


def test_the_cap_ends_the_run_and_a_higher_one_goes_on(tmp_path: Path) -> None:
    def capped(server: Server, cap: float) -> HttpVictim:
        money = {"cap": cap, "per_call": 0.01, "per_1000_characters": 0.1}
        made = endpoint_victim(described(server, money=money, ledger="ledger"), tmp_path)
        assert isinstance(made, HttpVictim)
        return made

    with serving() as server:
        first = capped(server, 0.2)
        run(first, out=tmp_path / "run")
        broke = [record for record in read_records(tmp_path / "run" / "records.jsonl") if record.status == "error"]
        assert broke
        assert all("the money cap is reached" in r.reason and "raise the cap and run" in r.reason for r in broke)
        characters = sum(len(text) for body in server.bodies for text in body["inputs"])
        assert first.notes["money"] == round(0.01 * len(server.bodies) + characters / 1000 * 0.1, 6) <= 0.2
        sent = len(server.bodies)
        run(capped(server, 0.2), out=tmp_path / "run", resume=True)
        assert len(server.bodies) == sent  # the ledger remembers
        resumed = run(capped(server, 100), out=tmp_path / "run", resume=True)
    assert {n: r["status"] for n, r in resumed.items()} == {n: r["status"] for n, r in local().items()}
    assert {n: r["charged"] for n, r in resumed.items()} == {n: r["charged"] for n, r in local().items()}
    assert set(server.answered.values()) == {1}


def test_the_cap_holds_with_many_under_way() -> None:
    with serving() as server:
        target = victim(server, concurrency=16, texts_per_request=1, money={"cap": 0.5, "per_call": 0.01})
        accounts = pay(target, [str(at) for at in range(100)])
    assert len(server.bodies) == sum(account.failure is None for account in accounts) == 50
    with serving(lambda n, b: (500, {}, b"")) as server:
        target = victim(server, money={"cap": 0.5, "per_call": 0.01})
        pay(target, ["a"])
    assert target.notes == {"requests": 4, "money": 0.0}  # errors are not charged for
    with serving(lambda n, b: HANG) as server:
        target = victim(server, timeout=0.05, retries=2, money={"cap": 0.5, "per_call": 0.01})
        pay(target, ["a"])
    assert target.notes == {"requests": 3, "money": 0.03}  # these may have been


# --- nothing is lost ---------------------------------------------------------------------------------------------------------

SCRIPT = """
import sys
from scrimp.tests.test_http import run
from scrimp.victims import load_victim
run(load_victim(sys.argv[1]), out=sys.argv[2], resume=True)
"""


def test_kill_9_between_two_replies(tmp_path: Path) -> None:
    process: list[subprocess.Popen[bytes]] = []

    def answer(number: int, body: Any) -> Any:
        if number in (5, 9, 16):
            process[-1].send_signal(signal.SIGKILL)
            return CLOSE
        return scores(number, body)

    with serving(answer) as server:
        (tmp_path / "victim.json").write_text(json.dumps(described(server, concurrency=1, texts_per_request=2)))
        ends: list[int] = []
        while not ends or ends[-1]:
            command = [sys.executable, "-c", SCRIPT, str(tmp_path / "victim.json"), str(tmp_path / "run")]
            process.append(subprocess.Popen(command))
            ends.append(process[-1].wait())
    assert ends == [-signal.SIGKILL] * 3 + [0]
    assert set(server.answered.values()) == {1}
    ended = {record.id: (record.status, record.charged) for record in read_records(tmp_path / "run" / "records.jsonl")}
    assert ended == {name: (record["status"], record["charged"]) for name, record in local().items()}


def test_an_interrupt_waits_for_what_is_under_way() -> None:
    kept: list[int] = []

    def keep(part: Any) -> None:
        kept.extend(part)
        if len(kept) == 1:
            raise KeyboardInterrupt

    with serving(lambda n, b: scores(n, b) if not server.over.wait(0.01 * n) else CLOSE) as server:
        target = victim(server, concurrency=4, texts_per_request=1)
        with pytest.raises(KeyboardInterrupt):
            target.stream([(text,) for text in TEXTS], keep)
    assert len(kept) >= len(server.answered) >= 1
    assert set(server.answered.values()) == {1}


# --- secrets -----------------------------------------------------------------------------------------------------------------


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_a_key_is_sent_and_never_seen(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    echoes: list[Callable[[Any], Any]] = [
        lambda body: (401, {}, b"x" * 100 + f"Incorrect key {KEY}".encode()),
        lambda body: (400, {}, f"Incorrect key {KEY}".encode()),
        lambda body: (500, {}, KEY.encode()),
        lambda body: (302, {"Location": f"https://x.example/?key={KEY}"}, b""),
        lambda body: (200, {}, f"<html>{KEY}</html>".encode()),
        lambda body: {"error": KEY},
        lambda body: {KEY: 1},
        lambda body: {"results": [{"scores": KEY}] * len(body["inputs"])},
        lambda body: {"results": [{"scores": [{"label": "a", "score": KEY}]}] * len(body["inputs"])},
        lambda body: {"results": [{"scores": [0.5, 0.5]}] * len(body["inputs"])},
    ]
    for at, echo in enumerate(echoes):

        def answer(number: int, body: Any, echo: Callable[[Any], Any] = echo) -> Any:
            return echo(body)

        with serving(answer) as server:
            target = victim(server, retries=0, labels=["a", "b"], headers={"Authorization": "Bearer ${TEST_KEY}"})
            run(target, out=tmp_path / str(at), trace=True)
        assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
        shown = [repr(target), target.name, repr(target.endpoint), repr(vars(target)), str(target.endpoint.stopped)]
        assert KEY not in " ".join(shown)
    assert KEY.encode() not in everything(tmp_path)
    assert KEY[:12].encode() not in everything(tmp_path)  # nor half of it
    assert KEY not in caplog.text


BAD_KEYS: list[tuple[dict[str, Any], str]] = [
    ({"headers": {"Authorization": "Bearer ${NO_SUCH_KEY}"}}, "the environment variable NO_SUCH_KEY is not set; set it to"),
    ({"headers": {"X-Api-Key": KEY}}, "header 'X-Api-Key' holds a key in plain text; put it in an environment variable"),
    ({"url": f"https://x.example/?api_key={KEY}"}, "the url holds a user, a key or a ${NAME}; addresses end up in logs"),
    ({"url": f"https://me:{KEY}@x.example/"}, "the url holds a user, a key or a ${NAME}"),
    ({"url": "http://x.example/", "headers": {"Authorization": "${TEST_KEY}"}}, "without encryption; use https://"),
    ({"headers": {"Authorization": "Bearer ${MULTILINE}"}}, "MULTILINE holds a character that no header may hold"),
]


@pytest.mark.parametrize(("settings", "message"), BAD_KEYS)
def test_keys_in_the_wrong_place(settings: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULTILINE", f"{KEY}\n{KEY}")
    with serving() as server, pytest.raises(VictimError) as caught:
        victim(server, **settings)
    assert message in str(caught.value)
    assert KEY not in str(caught.value)


# --- settings ----------------------------------------------------------------------------------------------------------------

BAD: list[tuple[dict[str, Any], str]] = [
    ({"url": "ftp://x"}, "must start with http:// or https://"),
    ({"concurency": 3}, "no setting is called 'concurency'; did you mean 'concurrency'?"),
    ({"concurrency": 0}, "concurrency=0: it must be a whole number from 1"),
    ({"retries": True}, "retries=True: it must be a whole number from 0"),
    ({"timeout": "long"}, "timeout='long': it must be a number of seconds above 0"),
    ({"per_second": 0}, "a rate is a number above 0"),
    ({"method": "SEND"}, "there are GET, POST, PUT and PATCH"),
    ({"body": {"x": "y"}}, "the body has no place for a text"),
    ({"body": {"x": "{text}", "y": "{texts}"}}, "both a place for one text and one for a list"),
    ({"body": {"x": "{first}"}}, "this one reads {first}"),
    ({"body": ["{text}", "{first} {second}"]}, "this one reads {first}, {second}, {text}"),
    ({"reply": 3}, "reply is 3; it must be a path such as results.*.scores"),
    ({"labels": ["a", 1]}, "class names are texts"),
    ({"gives": "both"}, "gives 'both'; it must be"),
    ({"texts_per_request": 0}, "a request holds at least 1 text"),
    ({"money": {"cap": 1}}, "a cap of 1 needs a price, e.g. per_call"),
    ({"money": {"cap": -1, "per_call": 1}}, "money: cap is -1; it must be a number from 0"),
    ({"money": {"price": 1}}, "money: no setting is called 'price'; there are cap, per_call"),
    (
        {"ledger": "no/such/folder/x"},
        "ledger 'no/such/folder/x' cannot be written (No such file or directory); name another file",
    ),
    ({"headers": {"X": "two\nlines"}}, "one line of plain ASCII"),
]


@pytest.mark.parametrize(("settings", "message"), BAD, ids=[next(iter(case[0])) + str(at) for at, case in enumerate(BAD)])
def test_bad_settings(settings: dict[str, Any], message: str) -> None:
    with serving() as server, pytest.raises(VictimError) as caught:
        victim(server, **settings)
    assert message in str(caught.value)


def test_bad_files(tmp_path: Path) -> None:
    file = tmp_path / "endpoint.json"
    with pytest.raises(VictimError, match=r"cannot read .*endpoint.json: No such file"):
        load_victim(str(file))
    for content, message in (("{", "is not JSON"), ("[]", "holds a list"), ('{"url": "http://x"}', "body, reply missing")):
        file.write_text(content)
        with pytest.raises(VictimError, match=message) as caught:
            load_victim(str(file))
        assert str(file) in str(caught.value)
    (tmp_path / "ledger").write_text("3\nx\n")
    with serving() as server, pytest.raises(VictimError, match=r"is no ledger .* one number a line"):
        endpoint_victim(described(server, ledger="ledger"), tmp_path)


def test_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "texts.tsv").write_text("".join(f"{e.target}\t{e.text[0]}\n" for e in EXAMPLES))
    with serving() as server:
        described_as = described(server, labels=["few", "many"], money={"cap": 9, "per_call": 0.5}, texts_per_request=64)
        (tmp_path / "endpoint.json").write_text(json.dumps(described_as))
        command = [sys.executable, "-m", "scrimp", "attack", "--victim", str(tmp_path / "endpoint.json"), "--data"]
        command += [str(tmp_path / "texts.tsv"), "--recipe", "pwws", "--space", "chars", "--budget", "3", "--no-judge"]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"COLUMNS": "200"}, check=False)
    assert done.returncode == 0, done.stderr
    assert f"endpoint: requests {len(server.bodies)}, money {len(server.bodies) * 0.5}" in done.stdout
    assert max(len(body["inputs"]) for body in server.bodies) >= len(TEXTS)


def test_errors_are_plain_when_asked_directly() -> None:
    with serving(lambda n, b: (422, {}, b"too long")) as server:
        with pytest.raises(RemoteError, match="status 422 Said: 'too long'"):
            victim(server)([("x",)])
        assert not server.answered
