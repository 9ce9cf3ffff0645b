// The handlers of duly.yaml.
import { readFileSync, writeSync } from "node:fs";

const task = JSON.parse(readFileSync(0));
switch (process.argv[2]) {
  case "digest":
    writeSync(3, 'duly-progress: "half"\n');
    await new Promise((done) => setTimeout(done, task.payload.topic === "slow" || task.payload.topic === "killed" ? 3000 : 200));
    console.log(JSON.stringify({ about: task.payload.topic }));
    break;
  case "refund":
    if (task.heard) console.log(JSON.stringify({ heard: task.heard.payload.decision }));
    else writeSync(3, 'duly-await: {"key": "approval", "timeout": "1h", "from": "approval", "question": "Refund 40 EUR to Bob?"} {}\n');
    break;
  default:
    console.error("boom");
    process.exit(3);
}
