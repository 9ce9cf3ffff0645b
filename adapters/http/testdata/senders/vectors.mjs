// Writes qstash.json and webhooks.json beside it: requests as senders sign them, and what the official libraries say of each. See README.md.
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { mock } from "node:test";
import { Receiver } from "@upstash/qstash";
import { SignJWT } from "jose";
import { Webhook } from "standardwebhooks";

const now = 1800000000; // seconds
mock.timers.enable({ apis: ["Date"], now: now * 1000 });

const current = "sig_current_key_of_this_test_0001", next = "sig_the_next_key_of_this_test_02", other = "sig_a_key_of_somebody_else_00003";
const url = "https://duly.example/v1/run-due?x=1", body = '{"all":true}';
const hash = (text) => createHash("sha256").update(text).digest("base64url");
const key = (text) => new TextEncoder().encode(text);
const good = { iss: "Upstash", sub: url, exp: now + 300, nbf: now - 1, iat: now, jti: "jwt_1", body: hash(body) };
const without = (name) => Object.fromEntries(Object.entries(good).filter(([k]) => k !== name));
const jwt = (claims, k = current, alg = "HS256") => new SignJWT(claims).setProtectedHeader({ alg, typ: "JWT" }).sign(key(k));
const plain = (o) => Buffer.from(JSON.stringify(o)).toString("base64url");

// strict says that duly asks for more than the library does.
const requests = [
  { name: "current key", signature: await jwt(good) },
  { name: "next key", signature: await jwt(good, next) },
  { name: "padded hash", signature: await jwt({ ...good, body: hash(body) + "=" }) },
  { name: "empty body", signature: await jwt({ ...good, body: hash("") }), body: "" },
  { name: "body in UTF-8", signature: await jwt({ ...good, body: hash("\u00fc\u2028") }), body: "\u00fc\u2028" },
  { name: "another key", signature: await jwt(good, other) },
  { name: "another algorithm", signature: await jwt(good, current + current, "HS512") },
  { name: "no algorithm", signature: plain({ alg: "none", typ: "JWT" }) + "." + plain(good) + "." },
  { name: "another issuer", signature: await jwt({ ...good, iss: "Else" }) },
  { name: "another URL", signature: await jwt({ ...good, sub: "https://duly.example/v1/tasks" }) },
  { name: "another host", signature: await jwt({ ...good, sub: "https://other.example/v1/run-due?x=1" }) },
  { name: "altered body", signature: await jwt(good), body: body + " " },
  { name: "expired", signature: await jwt({ ...good, exp: now - 60 }) },
  { name: "not yet good", signature: await jwt({ ...good, nbf: now + 60 }) },
  { name: "no exp", signature: await jwt(without("exp")), strict: true },
  { name: "no jti", signature: await jwt(without("jti")), strict: true },
  { name: "no JWT", signature: "v1,aGVsbG8=" },
];
const receiver = new Receiver({ currentSigningKey: current, nextSigningKey: next });
for (const r of requests) {
  r.body ??= body;
  r.good = await receiver.verify({ signature: r.signature, body: r.body, url }).then(() => true, () => false);
}
writeFileSync("qstash.json", JSON.stringify({ now, keys: [current, next], url, requests }, null, 1) + "\n");

const secret = "whsec_dGhlIGtleSBvZiB0aGlzIHRlc3QgMDAx", task = '{"agent_id":"a","kind":"ok"}';
const hook = new Webhook(secret);
const at = (seconds) => new Date(seconds * 1000);
const messages = [
  { name: "signed", stamp: now },
  { name: "a moment ago", stamp: now - 290 },
  { name: "too old", stamp: now - 310 },
  { name: "from the future", stamp: now + 310 },
  { name: "altered body", stamp: now, body: task + " " },
  { name: "another id", stamp: now, sent: "msg_other" },
  { name: "another secret", stamp: now, by: new Webhook("whsec_dGhlIGtleSBvZiBzb21lYm9keSBlbHNl") },
  { name: "several signatures", stamp: now, before: "v1,aGVsbG8= v1a,aGVsbG8= " },
].map((m, i) => {
  const id = "msg_" + (i + 1);
  const signature = (m.before ?? "") + (m.by ?? hook).sign(id, at(m.stamp), task);
  const headers = { "webhook-id": m.sent ?? id, "webhook-timestamp": String(m.stamp), "webhook-signature": signature };
  let good = true;
  try { hook.verify(m.body ?? task, headers); } catch { good = false; }
  return { name: m.name, headers, body: m.body ?? task, good };
});
writeFileSync("webhooks.json", JSON.stringify({ now, secret, messages }, null, 1) + "\n");
