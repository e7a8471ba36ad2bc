// kafkajs in transactions: commit, abort, offsets, and a producer that the next one fences. Prints JSON: what a reader of
// committed records has read, the group's offset after the abort and after the commit, and the error of the former producer.
import { Kafka, logLevel } from 'kafkajs'

const [bootstrap, name] = process.argv.slice(2)
const kafka = new Kafka({ clientId: 'kafkajs', brokers: [bootstrap], logLevel: logLevel.NOTHING, retry: { retries: 20 } })
const admin = kafka.admin()

async function transactional () {
  const producer = kafka.producer({ transactionalId: name, maxInFlightRequests: 1, idempotent: true })
  await producer.connect()
  return producer
}

async function begin (producer, value) {
  const transaction = await producer.transaction()
  await transaction.send({ topic: name, messages: [{ value, partition: 0 }] })
  return transaction
}

async function offset () {
  const [topic] = await admin.fetchOffsets({ groupId: name, topics: [name] })
  return topic.partitions[0].offset
}

async function committed (count) {
  const consumer = kafka.consumer({ groupId: `${name}-reader`, maxWaitTimeInMs: 200, readUncommitted: false })
  const seen = []
  await consumer.connect()
  await consumer.subscribe({ topics: [name], fromBeginning: true })
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
    consumer.run({
      eachMessage: async ({ message }) => {
        seen.push(message.value.toString())
        if (seen.length === count) resolve()
      }
    })
  })
  await consumer.disconnect()
  return seen
}

await admin.connect()
await admin.createTopics({ topics: [{ topic: name, numPartitions: 1 }], waitForLeaders: true })
await offset() // makes the topic of offsets: kafkajs does not ask again while its transaction waits for that
const former = await transactional()
const offsets = []
for (const commits of [true, false, false, true]) {
  const transaction = await begin(former, commits ? 'committed' : 'aborted')
  await transaction.sendOffsets({
    consumerGroupId: name, topics: [{ topic: name, partitions: [{ partition: 0, offset: String(offsets.length + 1) }] }]
  })
  await (commits ? transaction.commit() : transaction.abort())
  offsets.push(await offset())
}
const left = await begin(former, 'of the former')
const next = await transactional()
const following = await begin(next, 'of the next') // takes the id over
let fenced = null
await left.commit().catch(error => { fenced = error.type ?? error.message })
await following.commit()
console.log(JSON.stringify([await committed(3), offsets, fenced]))
await former.disconnect()
await next.disconnect()
await admin.disconnect()
