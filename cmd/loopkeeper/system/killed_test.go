package system

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

// home is the program as users have it: a folder with its settings and documents, and processes that can be killed.
type home struct {
	t       *testing.T
	dir     string
	program string
	stands  []*ollamatest.Server
	workers []*process
	at      []string // addresses of the workers
	up      *process
	server  string // address of the coordinator
}

// process is a daemon of ours.
type process struct {
	cmd *exec.Cmd
	log *bytes.Buffer // what it wrote on stderr; to be read after it ended
}

const settings = "fleet: killed\nlog_level: info\ncoordinator:\n  lost_after: 6s\nworker:\n  heartbeat: 1s\ndiscovery:\n  mdns: false\n"

// newHome builds the program, writes n documents and starts two workers over stand-ins that take an eighth of a second
// for an answer.
func newHome(t *testing.T, n int) *home {
	t.Helper()
	h := &home{t: t, dir: t.TempDir(), server: freeAddress(t)}
	h.program = filepath.Join(h.dir, "loopkeeper")
	build := exec.Command("go", "build", "-trimpath", "-o", h.program, "github.com/loopkeeper/loopkeeper/cmd/loopkeeper")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as in the Makefile, so that what was compiled there need not be again
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	h.write("loopkeeper.yaml", settings)
	for i := range n {
		h.write(fmt.Sprintf("docs/%03d.txt", i), report(i)+"\n")
	}
	for i := range 2 {
		stand := ollamatest.New(ollamatest.Config{DecodeRate: 150, Models: []ollamatest.Model{{Name: model, Vocab: 4096}}})
		h.stands = append(h.stands, stand)
		h.at, h.workers = append(h.at, freeAddress(t)), append(h.workers, nil)
		url := stand.Start(t)
		h.write(fmt.Sprintf("url-%d", i), url)
		h.startWorker(i)
	}
	t.Cleanup(func() {
		for _, p := range append(h.workers, h.up) {
			if p != nil {
				p.kill()
			}
		}
	})
	return h
}

func (h *home) write(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// freeAddress is one that nobody listens on now, for a daemon that has to be found there again after its death.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// command is one call of the program with nothing of this process's settings.
func (h *home) command(data string, args ...string) *exec.Cmd {
	c := exec.Command(h.program, append(args, "--config", filepath.Join(h.dir, "loopkeeper.yaml"), "--data-dir", filepath.Join(h.dir, data))...)
	c.Dir = h.dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.dir}
	return c
}

// daemon starts the program and waits for the line that says it is ready.
func (h *home) daemon(data string, args ...string) *process {
	h.t.Helper()
	p := &process{cmd: h.command(data, args...), log: &bytes.Buffer{}}
	p.cmd.Stderr = p.log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "Next: ") { // the last one that it says
			return p
		}
	}
	p.kill()
	h.t.Fatalf("%v ended before it was ready:\n%s", args, p.log)
	return nil
}

// kill is kill -9.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	_ = p.cmd.Wait()         // says that it was killed
}

func (h *home) startWorker(i int) {
	h.t.Helper()
	url, err := os.ReadFile(filepath.Join(h.dir, fmt.Sprintf("url-%d", i)))
	if err != nil {
		h.t.Fatal(err)
	}
	h.workers[i] = h.daemon(fmt.Sprintf("worker-%d", i), "worker", "--listen", h.at[i], "--ollama", string(url), "--name", fmt.Sprintf("machine %d", i+1))
}

// startCoordinator starts it on the ledger in the folder data.
func (h *home) startCoordinator(data string) {
	h.t.Helper()
	h.up = h.daemon(data, "up", "--no-worker", "--listen", h.server, "--worker", h.at[0], "--worker", h.at[1])
}

// line is a line of a results file, as far as it does not depend on where and when.
type line struct{ Key, State, Text string }

// batch starts a map over all documents that writes to out, and returns it running.
func (h *home) batch(out string) *exec.Cmd {
	h.t.Helper()
	c := h.command("client", "map", "--server", h.server, "--model", model, "--prompt", "Sum the report up.", "--out", out, "docs")
	c.Stdout, c.Stderr = io.Discard, &bytes.Buffer{}
	if err := c.Start(); err != nil {
		h.t.Fatal(err)
	}
	return c
}

