package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

// healthy is a machine of which nothing is to be said but that all is well.
func healthy() Facts {
	pool := hwprobe.Pool{ID: "gpu:0000:01:00.0", Kind: hwprobe.PoolOfDevice, TotalBytes: hwprobe.Known[uint64](16 << 30), FreeBytes: hwprobe.Known[uint64](15 << 30)}
	return Facts{
		Settings: Settings{Slots: 2, SlotsFrom: "default", Context: 8192, MDNS: true},
		Hardware: hwprobe.Report{Devices: []hwprobe.Device{{ID: pool.ID, Name: "NVIDIA GeForce RTX 4080 SUPER", State: hwprobe.StateOK, Pool: pool.ID}},
			Pools: []hwprobe.Pool{{ID: hwprobe.HostPool, Kind: hwprobe.PoolOfHost, TotalBytes: hwprobe.Known[uint64](32 << 30)}, pool}},
		Ollama: Ollama{URL: "http://127.0.0.1:11434", Version: "0.17.4", Models: []string{"qwen3:8b"}, Env: map[string]string{"OLLAMA_NUM_PARALLEL": "2"}},
		Data:   Data{Dir: "/data"}, Port: Port{Address: "127.0.0.1:7701", Free: true}, Network: Network{Interfaces: []string{"eth0"}},
	}
}

func TestNothingIsSaidAgainstAHealthyMachine(t *testing.T) {
	for _, f := range Examine(healthy()) {
		if f.Level != OK || f.Next != "" || f.Text == "" {
			t.Errorf("%+v", f)
		}
	}
}

func TestWhatIsWrongIsFoundWithANextStep(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		want   Finding // parts of its texts
	}{
		"card fell off the bus": {func(f *Facts) {
			f.Hardware.Devices[0].State = hwprobe.StateLost
			f.Hardware.Warnings = []hwprobe.Warning{{Code: hwprobe.WarnDeviceLost, Device: "gpu:0000:01:00.0", Message: "it fell off the bus", Next: "reboot"}}
		}, Finding{Error, "hardware", "gpu:0000:01:00.0: it fell off", "reboot"}},
		"memory is not told": {func(f *Facts) {
			f.Hardware.Warnings = []hwprobe.Warning{{Code: hwprobe.WarnMemoryUnknown, Message: "it does not tell", Next: "give it rights"}}
		}, Finding{Warning, "hardware", "does not tell", "rights"}},
		"no Ollama":                 {func(f *Facts) { f.Ollama.Err = "connection refused" }, Finding{Error, "ollama", "http://127.0.0.1:11434: connection refused", "ollama serve"}},
		"Ollama elsewhere":          {func(f *Facts) { f.Ollama.URL = "http://den:11434" }, Finding{Warning, "ollama", "another machine", "where Ollama runs"}},
		"no models":                 {func(f *Facts) { f.Ollama.Models = nil }, Finding{Warning, "models", "none", "ollama pull"}},
		"more slots than planned":   {func(f *Facts) { f.Settings.Slots = 1 }, Finding{Warning, "ollama", "worker.slots is 1 (default)", "OLLAMA_NUM_PARALLEL=1"}},
		"models that never go":      {func(f *Facts) { f.Ollama.Env["OLLAMA_KEEP_ALIVE"] = "-1" }, Finding{Warning, "ollama", "OLLAMA_KEEP_ALIVE=-1", "restart"}},
		"models that never go, too": {func(f *Facts) { f.Ollama.Env["OLLAMA_KEEP_ALIVE"] = "-5m" }, Finding{Warning, "ollama", "OLLAMA_KEEP_ALIVE=-5m", "restart"}},
		"another context":           {func(f *Facts) { f.Ollama.Env["OLLAMA_CONTEXT_LENGTH"] = "4096" }, Finding{Warning, "ollama", "default_context is 8192", "OLLAMA_CONTEXT_LENGTH=8192"}},
		"a model that is mistyped":  {func(f *Facts) { f.Settings.Strange = []string{"models.pins speaks of qwen:8b"} }, Finding{Warning, "settings", "qwen:8b", "loopkeeper config show"}},
		"one model at once":         {func(f *Facts) { f.Ollama.Env["OLLAMA_MAX_LOADED_MODELS"] = "1" }, Finding{Warning, "ollama", "no second model", "remove it"}},
		"graphics that Ollama leaves out": {func(f *Facts) { // project-nomad#1092
			f.Hardware.Devices[0] = hwprobe.Device{Vendor: hwprobe.AMD, Name: "AMD Radeon 780M", State: hwprobe.StateOK, Integrated: hwprobe.Known(true)}
			f.Ollama.Version = "0.30.5"
		}, Finding{Warning, "ollama", "Ollama 0.30.5 leaves AMD Radeon 780M", "OLLAMA_IGPU_ENABLE=1"}},
		"a model without a mode": {func(f *Facts) {
			f.Modes = []Mode{{Model: "good:1b", Way: "chat", Version: "0.17.4"}, {Model: "odd:7b", Version: "0.17.4", None: true}}
		}, Finding{Warning, "formats", "Ollama 0.17.4 applies no format with odd:7b", "update Ollama"}},
		"data of somebody else": {func(f *Facts) { f.Data.Err = "permission denied" }, Finding{Error, "data", "/data cannot be written: permission denied", "--data-dir"}},
		"port taken": {func(f *Facts) { f.Port = Port{Address: "127.0.0.1:7701", Err: "address already in use"} },
			Finding{Error, "port", "taken by another program", "--listen 127.0.0.1:0"}},
		"worker of another fleet": {func(f *Facts) {
			f.Port = Port{Address: "127.0.0.1:7701", Worker: "a worker", Err: `it belongs to fleet "lab"`}
		},
			Finding{Error, "port", `"lab"`, "same fleet"}},
		"open to the network": {func(f *Facts) { f.Port.Address = "0.0.0.0:7701" }, Finding{Error, "port", "without certificates", "--insecure-lan"}},
		"no interface": {func(f *Facts) {
			f.Network = Network{Skipped: map[string]string{"docker0": "virtual", "lo": "loopback"}}
		},
			Finding{Warning, "discovery", "docker0 virtual, lo loopback", "--worker"}},
	} {
		f := healthy()
		c.change(&f)
		var bad []Finding
		for _, x := range Examine(f) {
			if x.Level != OK {
				bad = append(bad, x)
			}
		}
		if len(bad) != 1 || bad[0].Level != c.want.Level || bad[0].Part != c.want.Part || !strings.Contains(bad[0].Text, c.want.Text) || !strings.Contains(bad[0].Next, c.want.Next) {
			t.Errorf("%s: %+v, want %+v", name, bad, c.want)
		}
	}
}

