"""A producer of MemOS's scheduler: submits messages to its Redis streams as MemOS does, with a RESP client of its own.

usage: producer.py SOCKET PREFIX USER CUBE LABEL FIRST COUNT

It writes the items FIRST .. FIRST+COUNT-1 and prints the id of each once Redis has acknowledged it. Every second item belongs to a business task.
"""

import json
import socket
import sys
from datetime import datetime, timezone

WEEK = 7 * 24 * 3600


class RedisError(Exception):
    """What Redis answers with a minus sign."""


class Redis:
    """One connection: commands as arrays of bulk strings, and the answers of RESP 2."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(path)
        self.answers = self.socket.makefile("rb")

    def __call__(self, *args):
        out = b"*%d\r\n" % len(args)
        for arg in args:
            data = str(arg).encode("utf-8")
            out += b"$%d\r\n%s\r\n" % (len(data), data)
        self.socket.sendall(out)
        return self.answer()

    def answer(self):
        line = self.answers.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("Redis has closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            raise RedisError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            if int(rest) < 0:
                return None
            return self.answers.read(int(rest) + 2)[:-2].decode("utf-8")
        if kind == b"*":
            return None if int(rest) < 0 else [self.answer() for _ in range(int(rest))]
        raise ConnectionError("not RESP 2: %r" % line)


def now():
    """The time as MemOS writes it."""
    return datetime.now(timezone.utc).isoformat(timespec="microseconds")


def submitted(redis, user, item, label, cube, business):
    """What the status tracker does first: a record of the item, and a set for its business task. Both live for a week from the last change."""
    record = {"status": "waiting", "task_type": label, "mem_cube_id": cube, "submitted_at": now()}
    if business:
        record["business_task_id"] = business
        redis("SADD", "memos:task_items:%s:%s" % (user, business), item)
        redis("EXPIRE", "memos:task_items:%s:%s" % (user, business), WEEK)
    redis("HSET", "memos:task_meta:" + user, item, json.dumps(record))
    redis("EXPIRE", "memos:task_meta:" + user, WEEK)


def put(redis, prefix, user, item, label, cube, business):
    """What the queue does then: the group, which may exist, and the entry."""
    stream = "%s:%s:%s:%s" % (prefix, user, cube, label)
    try:
        redis("XGROUP", "CREATE", stream, "scheduler_group", "0", "MKSTREAM")
    except RedisError as e:
        if not str(e).startswith("BUSYGROUP"):
            raise
    fields = {
        "item_id": item, "user_id": user, "cube_id": cube, "trace_id": "trace-" + item, "session_id": "s1", "label": label,
        "cube": "Not Applicable", "content": "remember \u00fc " + item, "timestamp": now(), "user_name": "Ann",
        "info": json.dumps({"monitor_flag": "proof"}), "task_id": business, "api_path": "/product/add",
        "chat_history": json.dumps([{"role": "user", "content": "hi"}]), "user_context": "",
    }
    redis("XADD", stream, "MAXLEN", "~", 200, "*", *[part for pair in fields.items() for part in pair])


def main():
    path, prefix, user, cube, label, first, count = sys.argv[1:]
    redis = Redis(path)
    for n in range(int(first), int(first) + int(count)):
        item, business = "item-%d" % n, "business-1" if n % 2 else ""
        submitted(redis, user, item, label, cube, business)
        put(redis, prefix, user, item, label, cube, business)
        print(item, flush=True)


main()
