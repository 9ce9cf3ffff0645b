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
import contextlib
import hmac
import http.client
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
from typing import Any, Callable, Coroutine, Dict, cast

__version__ = "0.0.0"
__all__ = ["Await", "Cancel", "Client", "Done", "Ended", "Error", "Fail", "RetryAfter", "Run", "Snooze", "Worker", "Yield", "verify"]
log = logging.getLogger("duly")
Fields = Dict[str, Any]
Handler = Callable[["Run"], Any]
_STOPS = "the worker stops"


class Error(Exception):
    """An answer of the server that is no success. code is stable: see the reference of the HTTP API. A final one is the same when the call is repeated."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.final = status, code, status < 500 and status not in (401, 403, 408, 429)



class Ended(Exception):
    """The run has to end: it was cancelled or is lost, its time or its budget is used up, or the worker stops. Let it pass."""


class Outcome(Exception):
    """How a run ends, other than by success or by an error. The functions below make what is raised."""

    def __init__(self, **said: Any) -> None:
        super().__init__(json.dumps(said))
        self.said = said


def Snooze(after: str) -> Outcome:
    """The task runs again after a time, such as "10m", uncharged."""
    return Outcome(snooze=after)


def Yield(checkpoint: Any, after: str = "0s") -> Outcome:
    """The same, and the next run finds a checkpoint."""
    return Outcome(**{"yield": after, "checkpoint": checkpoint})


def Await(key: str, checkpoint: Any = None, timeout: str | None = None, **more: Any) -> Outcome:
    """The task waits for a signal, without a worker; the next run has it as run.heard. Besides the timeout it may say on_timeout, from_, question and answer."""
    return Outcome(**{"await": {"key": key, **_given(timeout=timeout), **{name.rstrip("_"): value for name, value in more.items()}}, "checkpoint": checkpoint})


def RetryAfter(after: str, error: str = "busy") -> Outcome:
    """The attempt has failed for a reason that passes: it is tried again after a time, uncharged."""
    return Outcome(error=error, retry_after=after)


def Fail(error: str) -> Outcome:
    """The task has failed, and no retry would help."""
    return Outcome(error=error, no_retry=True)


def Cancel(error: str) -> Outcome:
    """The task is cancelled by its own handler."""
    return Outcome(error=error, cancel=True)


def Done(result: Any = None, next_in: str | None = None) -> Outcome:
    """Success, and the task's interval from now on. Raise it, or return the result alone."""
    return Outcome(result=result, **_given(next_in=next_in))


def _given(**fields: Any) -> Fields:
    return {name: value for name, value in fields.items() if value is not None}


