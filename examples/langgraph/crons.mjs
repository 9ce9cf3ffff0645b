// Crons by LangGraph's own client. npm install @langchain/langgraph-sdk, then: node crons.mjs
import { Client } from '@langchain/langgraph-sdk'

const client = new Client({ apiUrl: process.env.DULY_URL ?? 'http://127.0.0.1:8081', apiKey: process.env.DULY_TOKEN ?? null })

const digest = await client.crons.create('agent', {
  schedule: '0 9 * * 1-5',
  timezone: 'Europe/Stockholm',
  input: { messages: [{ role: 'user', content: 'Write the digest of the day.' }] },
})
console.log('created', digest.cron_id, 'next run', digest.next_run_date)

await client.crons.update(digest.cron_id, { schedule: '30 8 * * 1-5' })
for (const cron of await client.crons.search({ assistantId: 'agent', sortBy: 'next_run_date', sortOrder: 'asc' })) {
  console.log(cron.schedule, cron.enabled ? cron.next_run_date : 'disabled')
}
await client.crons.delete(digest.cron_id)
