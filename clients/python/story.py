"""The worker of the conformance story: what the tests of all clients have their workers do."""
import logging
import os
import sys
import time

import duly

worker = duly.Worker(concurrency=5, lease=2, grace=0.5, name=os.environ["STORY_NAME"])
written = os.environ["STORY_FILE"]


def write(line):
    with open(written, "a") as f:
        f.write(line + "\n")
    return line


@worker.handles("echo")
def echo(run):
    return run.payload


@worker.handles("dies")
def dies(run):
    write(f"dies {run.fence}")
    if run.crashes == 0:
        run.save({"half": True})
        os._exit(9)
    return run.checkpoint


@worker.handles("steps")
def steps(run):
    plan = run.step("plan", lambda: [write("plan"), run.key("plan")])
    run.sleep("nap", 0.2)
    try:
        answer = run.wait("approval", 30)
    except TimeoutError:
        answer = None
    run.step("end", lambda: write("end"))
    return {"plan": plan, "answer": answer}


@worker.handles("slow")
def slow(run):
    run.use(tokens=3)
    for n in range(1000):
        run.progress({"n": n})
        time.sleep(0.05)


@worker.handles("async")
async def slow_async(run):
    import asyncio
    await asyncio.sleep(60)


@worker.handles("frozen")
def frozen(run):
    write(f"frozen {run.fence} {worker.name}")
    time.sleep(float(os.environ.get("STORY_FREEZE", "0")))
    return worker.name


@worker.handles("prints")
def prints(run):
    run.print("begun", "é" * 10, chr(1), end="\r\n")
    while not os.path.exists(written + ".go"):
        time.sleep(0.05)
    for n in range(run.payload):
        run.print("line", n, "€")
    run.print("\udc80 is no character")


@worker.handles("outcomes")
def outcomes(run):
    if run.call == 1:
        raise duly.Snooze("100ms")
    if run.call == 2:
        raise duly.Yield({"call": 2})
    if run.call == 3:
        raise duly.RetryAfter("100ms", "busy")
    if run.attempt == 1:
        raise ValueError("the first attempt")
    raise duly.Fail(f"for good, after {run.checkpoint}")


@worker.handles("spends")
def spends(run):
    for n in range(20):
        run.use(tokens=60)
        run.save(n)


@worker.handles("breeds")
def breeds(run):
    run.submit("ada", "breeds", run.payload + 1, id=f"{run.payload + 1} é/{run.id[:1]}")


@worker.handles("nonsense")
def nonsense(run):
    raise duly.Snooze("some time")


@worker.handles("large")
def large(run):
    run.save("x" * (300 << 10))


@worker.handles("odd")
def odd(run):
    run.progress({"no": object()})
    time.sleep(1)


logging.basicConfig(stream=sys.stderr, level=logging.INFO)
worker.run()
write("stopped")
