package source

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runTool runs this binary as a tool that behaves as told, and how long that took.
func runTool(t *testing.T, ctx context.Context, how string) (Output, time.Duration, error) {
	t.Helper()
	t.Setenv(behaviour, how)
	start := time.Now()
	out, err := (&Commands{}).Run(ctx, os.Args[0])
	return out, time.Since(start), err
}

func TestCommandThatHangsIsCutAtTheDeadline(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, took, err := runTool(t, ctx, "hang")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the deadline", err)
	}
	if took > 20*time.Second {
		t.Errorf("took %v with a deadline of 300ms", took)
	}
}

func TestCommandThatFloodsIsCapped(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, _, err := runTool(t, ctx, "flood")
	if !errors.Is(err, ErrOutputTooLarge) {
		t.Errorf("error %v, want ErrOutputTooLarge", err)
	}
	if len(out.Stdout) != outputLimit {
		t.Errorf("kept %d bytes, want %d", len(out.Stdout), outputLimit)
	}
}

func TestCommandWhoseChildKeepsThePipeOpenDoesNotBlock(t *testing.T) {
	out, took, err := runTool(t, t.Context(), "orphan")
	if err != nil || string(out.Stdout) != "done\n" {
		t.Errorf("got %q, %v; want what the command itself printed", out.Stdout, err)
	}
	if took > 15*time.Second {
		t.Errorf("took %v: it waited for the child", took)
	}
}

// A script around a tool, as NixOS and distrobox have them, is not the one that hangs: at each probe its child would stay behind.
func TestChildrenOfACommandThatIsEndedAreEnded(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("children are not known there")
	}
	for _, how := range []string{"wrap", "orphan"} {
		note := filepath.Join(t.TempDir(), "child")
		t.Setenv(noteFile, note)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		_, _, _ = runTool(t, ctx, how)
		cancel()
		text, err := os.ReadFile(note)
		if err != nil {
			t.Fatal(how, err)
		}
		pid, err := strconv.Atoi(string(text))
		if err != nil {
			t.Fatal(how, err)
		}
		child, err := os.FindProcess(pid)
		for deadline := time.Now().Add(10 * time.Second); err == nil && child.Signal(syscall.Signal(0)) == nil && !zombie(pid); {
			if time.Now().After(deadline) {
				t.Fatalf("%s: the child lives", how)
			}
			runtime.Gosched()
		}
	}
}

// zombie says whether a process has ended and nobody has asked how, as happens where the first process does not.
func zombie(pid int) bool {
	_, state, _ := strings.Cut(ReadText(os.DirFS("/proc"), strconv.Itoa(pid)+"/stat"), ") ")
	return strings.HasPrefix(state, "Z")
}

func TestCommandExitCodeIsNoErrorAndBothStreamsAreRead(t *testing.T) {
	out, _, err := runTool(t, t.Context(), "exit9")
	if err != nil || out.ExitCode != 9 || string(out.Stdout) != "to stdout\n" || string(out.Stderr) != "to stderr\n" {
		t.Errorf("got code %d, %q, %q, %v", out.ExitCode, out.Stdout, out.Stderr, err)
	}
}

func TestCommandThatCrashesIsAnError(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a killed process has an ordinary exit code on Windows")
	}
	if out, _, err := runTool(t, t.Context(), "crash"); err == nil {
		t.Errorf("no error, code %d", out.ExitCode)
	}
}

func TestCommandRunsInTheLocaleC(t *testing.T) {
	t.Setenv("LC_ALL", "de_DE.UTF-8")
	if out, _, err := runTool(t, t.Context(), "locale"); err != nil || string(out.Stdout) != "C" {
		t.Errorf("LC_ALL is %q, %v", out.Stdout, err)
	}
}

func TestCommandNotInstalled(t *testing.T) {
	if _, err := (&Commands{}).Run(t.Context(), "no-such-tool-anywhere"); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("error %v, want exec.ErrNotFound", err)
	}
}

// A process inside a hanging driver call survives SIGKILL; no test can make one, so its Wait is made to block.
func TestCommandThatCannotBeKilledIsNotStartedAgain(t *testing.T) {
	t.Setenv(behaviour, "exit9")
	release, released := make(chan struct{}), make(chan struct{})
	c := &Commands{wait: func(cmd *exec.Cmd) error {
		<-release
		defer close(released)
		return cmd.Wait()
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for range 2 {
		if _, err := c.Run(ctx, os.Args[0]); !errors.Is(err, ErrStuck) {
			t.Fatalf("error %v, want ErrStuck", err)
		}
	}
	if started := c.stuck.count[os.Args[0]]; started != 1 {
		t.Errorf("%d processes started, want 1", started)
	}
	close(release)
	<-released
	c.wait = nil
	for c.stuck.has(os.Args[0]) {
		runtime.Gosched()
	}
	if out, err := c.Run(t.Context(), os.Args[0]); err != nil || out.ExitCode != 9 {
		t.Errorf("after it ended: code %d, %v", out.ExitCode, err)
	}
}
