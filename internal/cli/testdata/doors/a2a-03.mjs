// Agents by the published client of A2A 0.3, against duly: a2a-03.mjs URL KEY HOOK. It prints what it got; the test compares.
import { ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver, JsonRpcTransportFactory, createAuthenticatingFetchWithRetry } from 'a2a-03/client'

const [url, key, hook] = process.argv.slice(2)
const headers = async () => ({ Authorization: `Bearer ${key}` })
const fetchImpl = createAuthenticatingFetchWithRetry(fetch, { headers, shouldRetryWithHeaders: async () => undefined })
const factory = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
  transports: [new JsonRpcTransportFactory({ fetchImpl })], cardResolver: new DefaultAgentCardResolver(),
}))
const client = await factory.createFromUrl(`${url}/a2a/ada/`)
const other = await factory.createFromUrl(`${url}/a2a/bob/`)

const text = (value) => ({ kind: 'text', text: value })
const send = (on, messageId, part, configuration) => on.sendMessage({ message: { kind: 'message', messageId, role: 'user', contextId: 'talk-1', parts: [part] }, configuration })
const push = (more) => ({ blocking: false, pushNotificationConfig: { id: 'mine', url: hook, token: 'token-1', ...more } })
const failure = (call) => call.then(() => 'none', (err) => err.name === 'Error' ? err.message.match(/-32\d+/)?.[0] : err.name)

const done = await send(client, 'm-1', text('hello'))
const again = await send(client, 'm-1', text('hello'))
const data = await send(client, 'm-2', { kind: 'data', data: { n: 1 } })
const failed = await send(client, 'm-3', text('fail'))
const later = await send(client, 'm-4', text('later'), { blocking: false })
const canceled = await client.cancelTask({ id: later.id })
const told = await send(client, 'm-5', text('push'), push())
const kept = await client.getTaskPushNotificationConfig({ id: failed.id }).then(() => 'one', (err) => err.name)
const waiting = await send(other, 'm-7', text('push'), { blocking: false }) // the agent is paused
const taskId = waiting.id
await other.setTaskPushNotificationConfig({ taskId, pushNotificationConfig: { id: 'mine', url: hook, token: 'token-2' } })
const configs = [(await other.getTaskPushNotificationConfig({ id: taskId, pushNotificationConfigId: 'mine' })).pushNotificationConfig.token]
configs.push((await other.listTaskPushNotificationConfig({ id: taskId })).length)
await other.deleteTaskPushNotificationConfig({ id: taskId, pushNotificationConfigId: 'mine' })
configs.push((await other.listTaskPushNotificationConfig({ id: taskId })).length)
const seen = await client.getTask({ id: done.id })
const wrong = [
  await failure(client.getTask({ id: 'a2a-00000000000000000000000000000000' })),
  await failure(other.getTask({ id: done.id })),
  await failure(client.cancelTask({ id: done.id })),
  await failure(send(client, 'm-3', text('something else'))),
  await failure(send(client, 'm-6', text('push'), push({ url: 'https://evil.example/' }))),
]
console.log(JSON.stringify({ done, again, data, failed, later, canceled, told, kept, configs, seen, wrong }))
