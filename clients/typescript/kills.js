// The worker that is killed again and again: it says which run it begins, and takes a moment for it.
import { appendFileSync } from "node:fs";
import { Worker } from "./duly.js";

const { NUMBER, STARTS } = process.env;
const worker = new Worker({ concurrency: 4, lease: 3000, name: "w" + NUMBER });
worker.handle("work", async (run) => {
  if (run.checkpoint === undefined) {
    appendFileSync(STARTS, `${run.id} ${run.fence} ${NUMBER}\n`);
    await run.save("half");
  }
  await new Promise((r) => setTimeout(r, 20));
  return run.fence;
});
await worker.run();
process.exit(0);
