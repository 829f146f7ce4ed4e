package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// victimEnv names the folder of a process that runs one call of effect.log and may die in it.
const victimEnv = "LOOPKEEPER_TOOLS_VICTIM"

const exitCrashed = 137

// victim is a coordinator that does one call: Run, as often as it is started.
func victim() {
	dir := os.Getenv(victimEnv)
	log := EffectLog{Path: filepath.Join(dir, "effects"), Exit: func() { os.Exit(exitCrashed) }}
	r, err := New(Options{Records: &notes{dir: dir}, More: []Tool{log}})
	if err != nil {
		panic(err)
	}
	out, err := r.Run(context.Background(), Call{Key: "k", Tool: "effect.log", Input: []byte(os.Getenv(victimEnv + "_INPUT"))})
	if err != nil {
		panic(err)
	}
	if out.Failure != nil {
		fmt.Println(out.Failure.Kind)
		os.Exit(1)
	}
}

func TestEffectsAreCountedOverCrashes(t *testing.T) {
	for _, c := range []struct {
		input   string
		ends    []int // of the processes, one after the other
		effects int
	}{
		{`{"text":"x"}`, []int{0, 0}, 1},
		{`{"text":"x","crash":"before"}`, []int{exitCrashed, 0, 0}, 1},
		{`{"text":"x","crash":"after"}`, []int{exitCrashed, 0, 0}, 1},
		{`{"text":"x","crash":"before","blind":true}`, []int{exitCrashed, 1, 1}, 0},
		{`{"text":"x","crash":"after","blind":true}`, []int{exitCrashed, 1, 1}, 1},
		{`{"text":"x","fail":"teapot"}`, []int{1, 1}, 0},
	} {
		t.Run(c.input, func(t *testing.T) {
			dir := t.TempDir()
			for i, want := range c.ends {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), victimEnv+"="+dir, victimEnv+"_INPUT="+c.input,
					"GORACE=atexit_sleep_ms=0") // the race detector waits a second at every exit otherwise
				out, err := cmd.CombinedOutput()
				var exit *exec.ExitError
				if err != nil && !errors.As(err, &exit) {
					t.Fatal(err)
				}
				if got := cmd.ProcessState.ExitCode(); got != want {
					t.Fatalf("process %d ended with %d, want %d: %s", i, got, want, out)
				}
			}
			effects, err := EffectLog{Path: filepath.Join(dir, "effects")}.Effects()
			if err != nil || len(effects["k"]) != c.effects {
				t.Errorf("%d effects, want %d: %v", len(effects["k"]), c.effects, err)
			}
		})
	}
}

func TestEffectLogWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(o *Options) { o.More = []Tool{EffectLog{Path: filepath.Join(t.TempDir(), "effects")}} })
		start := time.Now()
		r.value("k", "effect.log", `{"text":"x","delay_seconds":90}`)
		if took := time.Since(start); took != 90*time.Second {
			t.Errorf("took %v", took)
		}
	})
}
