// Agents by the published client of A2A 1.0, against duly: a2a.mjs URL KEY HOOK. It prints what it got; the test compares.
import { ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory, createAuthenticatingFetchWithRetry } from '@a2a-js/sdk/client'

const [url, key, hook] = process.argv.slice(2)
const headers = async () => ({ Authorization: `Bearer ${key}` })
const fetchImpl = createAuthenticatingFetchWithRetry(fetch, { headers, shouldRetryWithHeaders: async () => undefined })
const factory = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { transports: [new JsonRpcTransportFactory({ fetchImpl })] }))
const client = await factory.createFromUrl(`${url}/a2a/ada/`)
const other = await factory.createFromUrl(`${url}/a2a/bob/`)

const message = (messageId, content, more) => ({
  messageId, role: 1, contextId: 'talk-1', taskId: '', extensions: [], referenceTaskIds: [], metadata: undefined, ...more,
  parts: [{ content, metadata: undefined, filename: '', mediaType: '' }],
})
const text = (value) => ({ $case: 'text', value })
const send = (on, m, configuration) => on.sendMessage({ tenant: '', message: m, configuration, metadata: undefined })
const push = (more) => ({ acceptedOutputModes: [], returnImmediately: true, taskPushNotificationConfig: { tenant: '', id: 'mine', taskId: '', url: hook, token: 'token-1', ...more } })
const failure = (call) => call.then(() => 'none', (err) => err.name)

const done = await send(client, message('m-1', text('hello')))
const again = await send(client, message('m-1', text('hello')))
const data = await send(client, message('m-2', { $case: 'data', value: { n: 1 } }))
const failed = await send(client, message('m-3', text('fail')))
const later = await send(client, message('m-4', text('later')), { acceptedOutputModes: [], returnImmediately: true })
const canceled = await client.cancelTask({ tenant: '', id: later.id, metadata: undefined })
const told = await send(client, message('m-5', text('push')), push())
const kept = await client.getTaskPushNotificationConfig({ tenant: '', taskId: failed.id, id: '' }).then(() => 'one', (err) => err.name)
const waiting = await send(other, message('m-7', text('push')), { acceptedOutputModes: [], returnImmediately: true }) // the agent is paused
const taskId = waiting.id
await other.createTaskPushNotificationConfig({ tenant: '', taskId, id: 'mine', url: hook, token: 'token-2' })
const configs = [(await other.getTaskPushNotificationConfig({ tenant: '', taskId, id: 'mine' })).token]
configs.push((await other.listTaskPushNotificationConfig({ tenant: '', taskId, pageSize: 0, pageToken: '' })).configs.length)
await other.deleteTaskPushNotificationConfig({ tenant: '', taskId, id: 'mine' })
configs.push((await other.listTaskPushNotificationConfig({ tenant: '', taskId, pageSize: 0, pageToken: '' })).configs.length)
const listed = await client.listTasks({ tenant: '', contextId: 'talk-1', status: 3, pageToken: '', statusTimestampAfter: undefined, includeArtifacts: true })
const seen = await client.getTask({ tenant: '', id: done.id })
const wrong = [
  await failure(client.getTask({ tenant: '', id: 'a2a-00000000000000000000000000000000' })),
  await failure(other.getTask({ tenant: '', id: done.id })),
  await failure(client.cancelTask({ tenant: '', id: done.id, metadata: undefined })),
  await failure(send(client, message('m-3', text('something else')))),
  await failure(send(client, message('m-6', text('push')), push({ url: 'https://evil.example/' }))),
  await failure(client.resubscribeTask({ tenant: '', id: done.id }).next()),
]
console.log(JSON.stringify({ done, again, data, failed, later, canceled, told, kept, configs, listed: listed.tasks, seen, wrong }))
