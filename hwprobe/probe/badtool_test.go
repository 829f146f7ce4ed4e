package probe

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// The whole probe with a real nvidia-smi on the PATH that misbehaves.
func TestProbeSurvivesABadTool(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs symbolic links")
	}
	for how, want := range map[string]hwprobe.WarningCode{
		"hang": hwprobe.WarnToolTimeout, "flood": hwprobe.WarnToolFailed, "exit9": hwprobe.WarnDriverNotLoaded, "half": hwprobe.WarnToolFailed, "crash": hwprobe.WarnToolFailed,
	} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Symlink(os.Args[0], filepath.Join(dir, "nvidia-smi")); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir)
			t.Setenv(behaviour, how)
			timeout := time.Minute
			if how == "hang" {
				timeout = 500 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			r := Probe(ctx, realHost(os.DirFS(t.TempDir()), &source.Commands{}))
			if len(r.Warnings) != 1 || r.Warnings[0].Code != want || r.Warnings[0].Next == "" {
				t.Errorf("warnings %+v, want one %s", r.Warnings, want)
			}
			if len(r.Devices) != 0 || len(r.Pools) != 1 || r.Pools[0].TotalBytes.Or(0) == 0 {
				t.Errorf("devices %v, pools %v; want the host pool alone", r.Devices, r.Pools)
			}
		})
	}
}