class Client:
    """Calls of the HTTP API. url and token are those of DULY_SERVER and DULY_TOKEN if left out. It may be used by several threads."""

    _used: http.client.HTTPConnection | None = None  # last

    def __init__(self, url: str | None = None, token: str | None = None, timeout: float = 30) -> None:
        self._at = urllib.parse.urlsplit(url or os.environ.get("DULY_SERVER") or "http://127.0.0.1:8080")
        if self._at.scheme not in ("http", "https") or not self._at.hostname:
            raise ValueError("the URL of duly must be such as http://127.0.0.1:8080, not " + urllib.parse.urlunsplit(self._at))
        token = token or os.environ.get("DULY_TOKEN", "").split(",")[0].strip()
        self._headers = {"Accept": "application/json", "User-Agent": "duly-python/" + __version__, **_given(Authorization="Bearer " + token if token else None)}
        self._sort = http.client.HTTPSConnection if self._at.scheme == "https" else http.client.HTTPConnection
        self._idle: list[http.client.HTTPConnection] = []
        self._timeout, self._lock = timeout, threading.Lock()

    def call(self, method: str, path: str, body: Any = None, timeout: float | None = None, **more: str) -> Any:
        """One call, with more headers. It raises Error for an answer that is no success, and OSError or http.client.HTTPException if there is none."""
        data, sort = (None, {}) if body is None else (json.dumps(body), {"Content-Type": "application/json"})
        connection = self._used = self._connection(timeout or self._timeout)
        try:
            connection.request(method, self._at.path.rstrip("/") + path, data, {**self._headers, **sort, **more})
            response = connection.getresponse()
            text = response.read()
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        if response.status < 300:
            return json.loads(text) if text else None
        problem = json.loads(text) if "json" in response.headers.get("Content-Type", "") else {}
        raise Error(response.status, problem.get("code", ""), problem.get("detail") or f"{response.status} {response.reason}")

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        """An idle connection, or another. It connects when it is used, if it is closed."""
        with self._lock:
            connection = self._idle.pop() if self._idle else self._sort(self._at.hostname or "", self._at.port)
        connection.timeout = timeout
        if connection.sock and select.select([connection.sock], [], [], 0)[0]:
            connection.close()  # as the server has since
        elif connection.sock:
            connection.sock.settimeout(timeout)
        return connection

    def close(self) -> None:
        """Closes the connections that are idle."""
        for connection in self._idle:
            connection.close()

    def submit(self, agent: str, kind: str, payload: Any = None, headers: dict[str, str] | None = None, **fields: Any) -> Fields:
        """Submits a task; fields are those of the API, such as id, delay, cron, zone or unique_key. With an id it may be sent again."""
        task = {"agent_id": agent, "kind": kind, **_given(payload=payload), **fields}
        return self.call("POST", "/v1/tasks", {"tasks": [task]}, **(headers or {}))["tasks"][0]

    def task(self, agent: str, id: str, wait: str | None = None) -> Fields:
        """The task; with a wait, such as "30s", once it has ended, or as it is after that time."""
        query = "?" + urllib.parse.urlencode(_given(wait=wait))
        return self.call("GET", _path(agent, id) + query, timeout=self._timeout + 300 if wait else None)

    def wait(self, agent: str, id: str) -> Fields:
        """The task once it has ended, however long that takes."""
        while True:
            task = self.task(agent, id, wait="1m")
            if task["status"] in ("completed", "failed", "cancelled"):
                return task

    def cancel(self, agent: str, id: str, reason: str = "") -> Fields:
        """Cancels a task; one that runs ends as soon as its worker hears of it."""
        return self.call("POST", _path(agent, id) + "/cancel", _given(reason=reason or None))

    def signal(self, agent: str, key: str, payload: Any = None) -> Fields:
        """Tells the tasks of an agent that wait for a key, or a later one."""
        return self.call("POST", f"/v1/signals/{_segment(agent)}/{_segment(key)}", _given(payload=payload))


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


_OUTPUT = 64 << 10  # bytes of the output of a run that are kept
_ROOM = 400_000  # bytes of JSON for what the runs of a call have printed


