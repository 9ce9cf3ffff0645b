// A Cloudflare Worker beside a server of duly: it runs tasks that duly posts to it, submits tasks, and may be the clock that calls duly.
// Copy clients/typescript/duly.js beside it, and set the secrets of wrangler.toml.
import { Client, verify } from "./duly.js";

const duly = (env) => new Client({ url: env.DULY_URL, token: env.DULY_TOKEN });

// digest does the work of a task. What it returns is the result; what it throws fails the attempt, which is tried again.
async function digest(run) {
  return { digest: `of ${run.agent_id}`, topics: run.payload.topics };
}

// received runs a task that duly posts, with its signature.
async function received(request, env) {
  let run;
  try {
    run = await verify(await request.text(), request.headers, env.DIGEST_SECRET);
  } catch {
    return new Response("not signed by duly", { status: 401 });
  }
  return Response.json(await digest(run));
}

export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (request.method === "POST" && pathname === "/run") return received(request, env);
    if (request.method === "POST" && pathname === "/digests") {
      if (request.headers.get("Authorization") !== `Bearer ${env.APP_TOKEN}`) return new Response("who are you?", { status: 401 });
      const { agent, delay, topics } = await request.json();
      return Response.json(await duly(env).submit({ agent_id: agent, kind: "digest", delay, payload: { topics } }), { status: 201 });
    }
    return new Response("not found", { status: 404 });
  },

  // A cron trigger runs what is due, where no daemon does so.
  async scheduled(_event, env) {
    await duly(env).call("POST", "/v1/run-due", { all: true, timeout_ms: 20000 });
  },
};
