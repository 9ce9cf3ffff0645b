// duly from TypeScript and JavaScript: a client, and workers that pull. No dependency: node 20, deno, bun and edge runtimes.
//
//   import { Worker } from "duly";
//
//   const worker = new Worker({ url: "http://127.0.0.1:8080" });
//   worker.handle("summarize", async (run) => {
//     const pages = await run.step("fetch", () => fetchPages(run.payload.url, run.signal));
//     run.progress({ pages: pages.length });
//     return { summary: await run.step("write", () => write(pages)) };
//   });
//   await worker.run();
//
// What a handler returns is the result of its task; what it throws fails the attempt. snooze, yieldWith, awaitSignal, retryAfter, fail, cancel and done
// make what it throws to say more. When a run has to end its AbortSignal says so, and its methods throw Ended.

const environment = globalThis.process?.env ?? {};
export const version = "0.0.0";
const stopped = "the worker stops";

/** An answer of the server that is no success. Its code is stable: see the reference of the HTTP API. A final one is the same when the call is repeated. */
export class DulyError extends Error {
  constructor(status, code, message) {
    super(message);
    Object.assign(this, { name: "DulyError", status, code, final: status < 500 && ![401, 403, 408, 429].includes(status) });
  }
}

/** The run has to end: let it pass. */
export class Ended extends Error {
  name = "Ended";
}

/** How a run ends, other than by success or by an error. It is thrown. */
export class Outcome extends Error {
  constructor(said) {
    super(JSON.stringify(said));
    Object.assign(this, { name: "Outcome", said });
  }
}

export const snooze = (after) => new Outcome({ snooze: after });
export const yieldWith = (checkpoint, after = "0s") => new Outcome({ yield: after, checkpoint });
export const awaitSignal = (key, { checkpoint = null, ...more } = {}) => new Outcome({ await: { key, ...more }, checkpoint });
export const retryAfter = (after, error = "busy") => new Outcome({ error, retry_after: after });
export const fail = (error) => new Outcome({ error, no_retry: true });
export const cancel = (error) => new Outcome({ error, cancel: true });
export const done = (result, { nextIn } = {}) => new Outcome({ result, ...(nextIn && { next_in: nextIn }) });

const pause = (ms, signal) =>
  new Promise((resolve) => {
    const over = () => (clearTimeout(timer), signal?.removeEventListener("abort", over), resolve());
    const timer = setTimeout(over, ms);
    signal?.addEventListener("abort", over);
  });
const segment = (text) => (/^\.*$/.test(text) ? text.replaceAll(".", "%2E") : encodeURIComponent(text));
const reasonOf = (error) => error.cause?.message ?? error.message;
const json = (value) => JSON.parse(JSON.stringify(value ?? null)); // a copy, and an error for what is no JSON
const at = (later = 0) => new Date(Date.now() + later).toISOString();

/** Something that is waited for. */
class Bell {
  #waiting = new Set();
  #rung = false; // while nothing waited