class Run:
    """A run of a task that a worker makes. Everything that its server says of it is an attribute: payload, checkpoint, heard, attempt, fence..."""

    ended: str | None = None
    """Why the run has to end; None while it goes on."""

    _number = 0  # of the last sign of life that had news
    _refusal = ""  # of news
    _said: Fields | None = None  # how it has ended
    _mended = False  # that was refused, and is returned as a failure
    _tail = b""  # of what it has printed
    _printed = _stored = _pieces = 0  # bytes in all, those that the server has, and pieces since all of the tail was sent

    def __init__(self, worker: Worker, given: Fields) -> None:
        self._worker, self._given, self._lock, self._sending = worker, given, threading.RLock(), threading.Lock()
        self._news: Fields = {}  # what is not stored yet
        self._usage: dict[str, float] = {}
        self._on_end: Callable[[], Any] = lambda: None
        checkpoint = given.get("checkpoint")
        self._log = checkpoint if isinstance(checkpoint, dict) and isinstance(checkpoint.get("steps"), list) else {"steps": []}
        self._steps = {step["name"]: step for step in self._log["steps"]}
        self._named: set[str] = set()

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
        self._report(progress=progress)
        self._worker._news.set()

    def use(self, **amounts: float) -> None:
        """Adds what the run has used, for budgets: run.use(tokens=1200)."""
        with self._lock:
            self._report(usage={**self._usage, **{unit: self._usage.get(unit, 0) + amount for unit, amount in amounts.items()}})
            self._usage = self._news["usage"]

    def save(self, checkpoint: Any) -> None:
        """Stores a checkpoint before it returns: the next run of this occurrence finds it, however this one ends."""
        self._refusal = ""
        self._report(checkpoint=checkpoint)
        self._worker._until(lambda: self.ended or "checkpoint" not in self._news, lambda: self._worker._keep([self]), "save", strict=True)
        self.check()
        if self._refusal:
            raise Fail("it cannot be stored: " + self._refusal)

    def print(self, *values: Any, sep: str = " ", end: str = "\n") -> None:
        """Prints to the output of the run: its last 64 KiB are kept, and shown by duly logs within about a second. It never fails and waits for nothing."""
        if self.prints:
            data = (sep.join(map(str, values)) + end).encode(errors="replace")
            with self._lock:
                self._tail, self._printed = (self._tail + data)[-_OUTPUT:], self._printed + len(data)
            self._worker._news.set()

    def submit(self, agent: str, kind: str, payload: Any = None, **fields: Any) -> Fields:
        """Submits a task in the name of this run, so that the limits of what tasks submit hold: how deep below their root, and how many."""
        self.check()
        return self._worker.client.submit(agent, kind, payload, {"Duly-Parent": f"{_segment(self.agent_id)}/{_segment(self.id)}"}, **fields)

    def key(self, step: str) -> str:
        """The idempotency key of a step: the same whenever it is repeated, and of no other."""
        return f"{self.agent_id}/{self.id}/{self.occurrence.replace('-', '').replace(':', '')}/{step}"

    def step(self, name: str, do: Callable[[], Any]) -> Any:
        """Does a step once, or returns what it has returned in an earlier run: the log of steps is the checkpoint of the task."""
        done = self._enter(name)
        if done is None:
            begun = time.monotonic()
            done = self._did(name, result=do(), ms=int((time.monotonic() - begun) * 1000))
            self.save(self._log)
        return done.get("result")

    def sleep(self, name: str, seconds: float) -> None:
        """Ends the run, and goes on behind this step after a time: without a worker."""
        if self._enter(name) is None:
            if not self._waited(name, "time"):
                raise Yield(self._pause(name, "time", seconds), f"{max(int(seconds * 1000), 1)}ms")
            self._did(name)

    def wait(self, name: str, timeout: float | None = None) -> Any:
        """Ends the run until the signal TASK/STEP comes, and returns its payload. It raises TimeoutError if nothing came in time."""
        done, key, heard = self._enter(name), f"{self.id}/{name}", self.heard or {}
        if done is None and self._waited(name, "signal") and heard.get("key") == key and (heard.get("told") or heard.get("timed_out")):
            done = self._did(name, result=heard.get("payload"), timed_out=not heard.get("told") or None)
        if done is None:
            raise Await(key, self._pause(name, "signal", timeout), f"{int(timeout * 1000)}ms" if timeout else None)
        if done.get("timed_out"):
            raise TimeoutError(f"step {name}: nothing came in time")
        return done.get("result")

    def _enter(self, name: str) -> Fields | None:
        self.check()
        if not name or name in self._named:
            raise Fail(f"step {name!r} has no name, or comes twice in one run: steps are known by their names")
        self._named.add(name)
        return self._steps.get(name)

    def _did(self, name: str, **more: Any) -> Fields:
        step = {"name": name, "at": _now(), **_given(**more)}
        self._log["steps"].append(step)
        if self._waited(name, "time", "signal"):
            del self._log["waits"]
        return step

    def _waited(self, name: str, *reasons: str) -> bool:
        waits = self._log.get("waits") or {}
        return waits.get("name") == name and waits.get("for") in reasons

    def _pause(self, name: str, reason: str, seconds: float | None) -> Fields:
        return {**self._log, "waits": {"name": name, "for": reason, "since": _now(), **_given(until=None if seconds is None else _now(seconds))}}

    def _report(self, **news: Any) -> None:
        self.check()
        json.dumps(news)  # what is no JSON fails here, and keeps no other run from its signs of life
        with self._lock:
            self._news.update(news)

    def _sign(self, room: int) -> Fields:
        """The sign of life of the run, with its news."""
        with self._lock:
            self._number += bool(self._news)
            return {"ticket": self.ticket, **self._news, **({"number": self._number} if self._news else {}), **self._output(room)}

    def _output(self, room: int, last: bool = False) -> Fields:
        """What the run has printed and the server does not have, in at most so many bytes of JSON, which writes some characters by six."""
        with self._lock:
            if not self._printed or not last and self._stored == self._printed:
                return {}
            self._pieces = (self._pieces + 1) % 32  # a store keeps 64, so all that is kept is sent now and then
            new = self._printed - (self._stored if self._pieces else 0)
            new = min(new if new <= 4096 else self._printed, room // 6)  # a longer one takes the place of all before it
            text = self._tail[-new:].decode(errors="ignore") if new else ""  # a character that is cut in two is left out
            return {"output": {"at": self._printed - len(text.encode()), "text": text}}

    def _heard(self, sent: Fields, answer: Fields) -> None:
        """Takes the answer to a sign of life: what was stored is no news any more, nor is what would be refused again."""
        error, kept = answer.get("error"), answer["kept"]
        with self._lock:
            self._stored = max(self._stored, answer.get("printed", 0))
            self._news = {k: v for k, v in self._news.items() if error and kept or k not in sent or sent[k] != v}
        if error and not kept:
            self._refusal = error
            log.warning("what %s reports is not stored: %s", self, error)
        elif not kept:
            self._end("the run is lost")
        elif "end" in answer:
            self._end(": ".join(filter(None, (answer["end"], answer.get("reason")))))

    def _end(self, why: str) -> None:
        with self._lock:
            if self.ended is None:
                self.ended = why
                with contextlib.suppress(RuntimeError):  # the loop is over
                    self._on_end()


def _now(later: float = 0) -> str:
    return (datetime.now(timezone.utc) + timedelta(seconds=later)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Worker:
    """Pulls runs of its kinds, makes up to concurrency of them at once, and keeps them. It goes on for ever while the server is away."""

    _asking = False  # a claim is under way
    _due = 0.0  # when all runs are to be kept

    def __init__(self, url: str | None = None, token: str | None = None, *, concurrency: int = 1, lease: float = 60, name: str | None = None,
                 grace: float = 25, agents: list[str] | None = None) -> None:
        self.client, self._polls = Client(url, token), Client(url, token)
        self.concurrency, self.lease, self.grace, self.agents = concurrency, lease, grace, agents
        self.name = name or f"{socket.gethostname()}:{os.getpid()}"
        self._handlers: dict[str, Handler] = {}
        self._runs: dict[str, Run] = {}
        self._back: list[Run] = []  # what has ended and is not returned
        self._room, self._news, self._stopping = threading.Condition(), threading.Event(), threading.Event()

    def handles(self, kind: str) -> Callable[[Handler], Handler]:
        """Registers the handler of a kind: @worker.handles("summarize")."""
        if kind in self._handlers:
            raise ValueError(f"the kind {kind} has a handler already")
        return lambda handler: self._handlers.setdefault(kind, handler)

    def run(self) -> None:
        """Works until stop() or, in the main thread, SIGTERM or SIGINT. Runs have the grace to end then; those that have not are given back, uncharged."""
        if not self._handlers:
            raise ValueError("the worker has no handlers")
        if threading.current_thread() is threading.main_thread():
            for number in (signals.SIGTERM, signals.SIGINT):
                signals.signal(number, lambda *_: self._stopping.set())
        gone = lambda: self._stopping.is_set() and not self._asking and not self._runs
        loops = {"claim": (self._stopping.is_set, self._claim), "keep its runs": (gone, self._beat), "return its runs": (gone, self._give_back)}
        claims, _, returns = threads = [threading.Thread(target=self._until, args=(*loop, what), daemon=True) for what, loop in loops.items()]
        for thread in threads:
            thread.start()
        log.info("works on %s as %s", ", ".join(sorted(self._handlers)), self.name)
        while not self._stopping.is_set():
            time.sleep(0.1)  # a signal must not come while this thread holds the lock of an event
        end, polling = time.monotonic() + self.grace, self._polls._used and self._polls._used.sock
        if polling:
            socket.socket.shutdown(polling, socket.SHUT_WR)  # the server lends nothing to who has gone; what is on the way is given back
        claims.join(5)
        with self._room:
            self._room.wait_for(lambda: not self._runs, end - time.monotonic())
        for run in list(self._runs.values()):
            run._end(_STOPS)
            self._return(run, {"release": True})
        returns.join(3)

    def stop(self) -> None:
        """Has run() return."""
        self._stopping.set()

    def _until(self, over: Callable[[], Any], do: Callable[[], Any], what: str, strict: bool = False) -> None:
        """Does something again and again until it is over, with growing pauses while it fails. A strict one raises what says that it will fail again."""
        pause = 0.1
        while not over():
            try:
                do()
                pause = 0.1
            except Exception as why:  # also an answer that is none: a worker goes on for ever
                final = isinstance(why, Error) and why.final
                if strict and final:
                    raise
                if not over():
                    log.log(logging.ERROR if final else logging.WARNING, "cannot %s, tries again in %.1f s: %s", what, pause, why)
                    time.sleep(0.1 if self._stopping.wait(pause) else 0)
                    pause = min(pause * 2, 15)

    def _ask(self, free: int) -> Fields:
        return {"kinds": sorted(self._handlers), "most": min(free, 50), "lease": f"{int(self.lease * 1000)}ms", "worker": self.name, **_given(agent_ids=self.agents)}

    def _claim(self) -> None:
        with self._room:
            if self._asking or self._back or len(self._runs) >= self.concurrency:
                self._room.wait(1)
                return
            ask, self._asking = self._ask(self.concurrency - len(self._runs)), True
        given: list[Fields] = []
        try:
            given = self._polls.call("POST", "/v1/work/claim", {**ask, "wait": "20s"}, timeout=50)["runs"]
        finally:
            self._begin(given)

    def _begin(self, given: list[Fields]) -> None:
        runs = [Run(self, one) for one in given]
        with self._room:
            self._runs.update((run.ticket, run) for run in runs)
            self._asking = False
            self._room.notify_all()
        for run in runs:
            if self._stopping.is_set():
                self._return(run, {"release": True})
            else:
                threading.Thread(target=self._make, args=(run,), daemon=True).start()

    def _make(self, run: Run) -> None:
        try:
            result = self._handlers[run.kind](run)
            said = Done(asyncio.run(self._coroutine(result, run)) if asyncio.iscoroutine(result) else result).said
        except Outcome as outcome:
            said = outcome.said
        except (Ended, asyncio.CancelledError):
            said = {"release": True} if run.ended == _STOPS else {"error": run.ended or "it has ended by itself"}
        except BaseException as why:  # also SystemExit: it would end the thread alone
            log.warning("%s has failed", run, exc_info=True)
            said = {"error": f"{type(why).__name__}: {why}"}
        self._return(run, said)

    @staticmethod
    async def _coroutine(made: Coroutine[Any, Any, Any], run: Run) -> Any:
        loop, task = asyncio.get_running_loop(), cast("asyncio.Task[Any]", asyncio.current_task())
        with run._lock:
            run._on_end = lambda: loop.call_soon_threadsafe(task.cancel)
            if run.ended:
                task.cancel()
        return await made

    def _return(self, run: Run, said: Fields) -> None:
        last = _given(usage=run._usage or None, progress=None if "release" in said else run._news.get("progress"))
        with self._room:
            if run._said is None:
                run._said = {**said, **last}
                self._back.append(run)
            self._room.notify_all()

    def _give_back(self) -> None:
        """Returns what has ended: what ends while a call is under way goes with the next, and so does the claim for what is free then."""
        with self._room:
            if not self._back:
                self._room.wait(1)
                return
            batch, self._back = self._back[:50], self._back[50:]
            ask = None if self._asking or self._stopping.is_set() else self._ask(self.concurrency - len(self._runs) + len(batch))
            self._asking = self._asking or ask is not None
        self._send(batch, ask)

    def _send(self, batch: list[Run], ask: Fields | None = None) -> None:
        """Makes one call. What is to be sent again is kept, also if it fails."""
        answer: Fields = {"runs": [{"ended": "again"}] * len(batch)}
        try:
            sent = [{"ticket": run.ticket, "number": run._number, **(run._said or {}), **run._output(_ROOM // len(batch), last=True)} for run in batch]
            got = self.client.call("POST", "/v1/work/return", {"runs": sent, **_given(claim=ask)})
            if len(got["runs"]) != len(batch):
                raise ValueError(f"the server has answered for {len(got['runs'])} of {len(batch)} runs")
            answer = got
        except Error as why:
            if not why.final:
                raise
            ended = "refused" if len(batch) == 1 else "unknown"  # one of them is at fault: each is sent by itself
            answer["runs"] = [{"ended": ended, "error": str(why)}] * len(batch)
        finally:
            with self._room:
                self._back = [run for run, one in zip(batch, answer["runs"]) if self._answered(run, **one)] + self._back
                self._room.notify_all()
            if ask:
                self._begin(answer.get("claimed", {}).get("runs", []))

    def _answered(self, run: Run, ended: str, error: str = "", **_: Any) -> bool:
        """Takes the answer to the end of a run, and returns whether that is to be sent again, with others."""
        if ended == "refused" and not run._mended:
            run._mended, run._said, ended = True, {"error": "its outcome was refused: " + error, "no_retry": True}, "again"
        if ended == "unknown":  # its part of the store is away: the others do not wait for it
            threading.Thread(target=self._later, args=(run,), daemon=True).start()
        elif ended != "again":
            if ended in ("lost", "refused"):
                log.warning("%s is %s: %s", run, ended, error or "its lease was over, and another worker may have the task")
            self._runs.pop(run.ticket, None)
        return ended == "again"

    def _later(self, run: Run) -> None:
        time.sleep(1)
        with contextlib.suppress(Exception):  # it goes with the others then
            self._send([run])

    def _beat(self) -> None:
        self._news.wait(max(self._due - time.monotonic(), 0.05) if self._runs else 0.5)
        due = time.monotonic() >= self._due
        time.sleep(0.5 if self._news.is_set() and not due else 0)  # what comes at once goes together
        self._news.clear()
        runs = [r for r in list(self._runs.values()) if due or r._news or r._stored < r._printed]
        with contextlib.ExitStack() as calls:  # each is made, also if another fails
            for first in range(0, len(runs), 50):
                calls.callback(self._keep, runs[first:first + 50])
        self._due = time.monotonic() + self.lease / 3 if due else self._due

    def _keep(self, runs: list[Run]) -> None:
        """Sends a sign of life of each run, with its news."""
        ready = [r for r in runs if r._sending.acquire(blocking=len(runs) == 1)]
        try:
            sent = [r._sign(_ROOM // len(ready)) for r in ready]
            answers = self.client.call("POST", "/v1/work/keep", {"runs": sent})["runs"] if sent else []
            for run, one, answer in zip(ready, sent, answers):
                run._heard(one, answer)
        finally:
            for run in ready:
                run._sending.release()
