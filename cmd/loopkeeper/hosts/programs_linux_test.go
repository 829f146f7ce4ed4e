package hosts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// programs is the folder of the programs that the tests run, built as users get them; "" when no test can run.
var programs string

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	if unable() != nil {
		return m.Run(), nil // each test says why it is skipped
	}
	dir, err := os.MkdirTemp("", "loopkeeper-hosts-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	programs = dir
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", programs+"/", "../../loopkeeper", "../../fakeollama")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build: %w\n%s", err, out)
	}
	code := m.Run()
	if code == 0 {
		err = goleak.Find()
	}
	return code, err
}

// needHosts skips the test where there can be no hosts, which is never in CI. Tests run side by side, each in a network of
// its own.
func needHosts(t *testing.T) {
	t.Helper()
	err := unable()
	switch {
	case err != nil && os.Getenv("CI") == "true":
		t.Fatalf("hosts in network namespaces must work in CI: %v", err)
	case err != nil:
		t.Skipf("hosts in network namespaces are left out: %v", err)
	}
	t.Parallel()
}

// settings are the defaults but for time, which the tests have less of.
const settings = "coordinator:\n  lost_after: 3s\nworker:\n  heartbeat: 500ms\ndiscovery:\n  interval: 1s\n"

// configure writes the settings file of the host's user.
func (h *host) configure(t *testing.T, text string) {
	t.Helper()
	dir := filepath.Join(h.home, ".config", "loopkeeper")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "loopkeeper.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// program is one of ours on the host, as its user runs it.
func (h *host) program(name string, args ...string) *exec.Cmd {
	cmd := h.command(filepath.Join(programs, name), args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.home, "LOOPKEEPER_NAME=" + h.name, "OLLAMA_NUM_PARALLEL=2"}
	return cmd
}

const (
	startTime = 30 * time.Second
	stopTime  = 15 * time.Second
)

// start starts a program that goes on running and waits for its first line, which says that it is ready. At the end of
// the test it is asked to stop, and must.
func (h *host) start(t *testing.T, name string, args ...string) (stop func()) {
	t.Helper()
	cmd := h.program(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	ready := &firstLine{seen: make(chan struct{})}
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = ready, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var failure error // of the program; read after ended
	go func() {
		defer close(ended)
		failure = cmd.Wait()
	}()
	what := fmt.Sprintf("%s: %s %s", h.name, name, strings.Join(args, " "))
	stop = func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) // an error means that it has ended
		if !within(stopTime, ended) {
			t.Errorf("%s does not stop when asked to", what)
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			<-ended
		}
	}
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("%s ended with %v and had logged:\n%s", what, failure, &log)
		}
	})
	if !within(startTime, ready.seen) {
		t.Fatalf("%s is not ready after %s", what, startTime)
	}
	return stop
}

// within says whether the channel is closed in time.
func within(limit time.Duration, closed <-chan struct{}) bool {
	end := time.NewTimer(limit)
	defer end.Stop()
	select {
	case <-closed:
		return true
	case <-end.C:
		return false
	}
}

// firstLine closes seen when a whole line was written, and drops the text. Only the copier of one command writes to it.
type firstLine struct {
	seen chan struct{}
	done bool
}

func (f *firstLine) Write(p []byte) (int, error) {
	if !f.done && bytes.IndexByte(p, '\n') >= 0 {
		f.done = true
		close(f.seen)
	}
	return len(p), nil
}

// ask runs loopkeeper on the host with -o json, decodes what it prints into answer and returns its exit code.
func (h *host) ask(t *testing.T, answer any, args ...string) int {
	t.Helper()
	cmd := h.program("loopkeeper", append(args, "-o", "json")...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		t.Logf("%s: loopkeeper %v: %s", h.name, args, exit.Stderr)
	} else if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, answer); err != nil {
		t.Fatalf("%s: loopkeeper %v printed no JSON: %v\n%s", h.name, args, err, out)
	}
	return cmd.ProcessState.ExitCode()
}

// eventually asks again until the answer is yes, and shows the last one when it never is.
func eventually(t *testing.T, limit time.Duration, what string, asked func() (yes bool, seen any)) {
	t.Helper()
	began := time.Now()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for tries := 1; ; tries++ {
		yes, seen := asked()
		switch {
		case yes && tries > 1:
			t.Logf("%s after %.1f s", what, time.Since(began).Seconds())
			return
		case yes:
			return
		case time.Since(began) > limit:
			t.Fatalf("not within %s: %s; last seen %+v", limit, what, seen)
		}
		<-again.C
	}
}
