package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// seen is what a console sees of a group that was made before the groups of KIP-848 and their like.
type seen struct {
	Type    string // the protocol type of the list
	State   string
	Error   string
	Clients []string         // client ids of the members, sorted
	Offsets map[string]int64 // by TOPIC-PARTITION
}

// printGroups prints what each client sees of all groups, as JSON: franz-go by the requests that kminion sends, sarama
// by those of kafka_exporter and Burrow, of two versions of Apache Kafka that it may take the server for.
func printGroups(bootstrap string) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	found, err := map[string]map[string]seen{}, error(nil)
	if found["franz"], err = groupsOfFranz(ctx, bootstrap); err == nil {
		for name, version := range map[string]sarama.KafkaVersion{"sarama 2.0": sarama.V2_0_0_0, "sarama 4.0": sarama.V4_0_0_0} {
			if found[name], err = groupsOfSarama(bootstrap, version); err != nil {
				break
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	json.NewEncoder(os.Stdout).Encode(found)
}

func groupsOfFranz(ctx context.Context, bootstrap string) (map[string]seen, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(bootstrap, ",")...))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	listed, err := kmsg.NewPtrListGroupsRequest().RequestWith(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("ListGroups: %w", err)
	}
	found, describe := map[string]seen{}, kmsg.NewPtrDescribeGroupsRequest()
	for _, group := range listed.Groups {
		found[group.Group] = seen{Type: group.ProtocolType}
		describe.Groups = append(describe.Groups, group.Group)
	}
	described, err := describe.RequestWith(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("DescribeGroups: %w", err)
	}
	for _, group := range described.Groups {
		clients := []string{}
		for _, member := range group.Members {
			clients = append(clients, member.ClientID)
		}
		offsets, err := offsetsOfFranz(ctx, client, group.Group)
		if err != nil {
			return nil, fmt.Errorf("OffsetFetch: %w", err)
		}
		found[group.Group] = seen{
			found[group.Group].Type, group.State, errorName(kerr.ErrorForCode(group.ErrorCode)), sorted(clients), offsets,
		}
	}
	return found, nil
}

func offsetsOfFranz(ctx context.Context, client *kgo.Client, group string) (map[string]int64, error) {
	fetch, one := kmsg.NewPtrOffsetFetchRequest(), kmsg.NewOffsetFetchRequestGroup()
	fetch.Group, one.Group, one.MemberEpoch = group, group, -1
	fetch.Groups = append(fetch.Groups, one)
	answer, err := fetch.RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	offsets := map[string]int64{}
	for _, group := range answer.Groups {
		for _, topic := range group.Topics {
			for _, partition := range topic.Partitions {
				offsets[fmt.Sprintf("%s-%d", topic.Topic, partition.Partition)] = partition.Offset
			}
		}
	}
	return offsets, nil
}

func groupsOfSarama(bootstrap string, version sarama.KafkaVersion) (map[string]seen, error) {
	config := sarama.NewConfig()
	config.Version = version
	admin, err := sarama.NewClusterAdmin(strings.Split(bootstrap, ","), config)
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	listed, err := admin.ListConsumerGroups()
	if err != nil {
		return nil, fmt.Errorf("ListConsumerGroups: %w", err)
	}
	names := []string{}
	for name := range listed {
		names = append(names, name)
	}
	described, err := admin.DescribeConsumerGroups(names)
	if err != nil {
		return nil, fmt.Errorf("DescribeConsumerGroups: %w", err)
	}
	found := map[string]seen{}
	for _, group := range described {
		clients, offsets := []string{}, map[string]int64{}
		for _, member := range group.Members {
			clients = append(clients, member.ClientId)
		}
		fetched, err := admin.ListConsumerGroupOffsets(group.GroupId, nil)
		if err != nil {
			return nil, fmt.Errorf("ListConsumerGroupOffsets: %w", err)
		}
		for topic, partitions := range fetched.Blocks {
			for partition, block := range partitions {
				offsets[fmt.Sprintf("%s-%d", topic, partition)] = block.Offset
			}
		}
		found[group.GroupId] = seen{listed[group.GroupId], group.State, group.Err.Error(), sorted(clients), offsets}
	}
	return found, nil
}

func errorName(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func sorted(texts []string) []string {
	sort.Strings(texts)
	return texts
}
