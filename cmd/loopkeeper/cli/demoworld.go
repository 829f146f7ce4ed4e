package cli

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/fleet"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// world is what the demo starts: processes and a folder. stop undoes all of it.
type world struct {
	a         *app
	program   string
	dir       string
	fleet     string
	loopback  string // name of the loopback interface
	server    string // address of the coordinator
	workers   []ready
	processes []*process
}

// ready is what a daemon says on its first line when it was asked for JSON.
type ready struct {
	Node    string `json:"node"`
	Address string `json:"address"`
}

func newWorld(a *app) (*world, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	dir, err := os.MkdirTemp("", "loopkeeper-demo-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the demo: %w", err)
	}
	suffix := make([]byte, 3)
	rand.Read(suffix) // never fails
	// Linux ends a child with the thread that started it, not with the process: this one must last.
	runtime.LockOSThread()
	return &world{a: a, program: program, dir: dir, fleet: "demo-" + hex.EncodeToString(suffix), loopback: loopbackName()}, nil
}

func loopbackName() string {
	all, err := net.Interfaces()
	if err != nil {
		return "lo"
	}
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 {
			return i.Name
		}
	}
	return "lo"
}

// stop ends every process, the newest first, and removes the folder.
func (w *world) stop() error {
	var errs []error
	for _, p := range slices.Backward(w.processes) {
		errs = append(errs, p.stop())
	}
	return errors.Join(append(errs, os.RemoveAll(w.dir))...)
}

// startWorkers starts the two workers, each with its own data folder.
func (w *world) startWorkers(ctx context.Context, o ollamas) error {
	settings := fmt.Sprintf("discovery:\n  interfaces: [%q]\n  interval: 1s\nworker:\n  heartbeat: 1s\n", w.loopback)
	if err := os.WriteFile(w.settings(), []byte(settings), 0o600); err != nil {
		return fmt.Errorf("write the settings of the demo: %w", err)
	}
	for i, name := range []string{"left", "right"} {
		args := []string{"worker", "--name", name, "--listen", "127.0.0.1:0", "--ollama", o.urls[i], "--data-dir", filepath.Join(w.dir, name)}
		if o.simulated {
			args = append(args, "--slots", "2")
		}
		line, err := w.start(ctx, w.program, append(args, w.common()...)...)
		if err != nil {
			return fmt.Errorf("start the worker %s: %w", name, err)
		}
		var r ready
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return fmt.Errorf("start the worker %s: it said %q", name, line)
		}
		w.workers = append(w.workers, r)
	}
	return nil
}

func (w *world) settings() string { return filepath.Join(w.dir, "demo.yaml") }

func (w *world) common() []string {
	return []string{"--config", w.settings(), "--fleet", w.fleet, "--log-level", w.a.config.LogLevel, "-o", "jsonl"}
}

// startCoordinator starts the coordinator and says how it finds the workers: by mDNS where loopback carries it.
func (w *world) startCoordinator(ctx context.Context) (how string, err error) {
	args := []string{"up", "--no-worker", "--listen", "127.0.0.1:0", "--name", "demo", "--data-dir", filepath.Join(w.dir, "coordinator")}
	how = "they find each other by mDNS on " + w.loopback
	if !w.multicast(ctx) {
		how = "static addresses, because there is no multicast on " + w.loopback
		args = append(args, "--no-mdns")
		for _, worker := range w.workers {
			args = append(args, "--worker", worker.Address)
		}
	}
	line, err := w.start(ctx, w.program, append(args, w.common()...)...)
	if err != nil {
		return "", fmt.Errorf("start the coordinator: %w", err)
	}
	var r ready
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		return "", fmt.Errorf("start the coordinator: it said %q", line)
	}
	w.server = r.Address
	return how, nil
}

// multicast says whether both workers can be found by mDNS on loopback.
func (w *world) multicast(ctx context.Context) bool {
	for range 2 {
		found, err := fleet.MDNS{Fleet: w.fleet, Interfaces: []string{w.loopback}}.Find(ctx)
		if err == nil && len(found.Records) == len(w.workers) {
			return true
		}
	}
	return false
}

// process is a child that ends with us.
type process struct {
	cmd  *exec.Cmd
	name string
	gone chan struct{} // closed when it has ended
}

// start runs a program and returns its first line, which says that it is ready.
func (w *world) start(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.Command(program, args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LOOPKEEPER_") })
	cmd.Stderr = w.a.stderr
	own(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	p := &process{cmd: cmd, name: args[0], gone: make(chan struct{})}
	w.processes = append(w.processes, p)
	first := make(chan string, 1) // the first line, or "" when there was none
	go func() {
		defer close(p.gone)
		r := bufio.NewReader(out)
		line, _ := r.ReadString('\n')
		first <- strings.TrimSpace(line)
		_, _ = io.Copy(io.Discard, r) // nobody reads on, and the child must not block
		_ = cmd.Wait()                // its end is what matters, not its code
	}()
	wait := time.NewTimer(startTime)
	defer wait.Stop()
	select {
	case line := <-first:
		if line == "" {
			return "", apierr.New(apierr.Internal, "%s ended before it was ready", filepath.Base(program))
		}
		return line, nil
	case <-ctx.Done():
		return "", ctx.Err()
	case <-wait.C:
		return "", apierr.New(apierr.Internal, "%s was not ready within %s", filepath.Base(program), startTime)
	}
}

const (
	startTime = 30 * time.Second // a first nvidia-smi can take many
	stopTime  = 5 * time.Second
)

// stop asks the process to end, and makes it end when it does not.
func (p *process) stop() error {
	terminate(p.cmd)
	wait := time.NewTimer(stopTime)
	defer wait.Stop()
	select {
	case <-p.gone:
		return nil
	case <-wait.C:
	}
	kill(p.cmd)
	<-p.gone
	return fmt.Errorf("%s did not stop within %s and was killed", p.name, stopTime)
}
