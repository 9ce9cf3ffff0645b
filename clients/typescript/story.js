// The worker of the conformance story: what the tests of all clients have their workers do.
import { appendFileSync, existsSync } from "node:fs";
import { Worker, fail, retryAfter, snooze, yieldWith } from "./duly.js";

const env = process.env;
const worker = new Worker({ concurrency: 5, lease: 2000, grace: 500, name: env.STORY_NAME });
const write = (line) => (appendFileSync(env.STORY_FILE, line + "\n"), line);
const pause = (ms, signal) => new Promise((resolve, reject) => (setTimeout(resolve, ms), signal?.addEventListener("abort", () => reject(signal.reason))));

if (env.STORY_SIGNALS) process.once("SIGTERM", () => write("signalled"));
worker.handle("echo", (run) => run.payload);
worker.handle("dies", async (run) => {
  write(`dies ${run.fence}`);
  if (run.crashes === 0) {
    await run.save({ half: true });
    process.exit(9);
  }
  return run.checkpoint;
});
worker.handle("steps", async (run) => {
  const plan = await run.step("plan", () => [write("plan"), run.key("plan")]);
  run.sleep("nap", 200);
  const answer = run.wait("approval", { timeout: 30_000 });
  await run.step("end", () => write("end"));
  return { plan, answer };
});
worker.handle("slow", async (run) => {
  run.use({ tokens: 3 });
  for (let n = 0; n < 1000; n++) {
    run.progress({ n });
    await pause(50);
  }
});
worker.handle("async", (run) => pause(60_000, run.signal));
worker.handle("frozen", async (run) => {
  write(`frozen ${run.fence} ${worker.name}`);
  await pause(1000 * Number(env.STORY_FREEZE ?? 0));
  return worker.name;
});
worker.handle("prints", async (run) => {
  run.print("begun", "é".repeat(10), "\x01\r");
  while (!existsSync(env.STORY_FILE + ".go")) await pause(50);
  for (let n = 0; n < run.payload; n++) run.print("line", n, "€");
  run.print("\udc80 is no character");
});
worker.handle("outcomes", (run) => {
  if (run.call === 1) throw snooze("100ms");
  if (run.call === 2) throw yieldWith({ call: 2 });
  if (run.call === 3) throw retryAfter("100ms", "busy");
  if (run.attempt === 1) throw new Error("the first attempt");
  throw fail(`for good, after ${JSON.stringify(run.checkpoint)}`);
});
worker.handle("spends", async (run) => {
  for (let n = 0; n < 20; n++) {
    run.use({ tokens: 60 });
    await run.save(n);
  }
});
worker.handle("breeds", (run) => run.submit({ agent_id: "ada", kind: "breeds", payload: run.payload + 1, id: `${run.payload + 1} é/${run.id.slice(0, 1)}` }).then(() => null));
worker.handle("nonsense", () => {
  throw snooze("some time");
});
worker.handle("odd", async (run) => {
  run.progress({ no: 10n });
  await pause(1000);
});
worker.handle("large", (run) => run.save("x".repeat(300 << 10)));

await worker.run();
write("stopped");
process.exit(0);
