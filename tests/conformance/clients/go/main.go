// Clients in Go in transactions: commit, abort, offsets, and a producer that the next one fences.
//
//	clients franz|sarama BOOTSTRAP TOPIC
//	clients write franz|sarama BOOTSTRAP INPUT OUTPUT ID
//	clients groups BOOTSTRAP
//	clients version BOOTSTRAP
//
// The last but one prints what consoles see of all groups, as JSON. The last prints the version of Apache Kafka that
// franz-go takes the server for, which kminion has as a metric.
// Prints JSON: what franz-go reads of the committed records, the group's offset after each of the transactions, and the
// error of the former producer. kafka-go is left out: it writes no transactions, and shows its readers the aborted ones.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

const limit = 120 * time.Second

// A client with a transactional id and a group, both named like the topic.
type client interface {
	// begin begins a transaction and writes a value to partition 0.
	begin(value string) error
	// sendOffset commits an offset of partition 0 to the group, if the transaction is committed.
	sendOffset(offset int64) error
	// end ends the transaction.
	end(commits bool) error
	// close ends the client; what it has open stays so.
	close()
}

var clients = map[string]func(context.Context, string, string) (client, error){
	"franz": newFranz, "sarama": newSarama,
}

type result struct {
	Read    []string
	Offsets []int64
	Fenced  string
}

func run(ctx context.Context, kind, bootstrap, topic string) (found result, err error) {
	reader, err := newReader(bootstrap, topic)
	if err != nil {
		return found, err
	}
	defer reader.client.Close()
	if found.Offsets, err = transact(ctx, kind, bootstrap, topic, reader); err != nil {
		return found, err
	}
	if found.Fenced, err = fence(ctx, kind, bootstrap, topic); err != nil {
		return found, err
	}
	found.Read, err = reader.read(ctx, 3)
	return found, err
}

func transact(ctx context.Context, kind, bootstrap, topic string, reader *reader) ([]int64, error) {
	one, err := clients[kind](ctx, bootstrap, topic)
	if err != nil {
		return nil, fmt.Errorf("init: %w", err)
	}
	offsets := []int64{}
	for number, commits := range []bool{true, false, false, true} {
		value := map[bool]string{true: "committed", false: "aborted"}[commits]
		if err := one.begin(value); err != nil {
			return nil, fmt.Errorf("begin: %w", err)
		}
		if err := one.sendOffset(int64(number + 1)); err != nil {
			return nil, fmt.Errorf("offsets: %w", err)
		}
		if err := one.end(commits); err != nil {
			return nil, fmt.Errorf("end: %w", err)
		}
		offset, err := reader.committed(ctx)
		if err != nil {
			return nil, fmt.Errorf("fetch: %w", err)
		}
		offsets = append(offsets, offset)
	}
	return offsets, nil
}

func fence(ctx context.Context, kind, bootstrap, topic string) (string, error) {
	former, err := clients[kind](ctx, bootstrap, topic)
	if err != nil {
		return "", err
	}
	if err := former.begin("of the former"); err != nil {
		return "", err
	}
	next, err := takeOver(ctx, kind, bootstrap, topic)
	if err != nil {
		return "", err
	}
	fenced := former.end(true)
	if fenced == nil {
		return "", fmt.Errorf("the former producer has committed")
	}
	if err := next.begin("of the next"); err != nil {
		return "", err
	}
	return fenced.Error(), next.end(true)
}

// takeOver makes a producer of an id whose transaction is open. The coordinator aborts that first, and neither client
// asks again by itself, on Apache Kafka either.
func takeOver(ctx context.Context, kind, bootstrap, topic string) (client, error) {
	for {
		made, err := clients[kind](ctx, bootstrap, topic)
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "concurrent operation") {
			return made, err
		}
	}
}

func version(bootstrap string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(bootstrap, ",")...))
	if err != nil {
		return "", err
	}
	defer client.Close()
	answer, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, client)
	if err != nil {
		return "", err
	}
	return kversion.FromApiVersionsResponse(answer).VersionGuess(), nil
}

func main() {
	if os.Args[1] == "version" {
		guess, err := version(os.Args[2])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(guess)
		return
	}
	if os.Args[1] == "groups" {
		printGroups(os.Args[2])
		return
	}
	if os.Args[1] == "write" { // reads nothing of INPUT, and OUTPUT is its id
		write(os.Args[2], os.Args[3], os.Args[5])
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	found, err := run(ctx, os.Args[1], os.Args[2], os.Args[3])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	json.NewEncoder(os.Stdout).Encode(found)
}
