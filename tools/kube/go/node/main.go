// Command node is what a node of a Kubernetes runs, and its scheduler: kubelet, kube-proxy, kube-scheduler and a small
// provisioner of volumes. The name it is called by (a symlink) says which of them runs.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	var command *cobra.Command // only the one that is asked for is made: each sets what is global in a process
	switch name := filepath.Base(os.Args[0]); name {
	case "volume-provisioner":
		provisionVolumes()
		return
	case "kube-scheduler":
		command = scheduler.NewSchedulerCommand()
	case "kubelet":
		command = kubelet.NewKubeletCommand(context.Background())
	case "kube-proxy":
		command = proxy.NewProxyCommand()
	default:
		fmt.Fprintf(os.Stderr, "node: called as %q; call it as kubelet, kube-proxy, kube-scheduler or volume-provisioner\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(command))
}
