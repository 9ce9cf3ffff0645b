"""A run in steps, as a program of `exec`: what is done is saved, and is not done again.

    handlers:
      story: { exec: ["python3", "story.py"] }
"""
import json
import os
import sys

task = json.load(sys.stdin)
log = task.get("checkpoint") or {}
say, hear = os.fdopen(3, "w"), os.fdopen(4)


def step(name, do):
    """Does something once: its result is stored before the next step begins."""
    if name not in log:
        log[name] = do()
        print("duly-save:", json.dumps(log), file=say, flush=True)
        answer = hear.readline().strip()
        if answer != "saved":
            sys.exit(f"{name} is done, and duly answers: {answer}")
    return log[name]


plan = step("plan", lambda: ["the start of " + task["payload"], "the middle", "the end"])
parts = [step(f"part {n}", lambda: "written " + title) for n, title in enumerate(plan)]
if task["attempt"] == 1:
    sys.exit("the model is overloaded")  # the next attempt goes on from here
print(json.dumps(step("summary", lambda: "; ".join(parts))))
