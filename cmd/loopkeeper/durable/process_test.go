package durable

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// build builds the program from the source in the folder root.
func build(t testing.TB, root string, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "loopkeeper")
	// Without its folder in it, what is compiled is the same in every folder, and need not be compiled again in the next test.
	c := exec.Command("go", append(append([]string{"build", "-trimpath", "-o", path}, args...), "./cmd/loopkeeper")...)
	c.Dir, c.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	return path
}

// home is a folder with the program's settings and data, a machine of this process, and a coordinator that is a process of its own.
type home struct {
	t      testing.TB
	dir    string
	server string
	worker string
	cmd    *exec.Cmd
	log    *bytes.Buffer
}

func newHome(t testing.TB, m *machine) *home {
	t.Helper()
	h := &home{t: t, dir: t.TempDir(), server: freeAddress(t), log: &bytes.Buffer{}}
	write(t, filepath.Join(h.dir, "loopkeeper.yaml"), "fleet: "+fleetID+"\ndiscovery:\n  mdns: false\n")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.worker = l.Addr().String()
	m.serve(t, l)
	t.Cleanup(h.kill)
	return h
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// freeAddress is one that nobody listens on now, for a coordinator that has to be found there again after its death.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // it listened
	return l.Addr().String()
}

// command is one call of the program with nothing of this process's settings.
func (h *home) command(program string, args ...string) *exec.Cmd {
	c := exec.Command(program, append(args, "--config", filepath.Join(h.dir, "loopkeeper.yaml"), "--data-dir", filepath.Join(h.dir, "data"))...)
	c.Dir, c.Env = h.dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.dir}
	return c
}

// exec starts the coordinator and returns as soon as its process runs; ready says when it has said that it is ready.
func (h *home) exec(program string) (ready <-chan bool) {
	h.t.Helper()
	h.log.Reset()
	h.cmd = h.command(program, "up", "--no-worker", "--listen", h.server, "--worker", h.worker)
	h.cmd.Stderr = h.log
	out, err := h.cmd.StdoutPipe()
	if err == nil {
		err = h.cmd.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	said := make(chan bool, 1)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "Next: ") { // the last one that it says
				said <- true
			}
		}
		close(said)
	}()
	return said
}

// start starts the coordinator and waits until it is ready.
func (h *home) start(program string) {
	h.t.Helper()
	if !<-h.exec(program) {
		h.kill()
		h.t.Fatalf("the coordinator ended before it was ready:\n%s", h.log)
	}
}

// kill is kill -9.
func (h *home) kill() {
	if h.cmd != nil {
		_ = h.cmd.Process.Kill() // it may have ended already
		_ = h.cmd.Wait()         // says that it was killed
		h.cmd = nil
	}
}

// client asks the coordinator that runs.
func (h *home) client() coordinatorv1.CoordinatorServiceClient {
	h.t.Helper()
	conn, err := grpc.NewClient(h.server, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = conn.Close() })
	return coordinatorv1.NewCoordinatorServiceClient(conn)
}

// ask runs a command that must succeed, and returns what it prints.
func (h *home) ask(program string, args ...string) string {
	h.t.Helper()
	c := h.command(program, args...)
	var complaints bytes.Buffer
	c.Stderr = &complaints
	out, err := c.Output()
	if err != nil {
		h.t.Fatalf("%v: %v\n%s%s", args, err, out, complaints.String())
	}
	return string(out)
}

// eventually runs a command until it prints want.
func (h *home) eventually(want, program string, args ...string) {
	h.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	give := time.After(time.Minute)
	for {
		out, err := h.command(program, args...).Output()
		if err == nil && strings.Contains(string(out), want) {
			return
		}
		select {
		case <-tick.C:
		case <-give:
			h.t.Fatalf("%v never printed %s, but %v:\n%s", args, want, err, out)
		}
	}
}

// overlay is the argument of a build in which files of the source have another text, by their paths from the top of the source.
func overlay(t testing.TB, root string, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	var o struct{ Replace map[string]string }
	o.Replace = map[string]string{}
	for name, text := range texts {
		path := filepath.Join(dir, fmt.Sprintf("%d%s", len(o.Replace), filepath.Ext(name)))
		write(t, path, text)
		o.Replace[filepath.Join(root, name)] = path
	}
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	write(t, path, string(raw))
	return "-overlay=" + path
}
