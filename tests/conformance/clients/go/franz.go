package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type franz struct {
	ctx    context.Context
	client *kgo.Client
	topic  string
}

func newFranz(ctx context.Context, bootstrap, topic string) (client, error) {
	made, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...), kgo.TransactionalID(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	if err != nil {
		return nil, err
	}
	_, _, err = made.ProducerID(ctx) // takes the id over
	return &franz{ctx, made, topic}, err
}

func (one *franz) begin(value string) error {
	if err := one.client.BeginTransaction(); err != nil {
		return err
	}
	record := &kgo.Record{Topic: one.topic, Value: []byte(value)}
	return one.client.ProduceSync(one.ctx, record).FirstErr()
}

func (one *franz) close() {
	one.client.Close()
}

// The session of franz-go sends the offsets of what it has read; these are not, so the requests are its client's.
func (one *franz) sendOffset(offset int64) error {
	id, epoch, err := one.client.ProducerID(one.ctx)
	if err != nil {
		return err
	}
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = one.topic, id, epoch, one.topic
	added, err := add.RequestWith(one.ctx, one.client)
	if err == nil {
		err = kerr.ErrorForCode(added.ErrorCode)
	}
	if err != nil {
		return fmt.Errorf("AddOffsetsToTxn: %w", err)
	}
	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.ProducerID, commit.ProducerEpoch, commit.Group = one.topic, id, epoch, one.topic
	partition := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	partition.Offset = offset
	topic := kmsg.NewTxnOffsetCommitRequestTopic()
	topic.Topic, topic.Partitions = one.topic, append(topic.Partitions, partition)
	commit.Topics = append(commit.Topics, topic)
	answer, err := commit.RequestWith(one.ctx, one.client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(answer.Topics[0].Partitions[0].ErrorCode)
}

func (one *franz) end(commits bool) error {
	return one.client.EndTransaction(one.ctx, kgo.TransactionEndTry(commits))
}
