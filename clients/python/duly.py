"""duly from Python: a client, and workers that pull. The standard library alone, Python 3.9 and later.

    import duly

    worker = duly.Worker("http://127.0.0.1:8080")

    @worker.handles("summarize")
    def summarize(run):
        pages = run.step("fetch", lambda: fetch(run.payload["url"]))
        run.progress({"pages": len(pages)})
        return {"summary": run.step("write", lambda: write(pages))}

    worker.run()

What a handler returns is the result of its task; an exception fails the attempt. Snooze, Yield, Await, RetryAfter, Fail and Cancel are raised
to say more. A handler that is a coroutine function runs in an event loop of its own, and is cancelled when its run has to end.
"""
from __future__ import annotations

import asyncio
import base64
import hmac
import http.client
import inspect
import json
import logging
import os
import select
import signal as signals
import socket
import threading
import time
import urllib.parse
from datetime import datetime, timedelta, timezone
from typing import Any, Callable, Dict, List, Optional, Tuple

__version__ = "0.0.0"
__all__ = ["Await", "Cancel", "Client", "Done", "Ended", "Error", "Fail", "RetryAfter", "Run", "Snooze", "Worker", "Yield", "verify"]
log = logging.getLogger("duly")


class Error(Exception):
    """An answer of the server that is no success. code is stable: see the reference of the HTTP API."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Ended(Exception):
    """The run has to end: it was cancelled or is lost, its time or its budget is used up, or the worker stops. Let it pass."""


class Outcome(Exception):
    """How a run ends, other than by success or by an error."""

    def __init__(self, **said: Any) -> None:
        super().__init__(", ".join(f"{k}={v}" for k, v in said.items()))
        self.said = said


class Snooze(Outcome):
    """The task runs again after a time, such as "10m", uncharged."""

    def __init__(self, after: str) -> None:
        super().__init__(snooze=after)


class Yield(Outcome):
    """The same, and the next run finds a checkpoint."""

    def __init__(self, checkpoint: Any, after: str = "0s") -> None:
        super().__init__(**{"yield": after, "checkpoint": checkpoint})


class Await(Outcome):
    """The task waits for a signal, without a worker; the next run has it as run.heard. Besides the timeout it may say on_timeout, from_, question and answer."""

    def __init__(self, key: str, checkpoint: Any = None, timeout: Optional[str] = None, **more: Any) -> None:
        asks = {"key": key, **({"timeout": timeout} if timeout else {}), **{name.rstrip("_"): value for name, value in more.items()}}
        super().__init__(**{"await": asks, "checkpoint": checkpoint})


class RetryAfter(Outcome):
    """The attempt has failed for a reason that passes: it is tried again after a time, uncharged."""

    def __init__(self, after: str, error: str = "busy") -> None:
        super().__init__(error=error, retry_after=after)


class Fail(Outcome):
    """The task has failed, and no retry would help."""

    def __init__(self, error: str) -> None:
        super().__init__(error=error, no_retry=True)


class Cancel(Outcome):
    """The task is cancelled by its own handler."""

    def __init__(self, error: str) -> None:
        super().__init__(error=error, cancel=True)


class Done(Outcome):
    """Success, and the task's interval from now on. Raise it, or return the result alone."""

    def __init__(self, result: Any = None, next_in: Optional[str] = None) -> None:
        super().__init__(result=result, **({"next_in": next_in} if next_in else {}))


