// Work for an agent by the published client of A2A. npm install @a2a-js/sdk, then: node ask.mjs AGENT TEXT
import { ClientFactory } from '@a2a-js/sdk/client'

const [agent = 'ada', text = 'Hello'] = process.argv.slice(2)
const client = await new ClientFactory().createFromUrl(`${process.env.DULY_URL ?? 'http://127.0.0.1:8081'}/a2a/${agent}/`)

const part = { content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: 'text/plain' }
const message = { messageId: crypto.randomUUID(), role: 1, parts: [part], contextId: '', taskId: '', extensions: [], referenceTaskIds: [], metadata: undefined }
const task = await client.sendMessage({ tenant: '', message, configuration: undefined, metadata: undefined })
console.log(task.artifacts[0]?.parts[0].content.value ?? `the task ${task.id} is not done yet`)
