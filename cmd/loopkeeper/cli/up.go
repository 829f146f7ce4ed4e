package cli

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/configs"
	"github.com/loopkeeper/loopkeeper/coordinator"
	"github.com/loopkeeper/loopkeeper/worker"
)

type upOptions struct {
	worker   workerFlags
	listen   string
	workers  []string
	noWorker bool
	effects  string
}

func newUp(a *app) *cobra.Command {
	var o upOptions
	c := &cobra.Command{
		Use: "up", Short: "Start the coordinator and a worker for this machine's Ollama",
		Long: "Start the coordinator, which keeps the books, and a worker for this machine's Ollama, in one process.\n\n" +
			"Other machines join with `loopkeeper worker --insecure-lan` and are found by mDNS, or are named with --worker.\n" +
			"Runs that were under way go on. Ctrl-C stops; what is running goes on at the next start.",
		Example: "  loopkeeper up\n  loopkeeper up --worker 192.168.1.20:7701 --no-mdns",
		Args:    cobra.NoArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.own = o.apply
			return a.configure(cmd)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return a.up(cmd.Context(), o) },
	}
	f := c.Flags()
	f.StringVar(&o.listen, "listen", "", "`ADDRESS` for the command line (default 127.0.0.1:7700)")
	f.StringArrayVar(&o.workers, "worker", nil, "`ADDRESS` of a worker, host:port, beside those that mDNS finds; may be repeated")
	f.BoolVar(&o.noWorker, "no-worker", false, "start no worker for this machine")
	f.StringVar(&o.worker.listen, "worker-listen", "", "`ADDRESS` of this machine's worker (default a free port on loopback)")
	f.StringVar(&o.effects, "simulated-effects", "", "have the tool effect.log, which tests use, append to this `FILE`")
	_ = f.MarkHidden("simulated-effects") // it is there
	o.worker.register(f)
	f.BoolVar(&o.worker.insecure, "insecure-lan", false, "let listeners leave this machine without certificates")
	f.BoolVar(&o.worker.noMDNS, "no-mdns", false, "find workers by --worker only")
	return c
}

func (o *upOptions) apply(c *configs.Config) map[string]string {
	out := o.worker.apply(c)
	if o.worker.listen != "" {
		out["worker.listen"] = "worker-listen"
	}
	for key, flag := range override(given{"coordinator.listen", "listen", o.listen, &c.Coordinator.Listen}) {
		out[key] = flag
	}
	if len(o.workers) > 0 {
		c.Coordinator.Workers, out["coordinator.workers"] = o.workers, "worker"
	}
	return out
}

// up runs coordinator and worker until ctx ends or one of them cannot go on.
func (a *app) up(ctx context.Context, o upOptions) error {
	began := time.Now()
	dir, err := a.dataDir()
	if err != nil {
		return err
	}
	l, err := a.listen(a.config.Coordinator.Listen, "--listen", a.config.InsecureLAN)
	if err != nil {
		return err
	}
	defer l.Close() // the server closes it; this is for the errors before
	w, local, err := a.localWorker(ctx, dir, o.noWorker)
	if err != nil {
		return err
	}
	if w != nil {
		defer w.Stop()
	}
	if a.effects = o.effects; a.effects != "" {
		a.note("simulated: the tool effect.log is there for tests; it appends to %s", a.effects)
	}
	co, closeLedger, err := a.startCoordinator(ctx, l, dir, local)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, addressFile)
	err = writeFile(path, reachable(l.Addr())+"\n")
	if err == nil {
		err = a.greet(l.Addr(), w, time.Since(began))
	}
	if err == nil {
		err = a.tellWhile(ctx, func(ctx context.Context) {
			t := newTeller(a.stdout)
			t.settings = a.config
			t.coordinator(ctx, reachable(l.Addr()))
		},
			func() error { return a.wait(ctx, co, w) })
	}
	co.Stop()
	return firstError(err, closeLedger(), os.Remove(path))
}

// localWorker starts the worker of this process. It listens on a free port, because nobody but this coordinator needs to
// find it.
func (a *app) localWorker(ctx context.Context, dir string, none bool) (*worker.Worker, string, error) {
	if none {
		return nil, "", nil
	}
	id, err := nodeID(dir, a.config.Name)
	if err != nil {
		return nil, "", err
	}
	addr := a.config.Worker.Listen
	if from := a.origins["worker.listen"]; from == "default" {
		addr = "127.0.0.1:0"
	}
	l, err := a.listen(addr, "--worker-listen", a.config.InsecureLAN)
	if err != nil {
		return nil, "", err
	}
	w, err := a.startWorker(ctx, l, id, false, nil)
	if err != nil {
		return nil, "", firstError(err, l.Close())
	}
	return w, reachable(l.Addr()), nil
}

// wait returns when ctx ends, or when coordinator or worker cannot go on.
func (a *app) wait(ctx context.Context, co *coordinator.Coordinator, w *worker.Worker) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ends := make(chan error, 2) // one for each
	parts := 1
	go func() { ends <- co.Wait(ctx) }()
	if w != nil {
		parts++
		go func() { ends <- w.Wait(ctx) }()
	}
	err := <-ends
	cancel()
	for range parts - 1 {
		err = firstError(err, <-ends)
	}
	return err
}

// greet says what was started, where, and what to do now. Programs get one line of JSON when all is ready.
func (a *app) greet(addr net.Addr, w *worker.Worker, took time.Duration) error {
	if a.json() {
		return ui.WriteJSONLine(a.stdout, map[string]any{"address": reachable(addr), "fleet": a.config.Fleet, "version": fullVersion()})
	}
	style, where := a.style(a.stdout), reachable(addr)
	if reach := lanAddresses(addr); len(reach) > 0 {
		where = strings.Join(reach, ", ")
	}
	fmt.Fprintf(a.stdout, "loopkeeper %s   coordinator %s   fleet %s   %s   ready in %s\n", fullVersion(), a.config.Name, a.config.Fleet,
		where, ui.Duration(took))
	model := "MODEL"
	if w != nil {
		var line string
		line, model = ui.WorkerLine(style, w.Report())
		fmt.Fprintf(a.stdout, "%s\n%s", line, ui.Warnings(style, w.Report()))
	}
	fmt.Fprintf(a.stdout, "%s ledger   %s\n", style.Mark("completed"), filepath.Join(a.config.DataDir, ledgerDir))
	if a.config.InsecureLAN && !loopback(hostOf(addr)) {
		a.warnInsecure(addr)
	}
	fmt.Fprintf(a.stdout, "Join another machine:  loopkeeper worker --insecure-lan --fleet %s\n", a.config.Fleet)
	_, err := fmt.Fprintf(a.stdout, "Next: loopkeeper map %s--model %s --prompt 'Summarise in three points: {{item}}' 'docs/*.md'\n", a.here(addr), model)
	return err
}

// here is the flag with which a command finds this coordinator, with the space after it; "" where it does so by itself, through what the
// default data folder and settings say.
func (a *app) here(addr net.Addr) string {
	if a.flags.config == "" && a.flags.dataDir == "" {
		return ""
	}
	return "--server " + reachable(addr) + " "
}

func (a *app) warnInsecure(addr net.Addr) {
	where := strings.Join(lanAddresses(addr), ", ")
	if where == "" {
		where = addr.String()
	}
	a.note("%s %s is open to the whole network, without certificates: anyone there can use this machine", a.style(a.stderr).Warn("warning:"), where)
}

func hostOf(addr net.Addr) string {
	host, _, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	return host
}
