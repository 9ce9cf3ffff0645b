// The schedules of Letta's own client, against duly: letta.mjs URL KEY. It prints what it got; the test compares.
import Letta from '@letta-ai/letta-client'

const [baseURL, apiKey] = process.argv.slice(2)
const schedule = new Letta({ baseURL, apiKey, maxRetries: 0 }).agents.schedule

const messages = [{ role: 'user', content: 'hi' }]
const daily = await schedule.create('agent-1', { messages, schedule: { type: 'recurring', cron_expression: '0 4 * * *' }, max_steps: 3 })
const once = await schedule.create('agent-1', { messages, schedule: { type: 'one-time', scheduled_at: Date.parse('2199-01-01T00:00:00Z') } })
const first = await schedule.list('agent-1', { limit: '1' })
const second = await schedule.list('agent-1', { limit: '1', after: first.scheduled_messages[0].id })
const one = await schedule.retrieve(once.id, { agent_id: 'agent-1' })
const deleted = await schedule.delete(daily.id, { agent_id: 'agent-1' })
const left = await schedule.list('agent-1')
const status = (call) => call.then(() => 200, (err) => err.status)
const gone = await status(schedule.retrieve(daily.id, { agent_id: 'agent-1' }))
const foreign = await status(schedule.list('agent-2'))
const wrong = await status(schedule.create('agent-1', { messages, schedule: { type: 'recurring', cron_expression: 'now and then' } }))
console.log(JSON.stringify({ daily, once, first, second, one, deleted, left, gone, foreign, wrong }))
