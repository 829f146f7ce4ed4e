package serve

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
	"github.com/loopkeeper/loopkeeper/hwprobe/probe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

// apu is a worker with an Ollama of that version on a machine with a Radeon 780M and no card.
func apu(t *testing.T, cfg ollamatest.Config, more ...string) *rig {
	t.Helper()
	files := fixture.Tree(t, "amd-sysfs-phoenix-780m-apu.txtar", "proc/meminfo", "MemTotal: 65536000 kB\nMemAvailable: 60000000 kB\n")
	for _, name := range more {
		for path, file := range fixture.Tree(t, name) {
			files[path] = file
		}
	}
	return newRig(t, cfg, func(o *Options, l *line) {
		l.fake.Store(true)
		o.Prober = probe.New(probe.Options{Machine: source.Machine{OS: "linux", Arch: "amd64", Calls: source.Calls{}, Commands: &card{}, Files: files}})
	})
}

// said is the warning about graphics that are left out.
func (r *rig) said() string {
	for _, w := range r.server.Report().GetWarnings() {
		if w.GetCode() == "integrated_left_out" {
			return w.GetText() + " | " + w.GetNext()
		}
	}
	return ""
}

// project-nomad#1092: Ollama 0.30 drops the integrated GPU without OLLAMA_IGPU_ENABLE, size_vram is 0, and only its log says so. The
// worker says it when it starts, and knows better once a model is loaded.
func TestOllamaDropsTheIntegratedGPUWithoutAWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := apu(t, ollamatest.Config{Version: "0.30.5", CPUOnly: true})
		const start, next = "Ollama 0.30.5 leaves AMD Radeon", "unless OLLAMA_IGPU_ENABLE=1 is set for it"
		if got := r.said(); !strings.HasPrefix(got, start) || !strings.Contains(got, next) || !strings.HasSuffix(got, "then restart Ollama") {
			t.Errorf("at the start: %q", got)
		}
		r.mustGenerate(t, request("k"))
		time.Sleep(5 * time.Second)
		if got := r.said(); !strings.HasPrefix(got, "Ollama 0.30.5 computes qwen3:8b on the processor and leaves AMD Radeon") {
			t.Errorf("with a model: %q", got)
		}
	})
}

// Nothing is said where there is nothing to say: an Ollama that uses it, an older one, a card beside it.
func TestAnIntegratedGPUThatIsUsedOrNotNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := apu(t, ollamatest.Config{Version: "0.30.5"}) // it was set
		r.mustGenerate(t, request("k"))
		time.Sleep(15 * time.Minute)
		if got := r.said(); got != "" || len(r.server.Report().GetLoaded()) != 0 {
			t.Errorf("it is used: %q", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		if got := apu(t, ollamatest.Config{Version: "0.17.4", CPUOnly: true}).said(); got != "" {
			t.Errorf("0.17.4: %q", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		if got := apu(t, ollamatest.Config{Version: "0.30.5"}, "amd-sysfs-rx6900xt-16g.txtar").said(); got != "" {
			t.Errorf("beside a card: %q", got)
		}
	})
}
