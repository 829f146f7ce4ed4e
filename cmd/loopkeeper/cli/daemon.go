package cli

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"

	"github.com/loopkeeper/loopkeeper/configs"
	"github.com/loopkeeper/loopkeeper/coordinator"
	"github.com/loopkeeper/loopkeeper/coordinator/fleet"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/coordinator/tools"
	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/worker"
)

// workerFlags are the settings of a worker that have a flag.
type workerFlags struct {
	listen, ollama, name string
	slots                int
	memory               configs.Size
	insecure, noMDNS     bool
	given                *pflag.FlagSet // tells what was said at all
}

// register adds the flags that a worker has under the same name in every command that starts one.
func (f *workerFlags) register(flags *pflag.FlagSet) {
	f.given = flags
	flags.StringVar(&f.ollama, "ollama", "", "`URL` of this machine's Ollama")
	flags.StringVar(&f.name, "name", "", "`NAME` of this machine on screens")
	flags.IntVar(&f.slots, "slots", 0, "`NUMBER` of generations per model that this Ollama runs at once")
	flags.Var(&f.memory, "memory", "`SIZE` that this machine has for models, such as 10GiB, where the probe cannot tell or you know better")
}

func (f *workerFlags) apply(c *configs.Config) map[string]string {
	out := override(given{"worker.listen", "listen", f.listen, &c.Worker.Listen}, given{"worker.ollama", "ollama", f.ollama, &c.Worker.Ollama},
		given{"name", "name", f.name, &c.Name})
	if f.given.Changed("slots") {
		c.Worker.Slots, out["worker.slots"] = f.slots, "slots"
	}
	if f.memory != 0 {
		c.Worker.Hardware.Memory, out["worker.hardware.memory"] = f.memory, "memory"
	}
	if f.insecure {
		c.InsecureLAN, out["insecure_lan"] = true, "insecure-lan"
	}
	if f.noMDNS {
		c.Discovery.MDNS, out["discovery.mdns"] = false, "no-mdns"
	}
	return out
}

// startWorker starts this machine's worker on l. tell is told who connects; nil when nobody wants to know.
func (a *app) startWorker(ctx context.Context, l net.Listener, id string, announce bool, tell *teller) (*worker.Worker, error) {
	c, server := a.config, serverOptions()
	if tell != nil && !a.json() {
		server = append(server, grpc.StatsHandler(&callers{t: tell, open: map[string]int{}}))
	}
	return worker.Start(ctx, worker.Options{NodeID: id, Name: c.Name, Fleet: c.Fleet, Version: release, Ollama: c.Worker.Ollama, Slots: c.Worker.Slots,
		Overrides: overrides(c.Worker.Hardware), Heartbeat: c.Worker.Heartbeat, Listener: l, Server: server, Announce: announce,
		Interfaces: c.Discovery.Interfaces, Log: a.log})
}

// overrides are the settings about the hardware as the probe takes them.
func overrides(h configs.Hardware) (o hwprobe.Overrides) {
	if h.Memory > 0 {
		o.Pools = append(o.Pools, hwprobe.PoolOverride{Pool: hwprobe.MainPool, TotalBytes: hwprobe.Known(uint64(h.Memory))})
	}
	for _, p := range h.Pools {
		pool := hwprobe.PoolOverride{Pool: p.ID, ReserveBytes: uint64(p.Reserve)}
		if p.Total > 0 {
			pool.TotalBytes = hwprobe.Known(uint64(p.Total))
		}
		o.Pools = append(o.Pools, pool)
	}
	for _, d := range h.Devices {
		o.Devices = append(o.Devices, hwprobe.DeviceOverride{Device: d.ID, Hide: d.Hide, Force: d.Force})
	}
	return o
}

// startCoordinator opens the ledger and starts the coordinator on l; local is the address of the worker in this process,
// or "". What it returns second closes the ledger and the host of scripts, and must be called after Stop.
func (a *app) startCoordinator(ctx context.Context, l net.Listener, dir, local string) (*coordinator.Coordinator, func() error, error) {
	c := a.config
	texts, err := promptSet(c)
	if err != nil {
		return nil, nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("find this program, which hosts the scripts: %w", err)
	}
	host := script.NewChildHost(script.ChildOptions{Command: []string{program, scriptHostCommand},
		Limits: script.Limits{CPU: c.Script.CPU, Memory: int64(c.Script.Memory)}})
	host.Warm() // a run that was under way needs it as soon as it is read
	store, err := ledger.Open(ctx, ledger.Options{Dir: filepath.Join(dir, ledgerDir), Log: a.log.With("part", "ledger")})
	if err != nil {
		host.Close()
		return nil, nil, err
	}
	closeBoth := func() error { host.Close(); return store.Close() }
	var discover *fleet.MDNS
	if c.Discovery.MDNS {
		discover = &fleet.MDNS{Fleet: c.Fleet, Interfaces: c.Discovery.Interfaces}
	}
	o := coordinator.Options{Name: c.Name, Fleet: c.Fleet, Version: release, DataDir: dir, Store: store, Host: host,
		Listener: l, Server: serverOptions(), Dial: func(addr string) (*grpc.ClientConn, error) { return dial(addr) }, Workers: c.Coordinator.Workers,
		Prompts: texts, PromptsFolder: c.Prompts, Local: local, Discover: discover, Interval: c.Discovery.Interval, LostAfter: c.Coordinator.LostAfter, MaxRuns: c.Coordinator.ActiveRuns, Log: a.log}
	if a.effects != "" {
		o.EffectLog = &tools.EffectLog{Path: a.effects, Exit: func() { os.Exit(exitError) }} // as a crash: nothing is tidied up
	}
	var co *coordinator.Coordinator
	if err = place(c, a.origins, &o); err == nil {
		co, err = coordinator.Start(ctx, o)
	}
	if err != nil {
		return nil, nil, firstError(err, closeBoth())
	}
	return co, closeBoth, nil
}

// reachable is the address under which a listener on this machine is reached from this machine.
func reachable(l net.Addr) string {
	tcp, ok := l.(*net.TCPAddr)
	if ok && tcp.IP.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
	}
	return l.String()
}
