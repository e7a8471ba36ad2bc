// Command control is etcd, kube-apiserver, kube-controller-manager and kubectl in one static binary; the name it is
// called by (a symlink) says which of them runs. One binary is linked once and holds the shared code once.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	var command *cobra.Command // only the one that is asked for is made: each sets what is global in a process
	switch name := filepath.Base(os.Args[0]); name {
	case "etcd":
		etcdmain.Main(os.Args)
		return
	case "kubectl":
		kubectlutil.CheckErr(cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()))
		return
	case "kube-apiserver":
		command = apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		command = controllers.NewControllerManagerCommand()
	default:
		fmt.Fprintf(os.Stderr, "control: called as %q; call it as etcd, kube-apiserver, kube-controller-manager or kubectl\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(command))
}
