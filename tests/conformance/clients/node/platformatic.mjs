// @platformatic/kafka speaks flexible versions only. Produce, consume in a group, commit, resume; prints the pairs as JSON.
import { Admin, Consumer, Producer, stringDeserializers, stringSerializers } from '@platformatic/kafka'

const [bootstrap, name, firstPart, records] = process.argv.slice(2)
const pairs = JSON.parse(records)
const options = { clientId: 'platformatic', bootstrapBrokers: [bootstrap] }

async function produce () {
  const producer = new Producer({ ...options, serializers: stringSerializers })
  await producer.send({ messages: pairs.map(([key, value]) => ({ topic: name, key, value })) })
  await producer.close()
}

// Reads `count` records, commits after each exactly what was read, and leaves the group.
async function consume (count) {
  const consumer = new Consumer({ ...options, groupId: name, deserializers: stringDeserializers, maxWaitTime: 200 })
  const stream = await consumer.consume({ topics: [name], mode: 'committed', fallbackMode: 'earliest', autocommit: false })
  const seen = []
  for await (const message of stream) {
    seen.push([message.key, message.value])
    await message.commit()
    if (seen.length === count) break
  }
  await consumer.close(true)
  return seen
}

const admin = new Admin(options)
await admin.createTopics({ topics: [name], partitions: 3, replicas: 1 })
await admin.close()
await produce()
const first = await consume(Number(firstPart))
const rest = await consume(pairs.length - first.length)
console.log(JSON.stringify([first, rest]))
