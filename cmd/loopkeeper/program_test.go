package main_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// buildProgram builds the program as users get it and returns its path.
func buildProgram(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "loopkeeper")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// daemonLimit is how long a daemon may take to say that it is ready, or to stop.
const daemonLimit = 30 * time.Second

// startDaemon starts the program and returns what the pattern's group matches in its output, once it does. The daemon is
// interrupted at the end of the test, and must then end by itself.
func startDaemon(t *testing.T, program, pattern string, args ...string) string {
	t.Helper()
	ready := regexp.MustCompile(pattern)
	daemon := exec.Command(program, args...)
	out, err := daemon.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	daemon.Stderr = log
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	found, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if match := ready.FindStringSubmatch(lines.Text()); match != nil {
				found <- match[1]
				break
			}
		}
		_, _ = io.Copy(io.Discard, out) // ends with the daemon
		ended <- daemon.Wait()
	}()
	t.Cleanup(func() { stopDaemon(t, daemon, ended, log.Name()) })
	select {
	case match := <-found:
		return match
	case err := <-ended:
		ended <- err
		t.Fatalf("%v ended before it was ready: %v", args, err)
	case <-time.After(daemonLimit):
		t.Fatalf("%v is not ready after %s", args, daemonLimit)
	}
	return ""
}

// stopDaemon interrupts a daemon as Ctrl-C does, and shows what it logged if the test failed.
func stopDaemon(t *testing.T, daemon *exec.Cmd, ended <-chan error, log string) {
	_ = daemon.Process.Signal(os.Interrupt)
	select {
	case err := <-ended:
		if err != nil {
			t.Logf("%v ended with %v", daemon.Args[1:], err)
		}
	case <-time.After(daemonLimit):
		t.Errorf("%v does not stop when interrupted", daemon.Args[1:])
		_ = daemon.Process.Kill()
		<-ended
	}
	if text, err := os.ReadFile(log); err == nil && t.Failed() {
		t.Logf("log of %v:\n%s", daemon.Args[1:], text)
	}
}

// ask runs a command with -o json, decodes what it prints into answer and returns its exit code.
func ask(t *testing.T, program string, answer any, args ...string) int {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, append(args, "-o", "json")...)
	out, err := command.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		t.Logf("%v: %s", args, exit.Stderr)
	} else if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, answer); err != nil {
		t.Fatalf("%v printed no JSON: %v\n%s", args, err, out)
	}
	return command.ProcessState.ExitCode()
}
