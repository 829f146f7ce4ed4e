package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/worker"
)

func newWorker(a *app) *cobra.Command {
	var o workerFlags
	c := &cobra.Command{
		Use: "worker", Short: "Lend this machine's Ollama to the coordinator of its fleet",
		Long: "Lend this machine's Ollama to the coordinator of its fleet.\n\n" +
			"The coordinator finds it by mDNS, or by `loopkeeper up --worker HOST:PORT` there. Without --insecure-lan it listens on\n" +
			"this machine only. With it, anyone on the network can use the GPU: there are no certificates yet.",
		Example: "  loopkeeper worker --insecure-lan\n  loopkeeper worker --ollama http://127.0.0.1:11435 --listen 127.0.0.1:7702 --name second",
		Args:    cobra.NoArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.own = o.apply
			return a.configure(cmd)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return a.work(cmd.Context()) },
	}
	f := c.Flags()
	f.StringVar(&o.listen, "listen", "", "`address` for the coordinator (default 127.0.0.1:7701, with --insecure-lan 0.0.0.0:7701)")
	f.StringVar(&o.ollama, "ollama", "", "`URL` of this machine's Ollama")
	f.StringVar(&o.name, "name", "", "what this machine is `called` on screens")
	f.IntVar(&o.slots, "slots", 0, "`number` of generations per model that this Ollama runs at once")
	f.BoolVar(&o.insecure, "insecure-lan", false, "listen on the network without certificates")
	f.BoolVar(&o.noMDNS, "no-mdns", false, "do not announce this worker")
	return c
}

// work runs this machine's worker until ctx ends.
func (a *app) work(ctx context.Context) error {
	dir, err := a.dataDir()
	if err != nil {
		return err
	}
	id, err := nodeID(dir, a.config.Name)
	if err != nil {
		return err
	}
	l, err := listen(a.config.Worker.Listen, "--listen", a.config.InsecureLAN)
	if err != nil {
		return err
	}
	w, err := a.startWorker(ctx, l, id, a.config.Discovery.MDNS)
	if err != nil {
		return firstError(err, l.Close())
	}
	if err = a.greetWorker(w, id); err == nil {
		err = w.Wait(ctx)
	}
	w.Stop()
	return err
}

// greetWorker says what was started and where. Programs get one line of JSON when all is ready.
func (a *app) greetWorker(w *worker.Worker, id string) error {
	addr := w.Addr()
	if a.json() {
		return ui.WriteJSONLine(a.stdout, map[string]any{"node": id, "address": reachable(addr), "fleet": a.config.Fleet, "version": fullVersion(),
			"simulated": w.Report().GetSimulated()})
	}
	line, _ := ui.WorkerLine(a.style(a.stdout), w.Report())
	how := "announced by mDNS"
	if !a.config.Discovery.MDNS {
		how = "not announced"
	}
	fmt.Fprintf(a.stdout, "loopkeeper %s   worker %s   fleet %s   %s, %s\n%s\n", fullVersion(), id, a.config.Fleet, addr, how, line)
	if !loopback(hostOf(addr)) {
		a.warnInsecure(addr)
	}
	_, err := fmt.Fprintf(a.stdout, "Next: loopkeeper nodes, on the coordinator; loopkeeper up --worker %s there when it is not found\n", addr)
	return err
}
