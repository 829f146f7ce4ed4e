package cli

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"

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
		Example: "  loopkeeper worker --insecure-lan\n  loopkeeper worker --ollama http://127.0.0.1:11435 --listen 127.0.0.1:7702 \\\n      --name second --data-dir ~/second  # another one on this machine",
		Args:    cobra.NoArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.own = o.apply
			return a.configure(cmd)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return a.work(cmd.Context()) },
	}
	f := c.Flags()
	f.StringVar(&o.listen, "listen", "", "`ADDRESS` for the coordinator (default 127.0.0.1:7701, with --insecure-lan 0.0.0.0:7701)")
	o.register(f)
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
	l, err := a.listen(a.config.Worker.Listen, "--listen", a.config.InsecureLAN)
	if err != nil {
		return err
	}
	tell := newTeller(a.stdout)
	w, err := a.startWorker(ctx, l, id, a.config.Discovery.MDNS, tell)
	if err != nil {
		return firstError(err, l.Close())
	}
	if err = a.greetWorker(w, id); err == nil {
		err = a.tellWhile(ctx, func(ctx context.Context) { tell.worker(ctx, w) }, func() error { return w.Wait(ctx) })
	}
	w.Stop()
	return err
}

// tellWhile has somebody tell what happens as long as work goes on. Programs, which read JSON, are not told.
func (a *app) tellWhile(ctx context.Context, tell func(context.Context), work func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	var telling sync.WaitGroup
	if !a.json() {
		telling.Go(func() { tell(ctx) })
	}
	err := work()
	cancel()
	telling.Wait()
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
	reach := lanAddresses(addr)
	fmt.Fprintf(a.stdout, "loopkeeper %s   worker %s   fleet %s   %s\n%s\n%s", fullVersion(), a.config.Name, a.config.Fleet, a.howFound(addr, reach), line,
		ui.Warnings(a.style(a.stdout), w.Report()))
	switch {
	case !loopback(hostOf(addr)):
		a.warnInsecure(addr)
	case a.config.InsecureLAN:
		_, port, _ := net.SplitHostPort(addr.String()) // a listener's address has a port
		a.note("%s it listens on %s, so no other machine can reach it, in spite of --insecure-lan (worker.listen: %s)", a.style(a.stderr).Warn("warning:"),
			addr, a.origins["worker.listen"])
		a.next("loopkeeper worker --insecure-lan --listen 0.0.0.0:" + port)
		return nil
	}
	where := reachable(addr)
	if len(reach) > 0 {
		where = reach[0]
	}
	_, err := fmt.Fprintf(a.stdout, "Next: loopkeeper nodes  # on the coordinator; loopkeeper up --worker %s there when it is not found\n", where)
	return err
}

// howFound says where a worker can be reached and how a coordinator learns of it.
func (a *app) howFound(addr net.Addr, reach []string) string {
	switch {
	case len(reach) == 0:
		return reachable(addr) + ", for this machine only"
	case !a.config.Discovery.MDNS:
		return strings.Join(reach, ", ") + ", not announced"
	default:
		return strings.Join(reach, ", ") + ", announced by mDNS"
	}
}
