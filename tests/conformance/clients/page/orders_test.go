package orders

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Uses the function of the page: a record goes in and comes out.
func TestAnOrderArrives(t *testing.T) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(startKavka(t)), kgo.ConsumeTopics("orders"), kgo.AllowAutoTopicCreation(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	record := &kgo.Record{Topic: "orders", Value: []byte("an order")}
	if err := client.ProduceSync(context.Background(), record).FirstErr(); err != nil {
		t.Fatal(err)
	}
	for {
		for _, record := range client.PollFetches(context.Background()).Records() {
			if string(record.Value) != "an order" {
				t.Fatalf("%s has come", record.Value)
			}
			return
		}
	}
}
