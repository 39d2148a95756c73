// The original's own loader and writer of session logs, driven from standard input: a list of orders, one answer each.
// Run as text (`node --input-type=module --eval`) in the folder whose node_modules holds the packages.
import { Context } from '@deepseek-ai/cordis'
import { SessionStore } from '@deepseek-ai/dsh-session'
import { JsonlSessionPersistence } from '@deepseek-ai/dsh-session-persistence-jsonl'

async function within(root, compression, packChunks, work) {
  const context = new Context()
  await context.plugin(SessionStore)
  const fiber = await context.plugin(JsonlSessionPersistence, { root, compression, packChunks })
  try {
    return await work(context.sessionPersistence)
  } finally {
    await fiber.dispose()
  }
}

const orders = {
  async write({ root, compression, packChunks, sessions }) {
    return within(root, compression, packChunks, async (persistence) => {
      for (const { meta, batches } of sessions) {
        await persistence.create(meta)
        for (const batch of batches) await persistence.append(meta.id, batch)
      }
      return sessions.length
    })
  },
  async read({ root, compression, ids, how }) {
    return within(root, compression, true, async (persistence) => {
      const found = {}
      for (const id of ids ?? (await persistence.list()).map((header) => header.id)) {
        try {
          const { meta, events } = how === 'stored' ? await persistence.readFrom(id, 0) : await persistence[how](id)
          found[id] = { meta, events }
        } catch (error) {
          found[id] = { error: error.name, message: error.message }
        }
      }
      return found
    })
  },
}

// Pieces end anywhere, in the middle of a letter too.
process.stdin.setEncoding('utf8')
let text = ''
for await (const piece of process.stdin) text += piece
const answers = []
for (const { order, ...rest } of JSON.parse(text)) answers.push(await orders[order](rest))
process.stdout.write(JSON.stringify(answers))
