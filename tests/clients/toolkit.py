"""Redis-py's part in workflows that it shares with a Rust program and other clients: functions of
functions/russet.lua, called by FCALL. `shared` in tests/toolkit runs it, and adds all up."""

import hashlib
import os
import secrets

import redis

APP = os.environ["TOOLKIT_APP"]
NAME = f"python-{os.getpid()}"
YEAR_MS = 365 * 24 * 3_600_000
HOUR_MS = 3_600_000

client = redis.Redis(port=int(os.environ["RUSSET_PORT"]), decode_responses=True)


def call(function, keys, *args):
    """The status, and the fields by name."""
    reply = client.fcall(f"russet_v1_{function}", len(keys), *keys, *args)
    return reply[0], dict(zip(reply[1::2], reply[2::2]))


def limit():
    prefix = f"{APP}:limit:v1:{{user}}:"
    for _ in range(60):
        keys = [f"{prefix}request:{secrets.token_hex(16)}", f"{prefix}window:api/hourly"]
        charge = secrets.token_hex(16)
        status, fields = call("limit_check", keys, 60_000, charge, "TAKE", 1, "WINDOW", 80, YEAR_MS, 0)
        if status == "ALLOWED":
            print("admitted")
        else:
            assert status == "DENIED" and int(fields["retry_after_ms"]) > 0, (status, fields)


def sale():
    prefix = f"{APP}:sale:v1:{{sale}}:"
    for number in range(40):
        marker = f"{prefix}request:{NAME}-{number}"
        keys = [marker] + [prefix + part for part in ("sale", "orders", "holds", "outbox")]
        # Sent twice, as after a lost reply: one order, and the same one.
        order = secrets.token_hex(16)
        first, again = (call("sale_buy", keys, 60_000, f"{NAME}-{number}", order) for _ in range(2))
        if first[0] == "ORDERED":
            assert first == again, (first, again)
            print("sold", first[1]["order"])
        else:
            assert first[0] == "SOLD_OUT", first


def queue():
    prefix = f"{APP}:jobs:v1:{{jobs}}:"
    part = lambda *names: [prefix + name for name in names]
    while True:
        keys = part("request", "meta", "jobs", "ready", "delayed", "taken", "parked", "dead", "graves")
        status, fields = call("jobs_claim", keys, 0, secrets.token_hex(16), 2, HOUR_MS, 10, 0, HOUR_MS, 0, 100)
        if status == "EMPTY":
            return
        for _id, payload, _attempt, receipt, _group in fields["jobs"]:
            keys = part("request", "meta", "jobs", "ready", "taken", "parked")
            if call("jobs_ack", keys, 0, receipt)[0] == "ACKED":
                print("acked", payload)


def idempotency():
    fingerprint = hashlib.sha256(b"the request").hexdigest()
    for number in range(20):
        digest = hashlib.sha256(str(number).encode()).hexdigest()[:32]
        key = f"{APP}:idempotency:v1:{{order:acme:{digest}}}:record"
        owner = secrets.token_hex(16)
        status, _ = call("idempotency_claim", [key], owner, fingerprint, HOUR_MS, HOUR_MS)
        if status == "CLAIMED":
            print("ran", number)
            assert call("idempotency_complete", [key], owner, number, HOUR_MS)[0] == "KEPT"
        else:
            assert status in ("REPLAY", "IN_FLIGHT"), status


def lease():
    key = f"{APP}:lease:v1:{{report}}:holder"
    total = f"{APP}:shared:v1:{{report}}:total"
    turns = 0
    while turns < 15:
        token = secrets.token_hex(16)
        status, _ = call("lease_acquire", [key], token, 60_000, 60_000)
        if status != "HELD":
            continue
        now = int(client.get(total) or 0) + 1
        client.set(total, now, px=HOUR_MS)
        assert call("lease_release", [key], token, 60_000)[0] == "RELEASED"
        print("held", now)
        turns += 1


for part in (limit, sale, queue, idempotency, lease):
    part()
