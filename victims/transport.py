"""Requests that may cost money: spaced, retried with backoff, counted against a cap, and no secret in any message."""

from __future__ import annotations

import importlib.util
import json
import math
import queue
import random
import re
import ssl
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from ..attacks.account import Keep, Part
from .limits import SECRET, Money, Pace, Purse, RemoteError, Secrets, Stopped, is_number
from .wrap import VictimError

if TYPE_CHECKING:
    import httpx

AGAIN = {408, 425, 429}  # and every 5xx: the server may answer later
REFUSED = {400, 413, 414, 422}  # this body is at fault, another one may do
DOWN = 3  # requests in a row given up after all their tries: the server is down, so no more is sent
LONGEST_PAUSE = 30.0  # seconds between two tries, unless the server asks for more
CONFIDENTIAL = re.compile(r"authori[sz]ation|cookie|token|secret|password|passwd|(^|[-_])(key|pwd)$|apikey", re.IGNORECASE)


@dataclass
class Endpoint:
    """One URL that takes JSON and gives JSON. Its repr, its errors and what it logs hold no secret."""

    url: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 30.0  # seconds for one try
    retries: int = 5  # tries after the first, on 429, 5xx, no reply or no connection
    backoff: float = 0.5  # seconds before the second try; doubles from try to try
    longest_wait: float = 300.0  # a server that asks for a longer pause than this ends the run
    concurrency: int = 8  # requests under way at once
    per_second: float | None = None  # requests
    money: Money = field(default_factory=Money)
    ledger: Path | None = None
    pause: Callable[[float], Any] | None = field(default=None, repr=False)  # instead of sleeping

    def __post_init__(self) -> None:
        if importlib.util.find_spec("httpx") is None:
            raise ImportError("a victim behind HTTP needs httpx: pip install 'scrimp[http]'")
        self.secrets = Secrets()
        self._check()
        self._sent = {name: self.secrets.expand(value) for name, value in self.headers.items()}
        self._interrupted = threading.Event()
        self.pace = Pace(self.per_second, self.pause or self._interrupted.wait)
        self.purse = Purse(self.money, self.ledger)
        self._client: httpx.Client | None = None
        self._lock, self._failed, self._understood = threading.Lock(), 0, 0
        self.stopped: Stopped | None = None
        self.requests = 0
        self._jitter = random.Random()  # only when to try again; no result depends on it

    def _check(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise VictimError(f"url {self.url!r} is no address; it must start with http:// or https:// and name a host")
        if "@" in parts.netloc or any(CONFIDENTIAL.search(name) for name, _ in parse_qsl(parts.query)) or "${" in self.url:
            raise VictimError(
                "the url holds a user, a key or a ${NAME}; addresses end up in logs, so give the key in a header: "
                '"headers": {"Authorization": "Bearer ${NAME}"}'
            )
        if self.method not in ("GET", "POST", "PUT", "PATCH"):
            raise VictimError(f"method {self.method!r}: there are GET, POST, PUT and PATCH")
        for name, value in self.headers.items():
            if not isinstance(value, str) or not (name + value).isascii() or not (name + value).isprintable():
                raise VictimError(f"header {name!r} must be one line of plain ASCII text")
            if CONFIDENTIAL.search(name) and not SECRET.search(value):
                raise VictimError(
                    f'header {name!r} holds a key in plain text; put it in an environment variable and write "${{NAME}}" here'
                )
        secret = any(SECRET.search(value) for value in self.headers.values())
        if secret and parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
            raise VictimError(f"url {self.url} would carry a key without encryption; use https://")
        for name, least in (("retries", 0), ("concurrency", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise VictimError(f"{name}={value!r}: it must be a whole number from {least}")
        for name in ("timeout", "backoff", "longest_wait"):
            value = getattr(self, name)
            if not (is_number(value) and value > 0):
                raise VictimError(f"{name}={value!r}: it must be a number of seconds above 0")

    # --- one request ----------------------------------------------------------------------------------------------

    def ask(self, body: Any, most: float, cost: Callable[[Any], float], read: Callable[[Any], Any]) -> Any:
        """What `read` makes of the reply to one request. `most` bounds its price, `cost` finds the price in the reply.

        A reply that cannot be read is paid for and not asked again. Before any reply was understood it ends the run,
        because then the settings are the likelier cause.
        """
        last: RemoteError | None = None
        before = self._understood
        for number in range(self.retries + 1):
            if number:
                self._rest(number)
            if self.stopped:
                raise self._stop(self.stopped)
            self._promise(most)
            paid = 0.0
            try:
                self.pace.wait()
                if self._interrupted.is_set():
                    raise RemoteError(f"{self.url}: interrupted before this text was sent")
                paid = most  # until the server says otherwise
                plain = self._json(self._send(body))
                paid = cost(plain)
                answer = read(plain)
            except _Later as fault:
                last, paid = fault, most if fault.billed else 0.0
                continue
            except Stopped as fault:
                paid = 0.0
                raise self._stop(fault) from None
            except RemoteError:
                paid = 0.0
                raise
            except Exception as fault:  # whatever a server can think of
                kind = "" if isinstance(fault, VictimError) else f"the reply cannot be read: {type(fault).__name__}: "
                said = self.secrets.scrub(f"{self.url}: {kind}{fault}")
                if not self._understood:
                    raise self._stop(Stopped(said, billed=True)) from None
                raise RemoteError(said, billed=True) from None
            finally:
                self.purse.pay(paid, most)
            with self._lock:
                self._understood, self._failed = self._understood + 1, 0
            return answer
        assert last is not None
        raise self._give_up(last, alive=self._understood > before) from None

    def _promise(self, most: float) -> None:
        try:
            self.purse.promise(most)
        except Stopped as fault:
            raise self._stop(fault) from None

    def _rest(self, number: int) -> None:
        pause = min(LONGEST_PAUSE, self.backoff * 2 ** (number - 1))
        (self.pause or self._interrupted.wait)(pause * self._jitter.uniform(0.5, 1.5))

    def _stop(self, fault: Stopped) -> Stopped:
        """The first reason, in a fresh exception: one that is raised again and again grows a traceback without end."""
        with self._lock:
            self.stopped = self.stopped or fault
        return Stopped(str(self.stopped), self.stopped.billed)

    def _give_up(self, last: RemoteError, alive: bool) -> RemoteError:
        """`alive`: others were answered meanwhile, so the fault lies with this request."""
        with self._lock:
            self._failed = 0 if alive else self._failed + 1
        said = f"{last} ({self.retries + 1} tries)"
        if self._failed < DOWN:
            return RemoteError(said, last.billed)
        return self._stop(
            Stopped(
                f"{said}; {DOWN} requests in a row failed, so no more is sent: run again with --resume later", last.billed
            )
        )

    def _send(self, body: Any) -> httpx.Response:
        import httpx

        with self._lock:
            self.requests += 1
            if self._client is None:
                limits = httpx.Limits(max_connections=self.concurrency, max_keepalive_connections=self.concurrency)
                self.secrets.hush()
                self._client = httpx.Client(timeout=self.timeout, limits=limits, headers=self._sent)
        try:
            if self.method == "GET":
                response = self._client.get(self.url, params=body)
            else:  # ASCII: a lone surrogate is escaped and not refused
                content, kind = json.dumps(body).encode("ascii"), {"Content-Type": "application/json"}
                response = self._client.request(self.method, self.url, content=content, headers=kind)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as fault:
            if untrusted := _certificate(fault):
                raise Stopped(
                    f"{self.url}: its certificate is not trusted ({untrusted}); if it is yours, set SSL_CERT_FILE to the "
                    "certificate of its authority"
                ) from None
            raise _Later(self._said(f"no connection ({fault or type(fault).__name__})")) from None
        except httpx.TimeoutException:
            raise _Later(self._said(f"no reply within {self.timeout:g} s"), billed=True) from None
        except httpx.TransportError as fault:
            raise _Later(self._said(f"the connection broke ({fault or type(fault).__name__})"), billed=True) from None
        if response.is_success:
            return response
        raise self._fault(response)

    def _fault(self, response: httpx.Response) -> RemoteError:
        code = response.status_code
        said = self._said(f"status {code} {response.reason_phrase}".rstrip() + self.excerpt(response.text))
        if code in AGAIN or code >= 500:
            wait = _retry_after(response.headers.get("Retry-After"))
            if wait > self.longest_wait:
                return Stopped(
                    f"{said}; it asks for a pause of {wait:.0f} s, more than longest_wait={self.longest_wait:g}: run again "
                    "with --resume after that"
                )
            self.pace.hold(wait)
            return _Later(said)
        if code in REFUSED:
            return RemoteError(said)
        hints = {401: "check the key", 403: "check the key and its rights", 402: "check the credit", 404: "check the url"}
        if response.has_redirect_location:
            to = self.excerpt(response.headers["Location"])
            return Stopped(self._said(f"status {code} sends on{to}; redirects are not followed: set the url to it"))
        return Stopped(f"{said}; {hints.get(code, 'check the url and the method')}")

    def _json(self, response: httpx.Response) -> Any:
        try:
            return json.loads(response.content)
        except ValueError:
            kind = response.headers.get("Content-Type", "no content type")
            raise VictimError(
                f"the reply is not JSON ({kind}){self.excerpt(response.text)}; the url must be that of the API, not of a page"
            ) from None

    def excerpt(self, text: str) -> str:
        """The beginning of what a server said. Secrets go first: a cut could leave half of one."""
        flat = " ".join(self.secrets.scrub(text).split())
        return f": {flat[:120]!r}" if flat else ""

    def _said(self, what: str) -> str:
        return self.secrets.scrub(f"{self.url}: {what}")

    # --- many requests ----------------------------------------------------------------------------------------------

    def stream(self, groups: Sequence[Sequence[int]], work: Callable[[Sequence[int]], Part], keep: Keep) -> None:
        """`work` on every group of places, `concurrency` at a time; `keep` is called here with each part as it comes.

        The next request is sent only once an earlier reply is kept, so that a kill loses no more than `concurrency` of
        them. An error that the server did not charge for may come from one text of many: such a group is halved. A
        keyboard interrupt waits for the requests under way and keeps their replies.
        """
        arrived: queue.SimpleQueue[tuple[Sequence[int], Part | Exception]] = queue.SimpleQueue()
        waiting, under_way = deque(groups), 0
        self._interrupted.clear()

        def run(places: Sequence[int]) -> None:
            try:
                arrived.put((places, work(places)))
            except Exception as fault:
                arrived.put((places, fault))

        def take(places: Sequence[int], found: Part | Exception) -> None:
            if not isinstance(found, Exception):
                keep(found)
            elif len(places) > 1 and isinstance(found, RemoteError) and not (found.billed or isinstance(found, Stopped)):
                waiting.extendleft((places[len(places) // 2 :], places[: len(places) // 2]))
            else:
                keep(dict.fromkeys(places, found))

        pool = ThreadPoolExecutor(self.concurrency, "scrimp-http")
        try:
            while waiting or under_way:
                while waiting and under_way < self.concurrency:
                    pool.submit(run, waiting.popleft())
                    under_way += 1
                take(*arrived.get())
                under_way -= 1
        except KeyboardInterrupt:
            self._interrupted.set()
            pool.shutdown(cancel_futures=True)
            while not arrived.empty():
                take(*arrived.get())
            raise
        finally:
            self._interrupted.set()  # nobody sleeps on when this is left by an error
            pool.shutdown(cancel_futures=True)


class _Later(RemoteError):
    """Another try may do."""


def _certificate(fault: BaseException | None) -> str:
    """What is wrong with the server's certificate; empty when the fault is another one."""
    while fault is not None:
        if isinstance(fault, ssl.SSLCertVerificationError):
            return fault.verify_message
        fault = fault.__cause__ or fault.__context__
    return ""


def _retry_after(value: str | None) -> float:
    """Seconds, from a number or a date; 0 when there is nothing to read."""
    if not value:
        return 0.0
    try:
        seconds = float(value)
    except ValueError:
        try:
            when = parsedate_to_datetime(value)
        except ValueError:
            return 0.0
        seconds = (when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else 0.0
