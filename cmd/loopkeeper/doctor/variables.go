package doctor

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

// Variables are those of Ollama that change what loopkeeper counts on. Ollama has its own environment, which need not be that of
// this process: what is set here may not be set there.
var Variables = []string{"OLLAMA_NUM_PARALLEL", "OLLAMA_KEEP_ALIVE", "OLLAMA_CONTEXT_LENGTH", "OLLAMA_MAX_LOADED_MODELS", "OLLAMA_IGPU_ENABLE"}

// variables finds settings of Ollama that hurt, as they are set in this process.
func variables(env map[string]string, s Settings) (found []Finding) {
	hurts := func(name, why, next string) {
		found = append(found, Finding{Warning, "ollama", fmt.Sprintf("%s=%s %s", name, env[name], why), next + ", then restart Ollama"})
	}
	if n, err := strconv.Atoi(env["OLLAMA_NUM_PARALLEL"]); err == nil && n > 0 && n != s.Slots {
		hurts("OLLAMA_NUM_PARALLEL", fmt.Sprintf("and worker.slots is %d (%s): calls wait, or memory for slots is wasted", s.Slots, s.SlotsFrom),
			fmt.Sprintf("set worker.slots: %d, or OLLAMA_NUM_PARALLEL=%d for Ollama", n, s.Slots))
	}
	if forever(env["OLLAMA_KEEP_ALIVE"]) {
		hurts("OLLAMA_KEEP_ALIVE", "keeps what other programs load in memory for ever; loopkeeper never unloads what is not its own", "set a time such as 10m for Ollama")
	}
	if n, err := strconv.Atoi(env["OLLAMA_CONTEXT_LENGTH"]); err == nil && n > 0 && n != s.Context {
		hurts("OLLAMA_CONTEXT_LENGTH", fmt.Sprintf("and models.default_context is %d: each time another program uses a model of ours, Ollama loads it anew", s.Context),
			fmt.Sprintf("set OLLAMA_CONTEXT_LENGTH=%d for Ollama", s.Context))
	}
	if n, err := strconv.Atoi(env["OLLAMA_MAX_LOADED_MODELS"]); err == nil && n == 1 {
		hurts("OLLAMA_MAX_LOADED_MODELS", "lets no second model in, however much memory is free", "remove it")
	}
	return found
}

// forever says whether a keep-alive has no end: a negative number of seconds or duration, see envconfig.KeepAlive of Ollama.
func forever(keep string) bool {
	if n, err := strconv.Atoi(strings.TrimSpace(keep)); err == nil {
		return n < 0
	}
	d, err := time.ParseDuration(strings.TrimSpace(keep))
	return err == nil && d < 0
}

// graphics finds an accelerator that Ollama leaves out unless it is told not to: from 0.30 on one that is a part of the processor, of
// AMD or Intel, where there is no other.
func graphics(r hwprobe.Report, o Ollama) []Finding {
	name := ""
	for _, d := range r.Devices {
		if d.State != hwprobe.StateOK && d.State != hwprobe.StateAsleep {
			continue
		}
		if integrated, known := d.Integrated.Value(); !known || !integrated || d.Vendor != hwprobe.AMD && d.Vendor != hwprobe.Intel {
			return nil
		}
		name = d.Name
	}
	if on, err := strconv.ParseBool(o.Env["OLLAMA_IGPU_ENABLE"]); name == "" || o.Simulated || err == nil && on || !ollama.LeavesIntegratedOut(o.Version) {
		return nil
	}
	return []Finding{{Warning, "ollama", fmt.Sprintf("Ollama %s leaves %s, which is a part of the processor, out unless OLLAMA_IGPU_ENABLE=1 is set for it", o.Version, name),
		"set OLLAMA_IGPU_ENABLE=1 for Ollama, then restart Ollama"}}
}