class Client:
    """Calls of the HTTP API. url and token are those of DULY_SERVER and DULY_TOKEN if left out. It may be used by several threads."""

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, timeout: float = 30) -> None:
        self._at = urllib.parse.urlsplit(url or os.environ.get("DULY_SERVER") or "http://127.0.0.1:8080")
        if self._at.scheme not in ("http", "https") or not self._at.hostname:
            raise ValueError("the URL of duly must be such as http://127.0.0.1:8080, not " + urllib.parse.urlunsplit(self._at))
        self._token = token or os.environ.get("DULY_TOKEN", "").split(",")[0].strip()
        self._timeout, self._own = timeout, threading.local()

    def call(self, method: str, path: str, body: Any = None, timeout: Optional[float] = None, **more: str) -> Any:
        """One call, with more headers. It raises Error for an answer that is no success, and OSError or http.client.HTTPException if there is none."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json", "User-Agent": "duly-python/" + __version__, **more}
        if data is not None:
            headers["Content-Type"] = "application/json"
        if self._token:
            headers["Authorization"] = "Bearer " + self._token
        connection = self._connection(timeout or self._timeout)
        try:
            connection.request(method, self._at.path.rstrip("/") + path, data, headers)
            response = connection.getresponse()
            text = response.read()
        except BaseException:
            self.close()
            raise
        if response.status >= 300:
            try:
                problem = json.loads(text)
            except ValueError:
                problem = {}
            raise Error(response.status, problem.get("code", ""), problem.get("detail") or f"{response.status} {response.reason}")
        return json.loads(text) if text else None

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        connection = getattr(self._own, "connection", None)
        if connection and connection.sock and select.select([connection.sock], [], [], 0)[0]:
            self.close()  # the server has closed it since
            connection = None
        if connection is None:
            kind = http.client.HTTPSConnection if self._at.scheme == "https" else http.client.HTTPConnection
            connection = self._own.connection = kind(self._at.hostname, self._at.port, timeout=timeout)
        connection.timeout = timeout
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        return connection

    def close(self) -> None:
        """Closes the connection of this thread."""
        connection, self._own.connection = getattr(self._own, "connection", None), None
        if connection is not None:
            connection.close()

    def submit(self, agent: str, kind: str, payload: Any = None, **fields: Any) -> Dict[str, Any]:
        """Submits a task; fields are those of the API, such as id, delay, cron, zone or unique_key. With an id it may be sent again."""
        return self._submit({"agent_id": agent, "kind": kind, "payload": payload, **fields})

    def _submit(self, task: Dict[str, Any], **more: str) -> Dict[str, Any]:
        if task["payload"] is None:
            del task["payload"]
        return self.call("POST", "/v1/tasks", {"tasks": [task]}, **more)["tasks"][0]

    def task(self, agent: str, id: str, wait: Optional[str] = None) -> Dict[str, Any]:
        """The task; with a wait, such as "30s", once it has ended, or as it is after that time."""
        query = "?wait=" + urllib.parse.quote(wait) if wait else ""
        return self.call("GET", self._path(agent, id) + query, timeout=self._timeout + 300 if wait else None)

    def wait(self, agent: str, id: str) -> Dict[str, Any]:
        """The task once it has ended, however long that takes."""
        while True:
            task = self.task(agent, id, wait="1m")
            if task["status"] in ("completed", "failed", "cancelled"):
                return task

    def cancel(self, agent: str, id: str, reason: str = "") -> Dict[str, Any]:
        """Cancels a task; one that runs ends as soon as its worker hears of it."""
        return self.call("POST", self._path(agent, id) + "/cancel", {"reason": reason} if reason else {})

    def signal(self, agent: str, key: str, payload: Any = None) -> Dict[str, Any]:
        """Tells the tasks of an agent that wait for a key, or a later one."""
        return self.call("POST", f"/v1/signals/{_segment(agent)}/{_segment(key)}", {} if payload is None else {"payload": payload})

    @staticmethod
    def _path(agent: str, id: str) -> str:
        return f"/v1/agents/{_segment(agent)}/tasks/{_segment(id)}"


def _segment(text: str) -> str:
    return text.replace(".", "%2E") if text.strip(".") == "" else urllib.parse.quote(text, safe="")


def verify(body: bytes, headers: Any, *secrets: str) -> Any:
    """The payload of a webhook that duly has signed, as JSON. It raises ValueError if no secret fits, or the message is older than five minutes."""
    given = {name.lower(): value for name, value in headers.items()}
    at = given.get("webhook-timestamp", "")
    if not at.isdigit() or abs(time.time() - int(at)) > 300:
        raise ValueError("the message has no timestamp, or an old one")
    message = f"{given.get('webhook-id', '')}.{at}.".encode() + body
    for secret in secrets:
        key = base64.b64decode(secret[6:] if secret.startswith("whsec_") else secret)
        good = "v1," + base64.b64encode(hmac.new(key, message, "sha256").digest()).decode()
        if any(hmac.compare_digest(good, signature) for signature in given.get("webhook-signature", "").split()):
            return json.loads(body) if body else None
    raise ValueError("the message is not signed with any of the secrets")


class Run:
    """A run of a task that a worker makes. Everything that its server says of it is an attribute: payload, checkpoint, heard, attempt, fence..."""

    def __init__(self, worker: Worker, given: Dict[str, Any]) -> None:
        self._worker, self._given, self._lock = worker, given, threading.RLock()
        self._news: Dict[str, Any] = {}
        self._number, self._sending = 0, threading.Lock()
        self._usage, self._named = {}, set()
        self._returned = self._refused = False
        self._on_end: Optional[Callable[[], None]] = None
        checkpoint = given.get("checkpoint")
        self._log = checkpoint if isinstance(checkpoint, dict) and isinstance(checkpoint.get("steps"), list) else {"steps": []}
        self.ended: Optional[str] = None
        """Why the run has to end; None while it goes on."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._given.get(name)

    def __repr__(self) -> str:
        return f"<run of {self.agent_id} {self.id}, {self.kind}, attempt {self.attempt}>"

    def check(self) -> None:
        """Raises Ended if the run has to end. All other methods do so too."""
        if self.ended:
            raise Ended(self.ended)

    def progress(self, progress: Any) -> None:
        """Reports how far the run has come; it is stored with the next sign of life, soon."""
        self.check()
        with self._lock:
            self._news["progress"] = progress
        self._worker._beat.set()

    def use(self, **amounts: float) -> None:
        """Adds what the run has used, for budgets: run.use(tokens=1200)."""
        self.check()
        with self._lock:
            for unit, amount in amounts.items():
                self._usage[unit] = self._usage.get(unit, 0) + amount
            self._news["usage"] = dict(self._usage)

    def save(self, checkpoint: Any) -> None:
        """Stores a checkpoint before it returns: the next run of this occurrence finds it, however this one ends."""
        self.check()
        with self._lock:
            self._news["checkpoint"] = checkpoint
        self._worker._keep([self], until=lambda: "checkpoint" not in self._news)
        self.check()

    def submit(self, agent: str, kind: str, payload: Any = None, **fields: Any) -> Dict[str, Any]:
        """Submits a task in the name of this run, so that the limits of what tasks submit hold: how deep below their root, and how many."""
        self.check()
        parent = _segment(self.agent_id) + "/" + _segment(self.id)
        return self._worker.client._submit({"agent_id": agent, "kind": kind, "payload": payload, **fields}, **{"Duly-Parent": parent})

    def key(self, step: str) -> str:
        """The idempotency key of a step: the same whenever it is repeated, and of no other."""
        at = datetime.fromisoformat(self.occurrence.replace("Z", "+00:00"))
        return f"{self.agent_id}/{self.id}/{at:%Y%m%dT%H%M%S}.{at.microsecond // 1000:03d}Z/{step}"

    def step(self, name: str, do: Callable[[], Any]) -> Any:
        """Does a step once, or returns what it has returned in an earlier run: the log of steps is the checkpoint of the task."""
        done = self._enter(name)
        if done is not None:
            return done.get("result")
        begun = time.monotonic()
        result = do()
        self._did(name, result=result, ms=int((time.monotonic() - begun) * 1000))
        self.save(self._log)
        return result

    def sleep(self, name: str, seconds: float) -> None:
        """Ends the run, and goes on behind this step after a time: without a worker."""
        if self._enter(name) is not None:
            return
        if self._waited(name, "time"):
            self._did(name)
            return
        raise Yield(self._pause(name, "time", seconds), f"{max(int(seconds * 1000), 1)}ms")

    def wait(self, name: str, timeout: Optional[float] = None) -> Any:
        """Ends the run until the signal TASK/STEP comes, and returns its payload. It raises TimeoutError if nothing came in time."""
        done = self._enter(name)
        key = f"{self.id}/{name}"
        if done is None and self._waited(name, "signal"):
            heard = self.heard or {}
            if heard.get("key") == key and (heard.get("told") or heard.get("timed_out")):
                done = self._did(name, result=heard.get("payload"), timed_out=not heard.get("told"))
        if done is None:
            raise Await(key, self._pause(name, "signal", timeout), f"{int(timeout * 1000)}ms" if timeout else None)
        if done.get("timed_out"):
            raise TimeoutError(f"step {name}: nothing came in time")
        return done.get("result")

    def _enter(self, name: str) -> Optional[Dict[str, Any]]:
        self.check()
        if not name or name in self._named:
            raise Fail(f"step {name!r} has no name, or comes twice in one run: steps are known by their names")
        self._named.add(name)
        return next((s for s in self._log["steps"] if s["name"] == name), None)

    def _did(self, name: str, **more: Any) -> Dict[str, Any]:
        step = {"name": name, "at": _now(), **{k: v for k, v in more.items() if v is not None and v is not False}}
        self._log["steps"].append(step)
        if self._log.get("waits", {}).get("name") == name:
            del self._log["waits"]
        return step

    def _waited(self, name: str, reason: str) -> bool:
        waits = self._log.get("waits") or {}
        return waits.get("name") == name and waits.get("for") == reason

    def _pause(self, name: str, reason: str, seconds: Optional[float]) -> Dict[str, Any]:
        until = {} if seconds is None else {"until": _now(seconds)}
        self._log["waits"] = {"name": name, "for": reason, "since": _now(), **until}
        return self._log

    def _end(self, why: str) -> None:
        if self.ended is None:
            self.ended = why
            if self._on_end:
                self._on_end()


