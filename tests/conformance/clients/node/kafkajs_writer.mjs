// kafkajs writes a transaction after the other, until it is killed: transaction N writes N to partitions 0 to 2, and every
// fourth one is aborted. stdout has a line for each: `committed N`, `aborted N`, or `unknown N ERROR`, after which another
// producer takes the id over.
//
//     node kafkajs_writer.mjs BOOTSTRAP INPUT OUTPUT ID         reads nothing of INPUT, and OUTPUT is its id
import { Kafka, logLevel } from 'kafkajs'

const [bootstrap, , topic] = process.argv.slice(2)
const brokers = bootstrap.split(',')
const kafka = new Kafka({ clientId: 'kafkajs', brokers, logLevel: logLevel.NOTHING, retry: { retries: 20 } })
const ABORTED_EACH = 4
const AGAIN_MS = 200

async function transact (producer, number) {
  const messages = [0, 1, 2].map(partition => ({ value: String(number), partition }))
  const transaction = await producer.transaction()
  await transaction.send({ topic, messages })
  const commits = number % ABORTED_EACH !== 0
  await (commits ? transaction.commit() : transaction.abort())
  console.log(commits ? 'committed' : 'aborted', number)
}

for (let number = 0; ;) {
  const producer = kafka.producer({ transactionalId: topic, maxInFlightRequests: 1, idempotent: true })
  try {
    await producer.connect()
    for (; ; number++) await transact(producer, number)
  } catch (error) {
    console.log('unknown', number++, error.message)
    await producer.disconnect().catch(() => {})
    await new Promise(resolve => setTimeout(resolve, AGAIN_MS))
  }
}
