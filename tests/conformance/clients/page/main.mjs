// Uses the function of the page: a record goes in and comes out.
import { Kafka, logLevel } from "kafkajs";
import { startKavka } from "./kavka.mjs";

const { bootstrapServers, stop } = await startKavka();
const kafka = new Kafka({ brokers: [bootstrapServers], logLevel: logLevel.NOTHING });
const producer = kafka.producer();
await producer.connect();
await producer.send({ topic: "orders", messages: [{ value: "an order" }] });
await producer.disconnect();
const consumer = kafka.consumer({ groupId: "orders" });
await consumer.connect();
await consumer.subscribe({ topics: ["orders"], fromBeginning: true });
const value = await new Promise((resolve) => {
  consumer.run({ eachMessage: async ({ message }) => resolve(message.value.toString()) });
});
await consumer.disconnect();
await stop();
console.log(value);
