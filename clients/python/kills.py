"""The worker that is killed again and again: it says which run it begins, and takes a moment for it."""
import os
import time

import duly

worker = duly.Worker(concurrency=4, lease=3, name="w" + os.environ["NUMBER"])


@worker.handles("work")
def work(run):
    if run.checkpoint is None:
        with open(os.environ["STARTS"], "a") as f:
            f.write(f"{run.id} {run.fence} {os.environ['NUMBER']}\n")
        run.save("half")
    time.sleep(0.02)
    return run.fence


worker.run()