// finish waits for a batch, which must end completed, and returns its results.
func (h *home) finish(c *exec.Cmd, out string) (results []line) {
	h.t.Helper()
	if err := c.Wait(); err != nil {
		h.t.Fatalf("the batch ended with %v:\n%s", err, c.Stderr)
	}
	text, err := os.ReadFile(filepath.Join(h.dir, out))
	if err != nil {
		h.t.Fatal(err)
	}
	for l := range strings.Lines(string(text)) {
		var r line
		if err := json.Unmarshal([]byte(l), &r); err != nil {
			h.t.Fatalf("%s: %v", l, err)
		}
		results = append(results, r)
	}
	return results
}

// calls are the answers that the stand-ins were asked for since the last reset.
func (h *home) calls() (out []ollamatest.Call) {
	for _, s := range h.stands {
		for _, c := range s.Calls() {
			if c.Prompt != "" {
				out = append(out, c)
			}
		}
	}
	return out
}

// until waits until n answers were asked for, or the batch has ended.
func (h *home) until(n int) {
	h.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	give := time.After(time.Minute)
	for len(h.calls()) < n {
		select {
		case <-tick.C:
		case <-give:
			h.t.Fatalf("after a minute %d of %d calls were made", len(h.calls()), n)
		}
	}
}

func TestKilledProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("left out: a batch of 200 items while coordinator and worker are killed takes a minute")
	}
	const n, kills = 200, 10
	h := newHome(t, n)
	h.startCoordinator("undisturbed")
	want := h.finish(h.batch("undisturbed.jsonl"), "undisturbed.jsonl")
	if len(want) != n || want[7].Text != report(7) || want[7].State != "succeeded" {
		t.Fatalf("undisturbed there are %d results, the eighth is %v", len(want), want[7])
	}
	h.up.kill()
	t.Run("the coordinator", func(t *testing.T) { h.coordinatorKilled(t, want, kills) })
	t.Run("a worker", func(t *testing.T) { h.workerKilled(t, want) })
}

func (h *home) coordinatorKilled(t *testing.T, want []line, kills int) {
	for _, s := range h.stands {
		s.Reset()
	}
	rng := random(t)
	h.startCoordinator("disturbed")
	batch := h.batch("disturbed.jsonl")
	h.until(1)
	for range kills {
		moment := time.NewTimer(time.Duration(rng.IntN(800)) * time.Millisecond) // the random moment is what is tested
		<-moment.C
		h.up.kill()
		h.startCoordinator("disturbed")
	}
	if calls := len(h.calls()); calls >= len(want) {
		t.Errorf("the batch had ended before the last kill: the test proves too little")
	}
	if got := h.finish(batch, "disturbed.jsonl"); !slices.Equal(got, want) {
		t.Errorf("the results are\n%v\nand undisturbed\n%v", got, want)
	}
	asked := byItem(h.calls())
	for i := range want {
		// The workers lived on: what ran was joined again, what had ended was fetched.
		if name := report(i)[:len("Report 000")]; asked[name] != 1 {
			t.Errorf("%s was asked %d times", name, asked[name])
		}
	}
}

func (h *home) workerKilled(t *testing.T, want []line) {
	for _, s := range h.stands {
		s.Reset()
	}
	batch := h.batch("worker.jsonl")
	h.until(30)
	h.workers[0].kill()
	before := len(h.stands[0].Calls())
	h.until(60)
	h.startWorker(0)
	if got := h.finish(batch, "worker.jsonl"); !slices.Equal(got, want) {
		t.Errorf("the results are\n%v\nand undisturbed\n%v", got, want)
	}
	if len(h.stands[0].Calls()) == before {
		t.Error("the worker that came back did nothing")
	}
	twice := 0
	for name, asked := range byItem(h.calls()) {
		if asked > 2 {
			t.Errorf("%s was asked %d times", name, asked)
		} else if asked == 2 {
			twice++
		}
	}
	if twice > 1 { // the one that was in flight
		t.Errorf("%d items were asked twice", twice)
	}
}
