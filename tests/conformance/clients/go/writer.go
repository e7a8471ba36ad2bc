package main

import (
	"context"
	"fmt"
	"time"
)

const (
	abortedEach = 4
	again       = 200 * time.Millisecond
)

// write writes a transaction of one record after the other, until it is killed: transaction N writes N, and every fourth
// one is aborted. stdout has a line for each: `committed N`, `aborted N`, or `unknown N ERROR`, after which another
// producer takes the id over.
func write(kind, bootstrap, topic string) {
	for number := 0; ; time.Sleep(again) {
		one, err := takeOver(context.Background(), kind, bootstrap, topic)
		if err != nil {
			fmt.Println("no producer:", err)
			continue
		}
		for ; err == nil; number++ {
			err = transaction(one, number)
		}
		one.close()
	}
}

func transaction(one client, number int) error {
	commits := number%abortedEach != 0
	err := one.begin(fmt.Sprint(number))
	if err == nil {
		err = one.end(commits)
	}
	if err != nil {
		fmt.Println("unknown", number, err)
	} else if commits {
		fmt.Println("committed", number)
	} else {
		fmt.Println("aborted", number)
	}
	return err
}
