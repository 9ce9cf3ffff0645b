// Schedules by Letta's own client. npm install @letta-ai/letta-client, then: node schedule.mjs AGENT_ID
import Letta from '@letta-ai/letta-client'

const agent = process.argv[2] ?? 'agent-1'
const client = new Letta({ baseURL: process.env.DULY_URL ?? 'http://127.0.0.1:8081', apiKey: process.env.DULY_TOKEN ?? 'none' })

const daily = await client.agents.schedule.create(agent, {
  messages: [{ role: 'user', content: 'Tidy up your memory.' }],
  schedule: { type: 'recurring', cron_expression: '0 4 * * *' },
})
console.log('created', daily.id, 'next', daily.next_scheduled_at)
for (const message of (await client.agents.schedule.list(agent)).scheduled_messages) {
  console.log(message.id, message.next_scheduled_time)
}
await client.agents.schedule.delete(daily.id, { agent_id: agent })
