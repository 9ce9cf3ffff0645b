// Fills a Redis with job schedulers and repeatable jobs, by BullMQ itself, and prints what it has written: NODE_PATH=... node bullmq.cjs PORT
const { Queue } = require("bullmq");
const Redis = require("ioredis");
const connection = { host: "127.0.0.1", port: Number(process.argv[2]) };

(async () => {
  const mail = new Queue("mail", { connection });
  if (mail.upsertJobScheduler) {
    await mail.upsertJobScheduler("digest", { pattern: "0 7 * * 1-5", tz: "Europe/Berlin" }, { name: "digest", data: { topic: "engines" }, opts: { attempts: 3 } });
    await mail.upsertJobScheduler("poll", { every: 60000, limit: 10 }, { name: "poll" });
    await mail.upsertJobScheduler("seconds", { pattern: "*/10 * * * * *", endDate: "2030-01-01T00:00:00Z" }, { name: "tick", data: [1] });
  } else { // before BullMQ 5.16
    await mail.add("sweep", { days: 7 }, { repeat: { pattern: "0 3 * * *", tz: "Europe/Berlin" }, attempts: 5 });
    await mail.add("beat", { n: 1 }, { repeat: { every: 86400000 } });
  }
  await mail.close();
  const redis = new Redis(connection);
  const wrote = { zsets: {}, hashes: {} };
  for (const key of (await redis.keys("*")).sort()) {
    const type = await redis.type(key);
    if (type === "zset") wrote.zsets[key] = await redis.zrange(key, 0, -1, "WITHSCORES");
    if (type === "hash") wrote.hashes[key] = await redis.hgetall(key);
  }
  console.log(JSON.stringify(wrote, null, 1));
  await redis.quit();
})();
