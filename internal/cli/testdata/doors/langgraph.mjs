// The crons of LangGraph's own client, against duly: langgraph.mjs PACKAGE URL KEY. It prints what it got; the test compares.
const [name, apiUrl, apiKey] = process.argv.slice(2)
const { Client } = await import(name)
const crons = new Client({ apiUrl, apiKey, callerOptions: { maxRetries: 0 } }).crons

const alone = await crons.create('support', {
  schedule: '0 9 * * 1', timezone: 'Europe/Stockholm', endTime: '2999-01-01T00:00:00Z', input: { messages: [{ role: 'user', content: 'hi' }] }, metadata: { team: 'a' },
})
const threaded = await crons.createForThread('thread-1', 'support', { schedule: '30 3 * * *', input: {}, enabled: false })
const updated = await crons.update(threaded.cron_id, { schedule: '45 3 * * *', enabled: true, input: { again: true } })
const found = await crons.search({ assistantId: 'support', sortBy: 'next_run_date', sortOrder: 'asc', limit: 1, select: ['cron_id', 'schedule'] })
const ofThread = await crons.search({ assistantId: 'support', threadId: 'thread-1' })
const counted = await crons.count({ assistantId: 'support' })
await crons.delete(alone.cron_id)
const left = await crons.count({ assistantId: 'support' })
const refused = await crons.create('support', { schedule: 'every now and then' }).then(() => 'none', (err) => String(err.status))
console.log(JSON.stringify({ alone, threaded, updated, found, ofThread, counted, left, refused }))