// What is well stays said in other ways.
func TestWhatIsWell(t *testing.T) {
	for want, change := range map[string]func(*Facts){
		"the worker den 0.1.0 answers at 127.0.0.1:7701":     func(f *Facts) { f.Port = Port{Address: "127.0.0.1:7701", Worker: "the worker den 0.1.0"} },
		"0.0.0.0:7701 is free, for everybody on the network": func(f *Facts) { f.Port.Address, f.Settings.InsecureLAN = "0.0.0.0:7701", true },
		"version 0.30.5 at http://127.0.0.1:11434": func(f *Facts) {
			f.Hardware.Devices[0].Vendor, f.Hardware.Devices[0].Integrated = hwprobe.Intel, hwprobe.Known(true)
			f.Ollama.Version, f.Ollama.Env["OLLAMA_IGPU_ENABLE"] = "0.30.5", "1"
		},
		"off: workers are named with --worker":                                               func(f *Facts) { f.Settings.MDNS = false },
		"no accelerator, models run on the processor: 32.0 GiB, how much is free is unknown": func(f *Facts) { f.Hardware.Devices = nil },
		"a, b, c, d, e, f and 2 more":                                                        func(f *Facts) { f.Ollama.Models = strings.Split("a b c d e f g h", " ") },
		"version 0.17.4 at http://127.0.0.1:11434, simulated by a stand-in":                  func(f *Facts) { f.Ollama.Simulated = true },
	} {
		f := healthy()
		change(&f)
		said := false
		for _, x := range Examine(f) {
			said = said || x.Text == want
			if x.Level != OK {
				t.Errorf("%q: %+v", want, x)
			}
		}
		if !said {
			t.Errorf("nobody says %q: %+v", want, Examine(f))
		}
	}
}

func TestModesThatPassedAreListed(t *testing.T) {
	f := healthy()
	f.Modes = []Mode{{Model: "qwen3:8b", Way: "generate", Version: "0.17.4", Probed: time.Date(2026, 11, 30, 12, 0, 0, 0, time.Local)}, {Model: "gpt-oss:20b", Way: "chat, thinking low", Version: "0.17.4"}}
	var texts []string
	for _, x := range Examine(f) {
		if x.Part == "formats" {
			texts = append(texts, string(x.Level)+" "+x.Text)
		}
	}
	if len(texts) != 1 || !strings.HasPrefix(texts[0], "ok gpt-oss:20b by chat, thinking low (Ollama 0.17.4") ||
		!strings.Contains(texts[0], "; qwen3:8b by generate (Ollama 0.17.4, probed 2026-11-30 12:00)") {
		t.Errorf("%q", texts)
	}
}
