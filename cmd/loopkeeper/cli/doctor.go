package cli

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/doctor"
	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/configs"
	"github.com/loopkeeper/loopkeeper/hwprobe/probe"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/proto/discovery"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

// doctorPatience is how long Ollama, or what answers at the worker's port, may take.
const doctorPatience = 3 * time.Second

func newDoctor(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Say what keeps this machine from being a good worker", Args: cobra.NoArgs,
		Long: "Look at what a worker on this machine needs: its hardware, Ollama, models, data folder, port and network. Each finding that is not\n" +
			"well says what to do. It needs no daemon and changes nothing.\n\n" +
			"Variables such as OLLAMA_NUM_PARALLEL are looked at as they are set here; Ollama may run with others.\n\n" +
			"Exit code 0: nothing is broken, there may be warnings. 1: something is.",
		Example: "  loopkeeper doctor\n  loopkeeper doctor -o json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context()) },
	}
}

func (a *app) doctor(ctx context.Context) error {
	found := doctor.Examine(a.facts(ctx))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	broken := doctor.Count(found, doctor.Error)
	var err error
	if a.json() {
		err = a.printJSON(map[string]any{"findings": found, "ok": doctor.Count(found, doctor.OK), "warnings": doctor.Count(found, doctor.Warning), "errors": broken})
	} else {
		err = a.printText(ui.Doctor(a.style(a.stdout), found))
	}
	if err == nil && broken > 0 {
		return exitWith(exitError)
	}
	return err
}

// facts looks at the machine.
func (a *app) facts(ctx context.Context) doctor.Facts {
	c := a.config
	f := doctor.Facts{Data: dataFacts(c.DataDir), Settings: doctor.Settings{File: a.settingsFile(), Slots: c.Worker.Slots, SlotsFrom: a.origins["worker.slots"],
		Context: c.Models.DefaultContext, InsecureLAN: c.InsecureLAN, MDNS: c.Discovery.MDNS}}
	var looking sync.WaitGroup
	looking.Go(func() {
		f.Hardware = probe.New(probe.Options{Machine: probe.ThisMachine(), Overrides: overrides(c.Worker.Hardware)}).Probe(ctx)
	})
	looking.Go(func() { f.Ollama = ollamaFacts(ctx, c.Worker.Ollama) })
	var ofWorker, ofCoordinator []doctor.Mode
	looking.Go(func() { f.Port, ofWorker = portFacts(ctx, c.Worker.Listen, c.Fleet) })
	looking.Go(func() { ofCoordinator, f.Roles = a.coordinatorFacts(ctx) })
	usable, skipped, err := discovery.Usable(c.Discovery.Interfaces)
	f.Network = doctor.Network{Skipped: skipped, Err: reason(err)}
	for _, i := range usable {
		f.Network.Interfaces = append(f.Network.Interfaces, i.Name)
	}
	looking.Wait()
	if f.Modes = ofWorker; len(f.Modes) == 0 {
		f.Modes = ofCoordinator
	}
	f.Settings.Strange = strangers(c, f.Ollama.Models, "this Ollama does not have")
	return f
}

// settingsFile is the file that the settings were read from; "" when there is none.
func (a *app) settingsFile() string {
	path := cmp.Or(a.flags.config, configs.FromSystem().Fallback)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

func ollamaFacts(ctx context.Context, url string) doctor.Ollama {
	ctx, cancel := context.WithTimeout(ctx, doctorPatience)
	defer cancel()
	f := doctor.Ollama{URL: url, Env: map[string]string{}}
	for _, name := range doctor.Variables {
		f.Env[name] = os.Getenv(name)
	}
	client, err := ollama.New(ollama.Options{BaseURL: url})
	if err != nil {
		f.Err = err.Error()
		return f
	}
	defer client.Close()
	server, err := client.Server(ctx)
	if err != nil {
		f.Err = reason(root(err))
		return f
	}
	f.Version, f.Simulated = server.Version, server.Simulated
	models, err := client.Models(ctx)
	for _, m := range models {
		f.Models = append(f.Models, m.Name)
	}
	f.Err = reason(err)
	return f
}

// dataFacts tries to write where the data folder is, or will be made.
func dataFacts(dir string) doctor.Data {
	f := doctor.Data{Dir: dir}
	at := dir
	for {
		_, err := os.Stat(at)
		if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(at) == at {
			break
		}
		at = filepath.Dir(at)
	}
	file, err := os.CreateTemp(at, ".doctor-*")
	if err == nil {
		err = errors.Join(file.Close(), os.Remove(file.Name()))
	}
	f.Err = reason(err)
	return f
}

// portFacts tries the address that a worker would listen on, and asks who is there when somebody is, and what it knows of its models.
func portFacts(ctx context.Context, addr, fleet string) (doctor.Port, []doctor.Mode) {
	f := doctor.Port{Address: addr}
	l, err := net.Listen("tcp", addr)
	if err == nil {
		f.Free = true
		_ = l.Close()
		return f, nil
	}
	f.Err = err.Error()
	if !errors.Is(err, syscall.EADDRINUSE) {
		return f, nil
	}
	host, number, _ := net.SplitHostPort(addr) // the settings were checked
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	conn, err := dial(net.JoinHostPort(host, number))
	if err != nil {
		return f, nil
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, doctorPatience)
	defer cancel()
	d, err := workerv1.NewWorkerServiceClient(conn).Describe(ctx, &workerv1.DescribeRequest{Fleet: fleet, CoordinatorVersion: release})
	switch e := apierr.As(apierr.FromStatus(err)); {
	case err == nil:
		f.Worker, f.Err = "the worker "+d.GetName()+" "+d.GetVersion(), ""
		return f, modeFacts(d.GetReport())
	case e.Code == apierr.Conflict:
		f.Worker, f.Err = "a worker", e.Message
	}
	return f, nil
}

// root is what began an error: where it happened is said already.
func root(err error) error {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err
}

func reason(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
