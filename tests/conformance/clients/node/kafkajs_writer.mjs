// kafkajs writes a transaction after the other, until it is killed: transaction N writes N to partitions 0 to 2, and every
// fourth one is aborted. stdout has a line for each: `committed N`, `aborted N`, or `unknown N ERROR`, after which another
// producer takes the id over.
//
// Each `send` is of one partition. kafkajs 2.2.4 remembers for a `send` which brokers have answered, and not of which
// partitions: where a leader dies meanwhile it sends some of them again as new records, or not at all, and commits.
//
//     node kafkajs_writer.mjs BOOTSTRAP INPUT OUTPUT ID         reads nothing of INPUT, and OUTPUT is its id
import { Kafka, logLevel } from 'kafkajs'

const [bootstrap, , topic] = process.argv.slice(2)
const brokers = bootstrap.split(',')
const retry = { retries: 50, maxRetryTime: 1_000 }
const kafka = new Kafka({ clientId: 'kafkajs', brokers, logLevel: logLevel.NOTHING, retry })
const ABORTED_EACH = 4
const AGAIN_MS = 200

async function transact (producer, number) {
  const transaction = await producer.transaction()
  for (const partition of [0, 1, 2]) {
    await transaction.send({ topic, messages: [{ value: String(number), partition }] })
  }
  const commits = number % ABORTED_EACH !== 0
  await (commits ? transaction.commit() : transaction.abort())
  console.log(commits ? 'committed' : 'aborted', number)
}

for (let number = 0; ;) {
  const producer = kafka.producer({ transactionalId: topic, maxInFlightRequests: 1, idempotent: true, retry })
  try {
    await producer.connect()
    for (; ; number++) await transact(producer, number)
  } catch (error) {
    console.log('unknown', number++, error.message)
    await producer.disconnect().catch(() => {})
    await new Promise(resolve => setTimeout(resolve, AGAIN_MS))
  }
}
