package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A reader of committed records.
type reader struct {
	client *kgo.Client
	topic  string
}

func newReader(bootstrap, topic string) (*reader, error) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	)
	return &reader{client, topic}, err
}

// read returns the first values.
func (one *reader) read(ctx context.Context, count int) ([]string, error) {
	values := []string{}
	for len(values) < count {
		fetches := one.client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(record *kgo.Record) { values = append(values, string(record.Value)) })
	}
	return values, nil
}

// committed returns the stable offset of the group that is named like the topic, of partition 0.
func (one *reader) committed(ctx context.Context) (int64, error) {
	for {
		asked := kmsg.NewOffsetFetchRequestGroupTopic()
		asked.Topic, asked.Partitions = one.topic, []int32{0}
		group := kmsg.NewOffsetFetchRequestGroup()
		group.Group, group.Topics = one.topic, append(group.Topics, asked)
		request := kmsg.NewPtrOffsetFetchRequest()
		request.RequireStable, request.Groups = true, append(request.Groups, group)
		answer, err := request.RequestWith(ctx, one.client)
		if err != nil {
			return 0, err
		}
		found := answer.Groups[0].Topics[0].Partitions[0]
		if err = kerr.ErrorForCode(found.ErrorCode); err != kerr.UnstableOffsetCommit {
			return found.Offset, err
		}
	}
}
