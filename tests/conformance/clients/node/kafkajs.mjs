// kafkajs: produce, consume in a group, commit, resume. Prints the pairs read, first part and rest, as JSON.
import { Kafka, Partitioners, logLevel } from 'kafkajs'

const [bootstrap, name, firstPart, records] = process.argv.slice(2)
const pairs = JSON.parse(records)
const kafka = new Kafka({ clientId: 'kafkajs', brokers: [bootstrap], logLevel: logLevel.ERROR })

async function produce () {
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  await producer.send({ topic: name, messages: pairs.map(([key, value]) => ({ key, value })) })
  await producer.disconnect()
}

// Reads `count` records, commits after each exactly what was read, and leaves the group.
async function consume (count) {
  const consumer = kafka.consumer({ groupId: name, maxWaitTimeInMs: 200 })
  const seen = []
  await consumer.connect()
  await consumer.subscribe({ topics: [name], fromBeginning: true })
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
    consumer.run({
      autoCommit: false,
      eachMessage: async ({ topic, partition, message }) => {
        if (seen.length >= count) return
        seen.push([message.key.toString(), message.value.toString()])
        await consumer.commitOffsets([{ topic, partition, offset: String(Number(message.offset) + 1) }])
        if (seen.length === count) resolve()
      }
    })
  })
  await consumer.disconnect()
  return seen
}

const admin = kafka.admin()
await admin.connect()
await admin.createTopics({ topics: [{ topic: name, numPartitions: 3 }], waitForLeaders: true })
await admin.disconnect()
await produce()
const first = await consume(Number(firstPart))
const rest = await consume(pairs.length - first.length)
console.log(JSON.stringify([first, rest]))
