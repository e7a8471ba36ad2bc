package main

import (
	"context"
	"strings"

	"github.com/IBM/sarama"
)

type saramaClient struct {
	producer sarama.SyncProducer
	topic    string
}

func newSarama(_ context.Context, bootstrap, topic string) (client, error) {
	config := sarama.NewConfig()
	config.Version = sarama.V2_5_0_0
	config.Net.MaxOpenRequests = 1
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Transaction.ID = topic
	made, err := sarama.NewSyncProducer(strings.Split(bootstrap, ","), config)
	return &saramaClient{made, topic}, err
}

func (one *saramaClient) begin(value string) error {
	if err := one.producer.BeginTxn(); err != nil {
		return err
	}
	_, _, err := one.producer.SendMessage(&sarama.ProducerMessage{Topic: one.topic, Value: sarama.StringEncoder(value)})
	return err
}

func (one *saramaClient) sendOffset(offset int64) error {
	parts := []*sarama.PartitionOffsetMetadata{{Partition: 0, Offset: offset}}
	return one.producer.AddOffsetsToTxn(map[string][]*sarama.PartitionOffsetMetadata{one.topic: parts}, one.topic)
}

func (one *saramaClient) end(commits bool) error {
	if commits {
		return one.producer.CommitTxn()
	}
	return one.producer.AbortTxn()
}

func (one *saramaClient) close() {
	one.producer.Close()
}