  ring() {
    this.#rung = !this.#waiting.size;
    for (const wake of this.#waiting) wake(true);
  }

  /** Resolves when it rings, to true, or after a time. */
  wait(ms) {
    return new Promise((resolve) => {
      const wake = (rung) => (clearTimeout(timer), this.#waiting.delete(wake), (this.#rung = false), resolve(rung));
      const timer = setTimeout(wake, this.#rung ? 0 : ms, this.#rung);
      this.#waiting.add(wake);
    });
  }
}

/** Calls of the HTTP API. url and token are those of DULY_SERVER and DULY_TOKEN if left out. */
export class Client {
  constructor({ url, token, timeout = 30_000 } = {}) {
    this.url = new URL(url ?? environment.DULY_SERVER ?? "http://127.0.0.1:8080").href.replace(/\/$/, "");
    this.token = token ?? environment.DULY_TOKEN?.split(",")[0].trim();
    this.timeout = timeout;
  }

  /** One call, unless a signal ends it before the answer begins. It throws DulyError for an answer that is no success, and what fetch throws if there is none. */
  async call(method, path, body, { timeout = this.timeout, signal, headers } = {}) {
    const gone = new AbortController();
    const leave = () => gone.abort(signal.reason);
    signal?.addEventListener("abort", leave);
    const response = await fetch(this.url + path, {
      method,
      headers: { Accept: "application/json", ...(body !== undefined && { "Content-Type": "application/json" }), ...(this.token && { Authorization: `Bearer ${this.token}` }), ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.any([AbortSignal.timeout(timeout), gone.signal]),
    }).finally(() => signal?.removeEventListener("abort", leave));
    const text = await response.text();
    if (response.ok) return text ? JSON.parse(text) : undefined;
    const problem = response.headers.get("Content-Type")?.includes("json") ? JSON.parse(text) : {};
    throw new DulyError(response.status, problem.code ?? "", problem.detail ?? `${response.status} ${response.statusText}`);
  }

  /** Submits a task. With an id it may be sent again. */
  async submit(task, options) {
    return (await this.call("POST", "/v1/tasks", { tasks: [task] }, options)).tasks[0];
  }

  /** The task; with a wait, such as "30s", once it has ended, or as it is after that time. */
  task(agent, id, { wait } = {}) {
    return this.call("GET", Client.path(agent, id) + (wait ? `?wait=${encodeURIComponent(wait)}` : ""), undefined, wait ? { timeout: this.timeout + 300_000 } : {});
  }

  /** The task once it has ended, however long that takes. */
  async wait(agent, id) {
    for (;;) {
      const task = await this.task(agent, id, { wait: "1m" });
      if (["completed", "failed", "cancelled"].includes(task.status)) return task;
    }
  }

  /** Cancels a task; one that runs ends as soon as its worker hears of it. */
  cancel(agent, id, reason) {
    return this.call("POST", Client.path(agent, id) + "/cancel", reason ? { reason } : {});
  }

  /** Tells the tasks of an agent that wait for a key, or a later one. */
  signal(agent, key, payload) {
    return this.call("POST", `/v1/signals/${segment(agent)}/${segment(key)}`, payload === undefined ? {} : { payload });
  }

  static path(agent, id) {
    return `/v1/agents/${segment(agent)}/tasks/${segment(id)}`;
  }
}

const mostOutput = 64 << 10; // bytes of the output of a run that are kept
const room = 400_000; // for what the runs of a call have printed

/** A run of a task that a worker makes. What its server says of it are its fields. */
export class Run {
  #worker;
  #ending = new AbortController();
  #usage = {};
  #named = new Set();
  #refusal; // of news
  #log;
  #tail = ""; // of what it has printed
  #pieces = 0; // since all of the tail was sent
  #printed = 0; // bytes in all
  #stored = 0; // of them, at the server

  constructor(worker, given) {
    Object.assign(this, given);
    this.#worker = worker;
    this.#log = Array.isArray(given.checkpoint?.steps) ? structuredClone(given.checkpoint) : { steps: [] };
    /** For the worker: what is not stored yet, the number of the last sign of life that had news, and the end of that under way. */
    Object.assign(this, { news: {}, number: 0, sending: Promise.resolve() });
  }

  /** Aborted when the run has to end. */
  get signal() {
    return this.#ending.signal;
  }

  /** Throws Ended if the run has to end. All other methods do so too. */
  check() {
    if (this.signal.aborted) throw this.signal.reason;
  }

  /** For the worker: the run has to end. */
  end(why) {
    if (!this.signal.aborted) this.#ending.abort(new Ended(why));
  }

  /** Reports how far the run has come; it is stored with the next sign of life, soon. */
  progress(progress) {
    this.check();
    this.news.progress = json(progress);
    this.#worker.news.ring();
  }

  /** Prints a line to the output of the run: its last 64 KiB are kept, and shown by duly logs within about a second. It never throws and waits for nothing. */
  print(...values) {
    if (!this.prints) return;
    const line = values.join(" ") + "\n";
    this.#tail = (this.#tail + line).slice(-mostOutput);
    this.#printed += new TextEncoder().encode(line).length;
    this.#worker.news.ring();
  }

  /** For the worker: whether the server lacks something that the run has printed. */
  get unsent() {
    return this.#stored < this.#printed;
  }

  /** For the worker: what the run has printed and the server does not have, in at most so many bytes of JSON, which writes some characters by six. */
  output(room, last = false) {
    if (!this.#printed || (!last && !this.unsent)) return {};
    this.#pieces = (this.#pieces + 1) % 32; // a store keeps 64, so all that is kept is sent now and then
    const tail = new TextEncoder().encode(this.#tail);
    const unsent = this.#printed - (this.#pieces ? this.#stored : 0);
    const most = unsent <= 4096 ? unsent : tail.length; // a longer one takes the place of all before it
    let from = tail.length - Math.min(most, tail.length, Math.floor(room / 6), mostOutput);
    while ((tail[from] & 0xc0) === 0x80) from++; // a character that is cut in two is left out
    return { output: { at: this.#printed - tail.length + from, text: new TextDecoder("utf-8", { ignoreBOM: true }).decode(tail.subarray(from)) } };
  }

  /** Submits a task in the name of this run, so that the limits of what tasks submit hold: how deep below their root, and how many. */
  submit(task) {
    this.check();
    return this.#worker.client.submit(task, { headers: { "Duly-Parent": `${encodeURIComponent(this.agent_id)}/${encodeURIComponent(this.id)}` } });
  }

  /** Adds what the run has used, for budgets: run.use({ tokens: 1200 }). */
  use(amounts) {
    this.check();
    for (const [unit, amount] of Object.entries(amounts)) this.#usage[unit] = (this.#usage[unit] ?? 0) + amount;
    this.news.usage = { ...this.#usage };
  }

  /** For the worker: what the run has used in all. */
  get used() {
    return Object.keys(this.#usage).length ? this.#usage : undefined;
  }

  /** Resolves when the checkpoint is stored: the next run of this occurrence finds it, however this one ends. */
  async save(checkpoint) {
    this.check();
    this.#refusal = undefined;
    this.news.checkpoint = json(checkpoint);
    await this.#worker.until(() => this.signal.aborted || !("checkpoint" in this.news), () => this.#worker.keep([this]), "save", true);
    this.check();
    if (this.#refusal) throw fail(`it cannot be stored: ${this.#refusal}`);
  }

  /** For the worker: its sign of life, with its news. */
  sign(room) {
    return { ticket: this.ticket, ...this.news, ...(Object.keys(this.news).length && { number: ++this.number }), ...this.output(room) };
  }

  /** For the worker: the answer to a sign of life. What was stored is no news any more, nor is what would be refused again. */
  answered(sent, { kept, end, reason, error, printed = 0 }) {
    this.#stored = Math.max(this.#stored, printed);
    if (error && kept) return;
    for (const name of Object.keys(this.news)) if (this.news[name] === sent[name]) delete this.news[name];
    if (error) this.#refusal = error;
    else if (!kept) this.end("the run is lost");
    else if (end) this.end(reason ? `${end}: ${reason}` : end);
  }

  /** The idempotency key of a step: the same whenever it is repeated, and of no other. */
  key(step) {
    return `${this.agent_id}/${this.id}/${this.occurrence.replace(/[-:]/g, "")}/${step}`;
  }

  /** Does a step once, or returns what it has returned in an earlier run: the log of steps is the checkpoint of the task. */
  async step(name, work) {
    const known = this.#enter(name);
    if (known) return known.result;
    const begun = Date.now();
    const result = await work();
    this.#did({ name, result, ms: Date.now() - begun });
    await this.save(this.#log);
    return result;
  }

  /** Ends the run, and goes on behind this step after a time, in milliseconds: without a worker. */
  sleep(name, ms) {
    if (this.#enter(name)) return;
    if (!this.#waited(name, "time")) throw yieldWith(this.#pause(name, "time", ms), `${Math.max(Math.round(ms), 1)}ms`);
    this.#did({ name });
  }

  /** Ends the run until the signal TASK/STEP comes, and returns its payload. It throws a TimeoutError if nothing came in time. */
  wait(name, { timeout } = {}) {
    let known = this.#enter(name);
    const key = `${this.id}/${name}`;
    if (!known && this.#waited(name, "signal") && this.heard?.key === key && (this.heard.told || this.heard.timed_out)) {
      known = this.#did({ name, result: this.heard.payload, timed_out: !this.heard.told || undefined });
    }
    if (!known) throw awaitSignal(key, { checkpoint: this.#pause(name, "signal", timeout), timeout: timeout && `${Math.round(timeout)}ms` });
    if (known.timed_out) throw Object.assign(new Error(`step ${name}: nothing came in time`), { name: "TimeoutError" });
    return known.result;
  }

  #enter(name) {
    this.check();
    if (!name || this.#named.has(name)) throw fail(`step ${JSON.stringify(name)} has no name, or comes twice in one run: steps are known by their names`);
    this.#named.add(name);
    return this.#log.steps.find((s) => s.name === name);
  }

  #did(step) {
    this.#log.steps.push(Object.assign(step, { at: at() }));
    if (this.#log.waits?.name === step.name) delete this.#log.waits;
    return step;
  }

  #waited(name, reason) {
    return this.#log.waits?.name === name && this.#log.waits.for === reason;
  }

  #pause(name, reason, ms) {
    this.#log.waits = { name, for: reason, since: at(), ...(ms && { until: at(ms) }) };
    return this.#log;
  }
}

/** Pulls runs of its kinds, makes up to concurrency of them at once, and keeps them. It goes on for ever while the server is away. Times are in milliseconds. */
export class Worker {
  #handlers = new Map();
  #runs = new Map();
  #back = []; // what has ended and is not returned
  #asking = false; // a claim is under way
  #due = 0; // when all runs are to be kept
  #stopping = new AbortController();
  #changed = new Bell(); // a run has ended, or was returned, or the worker stops
  news = new Bell(); // for runs, which have something to store soon

  constructor({ url, token, concurrency = 1, lease = 60_000, grace = 25_000, name, agents, log = console } = {}) {
    this.client = new Client({ url, token });
    this.name = name ?? `${environment.HOSTNAME ?? "worker"}:${globalThis.process?.pid ?? Math.random().toString(36).slice(2)}`;
    Object.assign(this, { concurrency, lease, grace, agents, log });
  }

  /** Registers the handler of a kind. */
  handle(kind, handler) {
    if (this.#handlers.has(kind)) throw new Error(`the kind ${kind} has a handler already`);
    this.#handlers.set(kind, handler);
    return this;
  }

  /** Has run() return. */
  stop() {
    this.#stopping.abort();
    this.#changed.ring();
  }

  /** Works until stop(), SIGTERM or SIGINT. Runs have the grace to end then; those that have not are given back, uncharged. */
  async run() {
    if (!this.#handlers.size) throw new Error("the worker has no handlers");
    const stop = () => this.stop();
    for (const s of ["SIGTERM", "SIGINT"]) globalThis.process?.once?.(s, stop);
    const stops = () => this.#stopping.signal.aborted;
    const over = () => stops() && !this.#runs.size && !this.#asking;
    const beats = this.until(over, () => this.#beat(), "keep its runs");
    this.until(over, () => this.#giveBack(), "return its runs");
    await this.until(stops, () => this.#claim(), "claim");
    await this.#idle(this.grace);
    for (const run of this.#runs.values()) run.end(stopped);
    for (const run of this.#runs.values()) this.#return(run, { release: true });
    await this.#idle(3000);
    this.#runs.clear();
    this.#changed.ring();
    this.news.ring();
    await beats;
    for (const s of ["SIGTERM", "SIGINT"]) globalThis.process?.off?.(s, stop);
  }

  /** Waits until it has no runs, or for a time. */
  async #idle(ms) {
    for (const end = Date.now() + ms; this.#runs.size && Date.now() < end; ) await this.#changed.wait(end - Date.now());
  }

  /** For runs: does something again and again until it is over, with growing pauses while it fails. A strict one throws what says that it will fail again. */
  async until(over, act, what, strict = false) {
    for (let ms = 100; !over(); ) {
      try {
        await act();
        ms = 100;
      } catch (why) {
        if (strict && why.final) throw why;
        if (over()) return;
        this.log.warn(`duly: cannot ${what}, tries again in ${ms} ms: ${reasonOf(why)}`);
        await pause(this.#stopping.signal.aborted ? 100 : ms, this.#stopping.signal);
        ms = Math.min(ms * 2, 15_000);
      }
    }
  }

  #ask(free) {
    return { kinds: [...this.#handlers.keys()], most: Math.min(free, 50), lease: `${this.lease}ms`, worker: this.name, agent_ids: this.agents };
  }

  async #claim() {
    if (this.#asking || this.#back.length || this.#runs.size >= this.concurrency) {
      await this.#changed.wait(1000);
      return;
    }
    const ask = this.#ask(this.concurrency - this.#runs.size);
    let claimed;
    this.#asking = true;
    try {
      claimed = await this.client.call("POST", "/v1/work/claim", { ...ask, wait: "20s" }, { timeout: 50_000, signal: this.#stopping.signal });
    } finally {
      this.#begin(claimed);
    }
  }

  #begin({ runs: given } = { runs: [] }) {
    this.#asking = false;
    for (const one of given) {
      const run = new Run(this, one);
      this.#runs.set(run.ticket, run);
      if (this.#stopping.signal.aborted) this.#return(run, { release: true });
      else this.#make(run);
    }
  }

  async #make(run) {
    let said;
    try {
      said = done(await this.#handlers.get(run.kind)(run)).said;
    } catch (why) {
      if (why instanceof Outcome) said = why.said;
      else if (run.signal.aborted) said = run.signal.reason.message === stopped ? { release: true } : { error: run.signal.reason.message };
      else {
        this.log.warn(`duly: the run of ${run.agent_id} ${run.id} has failed:`, why);
        said = { error: why instanceof Error ? `${why.name}: ${why.message}` : String(why) };
      }
    }
    this.#return(run, said);
  }

  #return(run, said) {
    if (run.said) return;
    run.said = { ...said, usage: run.used, progress: said.release ? undefined : run.news.progress };
    this.#back.push(run);
    this.#changed.ring();
  }

  /** Returns what has ended: what ends while a call is under way goes with the next, and so does the claim for what is free then. */
  async #giveBack() {
    if (!this.#back.length) {
      await this.#changed.wait(1000);
      return;
    }
    const batch = this.#back.splice(0, 50);
    const ask = this.#asking || this.#stopping.signal.aborted ? undefined : this.#ask(this.concurrency - this.#runs.size + batch.length);
    if (ask) this.#asking = true;
    await this.#send(batch, ask);
  }

  /** Makes one call. What is to be sent again is kept, also if it fails. */
  async #send(batch, ask) {
    let answers = batch.map(() => ({ ended: "again" }));
    let claimed;
    try {
      const runs = batch.map((run) => ({ ticket: run.ticket, number: run.number, ...run.said, ...run.output(room / batch.length, true) }));
      const answer = await this.client.call("POST", "/v1/work/return", { runs, claim: ask });
      if (answer.runs.length !== batch.length) throw new Error("the server has not answered for all runs");
      ({ runs: answers, claimed } = answer);
    } catch (why) {
      if (!why.final) throw why;
      const ended = batch.length === 1 ? "refused" : "unknown"; // one of them is at fault: each is sent by itself
      answers = batch.map(() => ({ ended, error: why.message }));
    } finally {
      this.#back.unshift(...batch.filter((run, i) => this.#answered(run, answers[i])));
      if (ask) this.#begin(claimed);
      this.#changed.ring();
    }
  }

  /** Takes the answer to the end of a run, and returns whether that is to be sent again, with others. */
  #answered(run, { ended, error }) {
    if (ended === "again") return true;
    if (ended === "refused" && !run.mended) {
      run.mended = true;
      run.said = { error: `its outcome was refused: ${error}`, no_retry: true };
      return true;
    }
    if (ended === "unknown") {
      // Its part of the store is away: the others do not wait for it.
      pause(1000).then(() => this.#send([run])).catch(() => {});
      return false;
    }
    if (["lost", "refused"].includes(ended)) this.log.warn(`duly: the run of ${run.agent_id} ${run.id} is ${ended}: ${error ?? "another worker may have its task"}`);
    this.#runs.delete(run.ticket);
    return false;
  }

  async #beat() {
    const hurried = await this.news.wait(this.#runs.size ? Math.max(this.#due - Date.now(), 50) : 500);
    const due = Date.now() >= this.#due;
    if (hurried && !due) await pause(500); // what comes at once goes together
    const runs = [...this.#runs.values()].filter((r) => due || r.unsent || Object.keys(r.news).length);
    const calls = [];
    for (let i = 0; i < runs.length; i += 50) calls.push(this.keep(runs.slice(i, i + 50)));
    await Promise.all(calls);
    if (due) this.#due = Date.now() + this.lease / 3;
  }

  /** For runs: sends a sign of life of each, with its news. */
  async keep(runs) {
    const before = runs.map((r) => r.sending);
    let release;
    const turn = new Promise((r) => (release = r));
    for (const run of runs) run.sending = turn;
    await Promise.all(before); // of a run one is under way at a time
    try {
      const sent = runs.map((r) => r.sign(room / runs.length));
      const answers = (await this.client.call("POST", "/v1/work/keep", { runs: sent })).runs;
      runs.forEach((run, i) => run.answered(sent[i], answers[i]));
    } finally {
      release();
    }
  }
}

/** The payload of a webhook that duly has signed, as JSON. It throws if no secret fits, or the message is older than five minutes. */
export async function verify(body, headers, ...secrets) {
  const get = (name) => (headers.get ? headers.get(name) : headers[name]) ?? "";
  const [id, time] = [get("webhook-id"), get("webhook-timestamp")];
  if (!(Math.abs(Date.now() / 1000 - Number(time)) <= 300)) throw new Error("the message has no timestamp, or an old one");
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const message = new TextEncoder().encode(`${id}.${time}.${body}`);
  for (const secret of secrets) {
    const key = await crypto.subtle.importKey("raw", bytes(secret.replace(/^whsec_/, "")), { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
    for (const signature of get("webhook-signature").split(" ")) {
      if (signature.startsWith("v1,") && (await crypto.subtle.verify("HMAC", key, bytes(signature.slice(3)), message))) return body ? JSON.parse(body) : undefined;
    }
  }
  throw new Error("the message is not signed with any of the secrets");
}
