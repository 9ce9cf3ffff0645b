/** An answer of the server that is no success. Its code is stable: see the reference of the HTTP API. A final one is the same when the call is repeated. */
export class DulyError extends Error {
  readonly status: number;
  readonly code: string;
  readonly final: boolean;
}

/** The run has to end: let it pass. */
export class Ended extends Error {}

/** How a run ends, other than by success or by an error. It is thrown. */
export class Outcome extends Error {
  readonly said: Record<string, unknown>;
}

/** Again after a time such as "10m", uncharged. */
export function snooze(after: string): Outcome;
/** The same, and the next run finds a checkpoint. */
export function yieldWith(checkpoint: unknown, after?: string): Outcome;
/** Wait for a signal, without a worker; the next run has it as run.heard. */
export function awaitSignal(
  key: string,
  options?: { checkpoint?: unknown; timeout?: string; on_timeout?: "run" | "fail" | "cancel"; from?: "approval"; question?: string; answer?: object },
): Outcome;
/** The attempt has failed for a reason that passes: again after a time, uncharged. */
export function retryAfter(after: string, error?: string): Outcome;
/** The task has failed, and no retry would help. */
export function fail(error: string): Outcome;
/** The task is cancelled by its own handler. */
export function cancel(error: string): Outcome;
/** Success, and the interval of the task from now on. */
export function done(result?: unknown, options?: { nextIn?: string }): Outcome;

/** The version of this client, which is that of duly. */
export const version: string;

export type Status = "waiting" | "in_progress" | "completed" | "failed" | "cancelled";

/** A task as it is submitted; further fields are those of the API, such as every, zone or labels. */
export interface NewTask {
  agent_id: string;
  kind: string;
  id?: string;
  payload?: unknown;
  delay?: string;
  cron?: string;
  zone?: string;
  [field: string]: unknown;
}

/** A task as it is; further fields are those of the API. */
export interface Task {
  id: string;
  agent_id: string;
  kind: string;
  status: Status;
  result?: any;
  progress?: any;
  [field: string]: any;
}

export interface ClientOptions {
  /** DULY_SERVER if left out, or http://127.0.0.1:8080. */
  url?: string;
  /** DULY_TOKEN if left out. */
  token?: string;
  /** Of a call, in milliseconds. */
  timeout?: number;
}

/** Calls of the HTTP API. */
export class Client {
  constructor(options?: ClientOptions);
  call<A = any>(method: string, path: string, body?: unknown, options?: { timeout?: number; signal?: AbortSignal; headers?: Record<string, string> }): Promise<A>;
  submit(task: NewTask, options?: { timeout?: number; signal?: AbortSignal; headers?: Record<string, string> }): Promise<Task & { created: boolean }>;
  task(agent: string, id: string, options?: { wait?: string }): Promise<Task>;
  wait(agent: string, id: string): Promise<Task>;
  cancel(agent: string, id: string, reason?: string): Promise<Task>;
  signal(agent: string, key: string, payload?: unknown): Promise<{ resumed: number; kept: boolean }>;
}

/** A run of a task that a worker makes. */
export interface Run<P = any> {
  readonly id: string;
  readonly agent_id: string;
  readonly kind: string;
  readonly payload: P;
  readonly checkpoint?: any;
  readonly heard?: { key: string; told: boolean; timed_out: boolean; payload?: any; by?: string };
  readonly attempt: number;
  readonly call: number;
  readonly crashes: number;
  readonly fence: number;
  readonly due_at: string;
  readonly occurrence: string;
  readonly labels?: Record<string, string>;
  readonly values?: Record<string, string>;
  readonly timeout?: string;
  readonly traceparent?: string;
  readonly user_id?: string;
  /** Aborted when the run has to end. */
  readonly signal: AbortSignal;
  /** Throws Ended if the run has to end. All other methods do so too. */
  check(): void;
  /** Reports how far the run has come; it is stored with the next sign of life, soon. */
  progress(progress: unknown): void;
  /** Prints a line to the output of the run: its last 64 KiB are kept, and shown by duly logs within about a second. It never throws and waits for nothing. */
  print(...values: unknown[]): void;
  /** Submits a task in the name of this run, so that the limits of what tasks submit hold: how deep below their root, and how many. */
  submit(task: NewTask): Promise<Task & { created: boolean }>;
  /** Adds what the run has used, for budgets: run.use({ tokens: 1200 }). */
  use(amounts: Record<string, number>): void;
  /** Resolves when the checkpoint is stored: the next run of this occurrence finds it, however this one ends. */
  save(checkpoint: unknown): Promise<void>;
  /** The idempotency key of a step. */
  key(step: string): string;
  /** Does a step once, or returns what it has returned in an earlier run. */
  step<T>(name: string, work: () => T | Promise<T>): Promise<T>;
  /** Ends the run, and goes on behind this step after a time, in milliseconds. */
  sleep(name: string, ms: number): void;
  /** Ends the run until the signal TASK/STEP comes, and returns its payload. It throws a TimeoutError if nothing came in time. */
  wait<T = any>(name: string, options?: { timeout?: number }): T;
}

export interface WorkerOptions extends ClientOptions {
  /** Runs at once; 1 if left out. */
  concurrency?: number;
  /** How long a run is held without a sign of life, in milliseconds; a minute if left out. */
  lease?: number;
  /** How long runs have to end when the worker stops, in milliseconds. */
  grace?: number;
  /** Its name, in the history of tasks and among the processes. */
  name?: string;
  /** Whose tasks; all that the token covers if left out. */
  agents?: string[];
  log?: Pick<Console, "warn">;
}

/** Pulls runs of its kinds, makes up to concurrency of them at once, and keeps them. */
export class Worker {
  constructor(options?: WorkerOptions);
  readonly client: Client;
  readonly name: string;
  handle<P = any>(kind: string, handler: (run: Run<P>) => unknown): this;
  run(): Promise<void>;
  stop(): void;
}

/** The payload of a webhook that duly has signed, as JSON. It throws if no secret fits, or the message is older than five minutes. */
export function verify(body: string, headers: Headers | Record<string, string | undefined>, ...secrets: string[]): Promise<any>;
