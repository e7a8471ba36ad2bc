// Command kstatus reads objects on stdin, one JSON a line, and answers each with a line: the status that kstatus gives
// it (Current, InProgress, Failed, Terminating, Unknown), a space, and its message. Flux and kubectl-based tools judge
// objects by this library.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

const lineBytesMax = 16 << 20

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, lineBytesMax)
	for lines.Scan() {
		fmt.Println(verdict(lines.Bytes()))
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func verdict(line []byte) string {
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(line); err != nil {
		return "Error " + oneLine(err.Error())
	}
	result, err := status.Compute(&object)
	if err != nil {
		return "Error " + oneLine(err.Error())
	}
	return result.Status.String() + " " + oneLine(result.Message)
}

func oneLine(text string) string {
	return strings.Join(strings.Fields(text), " ")
}