def _now(later: float = 0) -> str:
    return (datetime.now(timezone.utc) + timedelta(seconds=later)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Worker:
    """Pulls runs of its kinds, makes up to concurrency of them at once, and keeps them. It goes on for ever while the server is away."""

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, *, concurrency: int = 1, lease: float = 60, name: Optional[str] = None,
                 grace: float = 25, agents: Optional[List[str]] = None) -> None:
        self.client = Client(url, token)
        self.concurrency, self.lease, self.grace, self.agents = concurrency, lease, grace, agents
        self.name = name or f"{socket.gethostname()}:{os.getpid()}"
        self._handlers: Dict[str, Callable[[Run], Any]] = {}
        self._runs: Dict[str, Run] = {}
        self._back: List[Tuple[Run, Dict[str, Any]]] = []  # what has ended and is not returned
        self._dry, self._asking = True, False  # the last claim had less than it asked for, so that one is to wait; one is under way
        self._polling: Optional[http.client.HTTPConnection] = None
        self._room, self._beat, self._stopping = threading.Condition(), threading.Event(), threading.Event()

    def handles(self, kind: str) -> Callable[[Callable[[Run], Any]], Callable[[Run], Any]]:
        """Registers the handler of a kind: @worker.handles("summarize")."""
        def register(handler: Callable[[Run], Any]) -> Callable[[Run], Any]:
            if kind in self._handlers:
                raise ValueError(f"the kind {kind} has a handler already")
            self._handlers[kind] = handler
            return handler
        return register

    def run(self) -> None:
        """Works until stop() or, in the main thread, SIGTERM or SIGINT. Runs have the grace to end then; those that have not are given back, uncharged."""
        if not self._handlers:
            raise ValueError("the worker has no handlers")
        if threading.current_thread() is threading.main_thread():
            for number in (signals.SIGTERM, signals.SIGINT):
                signals.signal(number, lambda *_: self._stopping.set())
        claims, beats, returns = (threading.Thread(target=t, daemon=True) for t in (self._claims, self._beats, self._returns))
        claims.start(), beats.start(), returns.start()
        log.info("works on %s as %s", ", ".join(sorted(self._handlers)), self.name)
        while not self._stopping.wait(1):  # a signal is seen between waits
            pass
        end, polling = time.monotonic() + self.grace, self._polling and self._polling.sock
        if polling:
            polling.shutdown(socket.SHUT_RDWR)  # the server lends nothing to who has gone
        claims.join(5)
        with self._room:
            while self._runs and time.monotonic() < end:
                self._room.wait(max(min(end - time.monotonic(), 0.5), 0.01))
            left = list(self._runs.values())
        for run in left:
            run._end("the worker stops")
        for run in left:
            self._return(run, {"release": True})
        returns.join(3)

    def stop(self) -> None:
        """Has run() return."""
        self._stopping.set()

    def _ask(self, free: int) -> Dict[str, Any]:
        ask = {"kinds": sorted(self._handlers), "most": min(free, 50), "lease": f"{int(self.lease * 1000)}ms", "worker": self.name}
        return ask if self.agents is None else {**ask, "agent_ids": self.agents}

    def _claims(self) -> None:
        pause = 0.1
        while not self._stopping.is_set():
            with self._room:
                while not self._stopping.is_set() and (self._asking or self._back or self._runs and not self._dry or len(self._runs) >= self.concurrency):
                    self._room.wait(1)
                if self._stopping.is_set():
                    return
                ask, self._asking = self._ask(self.concurrency - len(self._runs)), True
            try:
                self._polling = self.client._connection(50)
                given = self.client.call("POST", "/v1/work/claim", {**ask, "wait": "20s"}, timeout=50)["runs"]
                pause = 0.1
            except Exception as why:  # also an answer that is none: a worker goes on for ever
                if self._stopping.is_set():
                    return
                log.log(logging.ERROR if isinstance(why, Error) and why.status < 500 else logging.WARNING, "cannot claim, tries again in %.1f s: %s", pause, why)
                self._asking = False
                self._stopping.wait(pause)
                pause = min(pause * 2, 15)
                continue
            self._begin(ask, given)

    def _begin(self, ask: Dict[str, Any], given: List[Dict[str, Any]]) -> None:
        runs = [Run(self, one) for one in given]
        with self._room:
            self._dry, self._asking = len(runs) < ask["most"], False
            self._runs.update((run.ticket, run) for run in runs)
        for run in runs:
            if self._stopping.is_set():
                self._return(run, {"release": True})
            else:
                threading.Thread(target=self._make, args=(run,), daemon=True).start()

    def _make(self, run: Run) -> None:
        try:
            handler = self._handlers[run.kind]
            said: Dict[str, Any] = {"result": self._coroutine(handler, run) if inspect.iscoroutinefunction(handler) else handler(run)}
            json.dumps(said)
        except Outcome as outcome:
            said = dict(outcome.said)
        except (Ended, asyncio.CancelledError):
            said = {"release": True} if run.ended == "the worker stops" else {"error": run.ended or "it has ended by itself"}
        except BaseException as why:  # also SystemExit: a thread has nobody else to tell
            log.warning("%s has failed", run, exc_info=True)
            said = {"error": f"{type(why).__name__}: {why}"}
        if "release" not in said:
            with run._lock:
                said.update({k: v for k, v in run._news.items() if k == "progress"})
        self._return(run, said)
        self.client.close()

    @staticmethod
    def _coroutine(handler: Callable[[Run], Any], run: Run) -> Any:
        async def main() -> Any:
            loop, task = asyncio.get_running_loop(), asyncio.current_task()
            run._on_end = lambda: loop.call_soon_threadsafe(task.cancel)
            if run.ended:
                task.cancel()
            try:
                return await handler(run)
            finally:
                run._on_end = None
        return asyncio.run(main())

    def _return(self, run: Run, said: Dict[str, Any]) -> None:
        try:
            json.dumps(said)
        except (TypeError, ValueError) as why:
            said = {"error": f"its outcome is no JSON: {why}", "no_retry": True}
        with run._lock:
            if run._usage:
                said["usage"] = dict(run._usage)
        with self._room:
            if not run._returned:
                run._returned = True
                self._back.append((run, said))
            self._room.notify_all()

    def _returns(self) -> None:
        """Returns what has ended: what ends while a call is under way goes with the next, and so does the claim for what is free then."""
        pause, most = 0.1, 50
        while True:
            with self._room:
                while not self._back:
                    if self._stopping.is_set() and not self._runs:
                        return
                    most = 50
                    self._room.wait(1)
                batch, self._back = self._back[:most], self._back[most:]
                ask = None if self._asking or self._stopping.is_set() else self._ask(self.concurrency - len(self._runs) + len(batch))
                self._asking = self._asking or ask is not None
            failed, refused = self._send(batch, ask)
            if refused:
                most = 1 if len(batch) > 1 else 50  # one of them is at fault
            if failed:
                log.warning("cannot return %s, tries again in %.1f s: %s", batch[0][0], pause, failed)
                time.sleep(pause)
            pause = min(pause * 2, 15) if failed else 0.1

    def _send(self, batch: List[Tuple[Run, Dict[str, Any]]], ask: Optional[Dict[str, Any]] = None) -> Tuple[str, bool]:
        """Makes one call. It returns why that has failed, and whether it was refused as a whole; what is to be sent again is kept."""
        sent = [{"ticket": run.ticket, "number": run._number, **said} for run, said in batch]
        given, again, failed, refused = [], [], "", False
        try:
            answer = self.client.call("POST", "/v1/work/return", {"runs": sent, **({"claim": ask} if ask else {})})
            answers, given = answer["runs"], answer.get("claimed", {}).get("runs", [])
            if len(answers) != len(batch):
                raise ValueError(f"the server has answered for {len(answers)} of {len(batch)} runs")
        except Exception as why:
            refused = isinstance(why, Error) and why.status < 500 and why.status != 429
            failed = "" if refused else str(why) or type(why).__name__
            answers = [{"ended": "refused" if refused and len(batch) == 1 else "again", "error": str(why)}] * len(batch)
        with self._room:
            for (run, said), one in zip(batch, answers):
                if one["ended"] == "again":
                    again.append((run, said))
                elif one["ended"] == "unknown":  # its part of the store is away: the others do not wait for it
                    threading.Thread(target=self._later, args=(run, said), daemon=True).start()
                elif one["ended"] == "refused" and not run._refused:
                    run._refused = True
                    again.append((run, {"error": "its outcome was refused: " + one.get("error", ""), "no_retry": True}))
                else:
                    if one["ended"] in ("lost", "refused"):
                        log.warning("%s is %s: %s", run, one["ended"], one.get("error", "its lease was over, and another worker may have the task"))
                    self._runs.pop(run.ticket, None)
            self._back = again + self._back
            self._dry = self._dry or not ask
            self._room.notify_all()
        if ask:
            self._begin(ask, given)
        return failed, refused

    def _later(self, run: Run, said: Dict[str, Any]) -> None:
        time.sleep(1)
        self._send([(run, said)])
        self.client.close()

    def _beats(self) -> None:
        last = time.monotonic()
        while not (self._stopping.is_set() and not self._runs):
            self._beat.wait(max(self.lease / 3 - (time.monotonic() - last), 0.05) if self._runs else 0.5)
            due = time.monotonic() - last >= self.lease / 3
            if self._beat.is_set() and not due:
                time.sleep(0.5)  # what comes at once goes together
            self._beat.clear()
            runs = [r for r in list(self._runs.values()) if due or r._news]
            last = time.monotonic() if due else last
            for first in range(0, len(runs), 50):
                self._keep(runs[first:first + 50])

    def _keep(self, runs: List[Run], until: Optional[Callable[[], bool]] = None) -> None:
        """Sends signs of life: once, or until something is stored or the run has ended."""
        pause = 0.1
        while True:
            ready = [r for r in runs if r._sending.acquire(blocking=until is not None)]
            try:
                sent = []
                for run in ready:
                    with run._lock:
                        news = dict(run._news)
                        if news:
                            run._number += 1
                        sent.append({"ticket": run.ticket, **news, **({"number": run._number} if news else {})})
                try:
                    answers = self.client.call("POST", "/v1/work/keep", {"runs": sent})["runs"] if sent else []
                except (OSError, http.client.HTTPException, ValueError, Error) as why:
                    log.warning("cannot keep its runs: %s", why)
                    if isinstance(why, Error) and why.status < 500 and why.status != 429 and until:
                        raise
                    answers = []
                for run, one, answer in zip(ready, sent, answers):
                    if answer.get("error"):
                        if until and answer["kept"] is False:
                            raise Fail("it cannot be stored: " + answer["error"])
                        continue
                    with run._lock:
                        run._news = {k: v for k, v in run._news.items() if k not in one or one[k] != v}
                    if not answer["kept"]:
                        run._end("the run is lost")
                    elif answer.get("end"):
                        run._end(answer["end"] + (": " + answer["reason"] if answer.get("reason") else ""))
            finally:
                for run in ready:
                    run._sending.release()
            if until is None or until() or runs[0].ended:
                return
            time.sleep(pause)
            pause = min(pause * 2, 5)
