// Package doctor judges whether a machine is fit to be a worker: facts in, findings out. It looks at nothing itself.
package doctor

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

// Level says how much a finding matters.
type Level string

// The levels.
const (
	OK      Level = "ok"
	Warning Level = "warning" // the worker works, and less well than it could
	Error   Level = "error"   // something does not work
)

// Finding is one thing that was looked at.
type Finding struct {
	Level Level  `json:"level"`
	Part  string `json:"part"` // what was looked at: "ollama"
	Text  string `json:"text"`
	Next  string `json:"next,omitempty"` // what to do; empty when all is well
}

// Facts are what is known about the machine.
type Facts struct {
	Settings Settings
	Hardware hwprobe.Report
	Ollama   Ollama
	Data     Data
	Port     Port
	Network  Network
	Roles    []Finding // about roles and judges, as a coordinator that runs here sees them
	Modes    []Mode    // that are known of models, where a worker or a coordinator runs here
}

// Settings are those of loopkeeper that others depend on.
type Settings struct {
	File        string // that was read; empty when there is none
	Slots       int    // generations per model at once
	SlotsFrom   string // where that value comes from
	Context     int    // tokens per slot where nothing else says
	InsecureLAN bool
	MDNS        bool
	Strange     []string // models that it speaks of and this Ollama does not have, each in a sentence
}

// Ollama is what the server says, and what its settings are as far as this process can see them.
type Ollama struct {
	URL       string
	Err       string // why it does not answer; empty when it does
	Version   string
	Simulated bool
	Models    []string
	Env       map[string]string // variables of this process that Ollama reads, too
}

// Data is the data folder.
type Data struct {
	Dir string
	Err string // why it cannot be written; empty when it can
}

// Port is the address at which a worker answers.
type Port struct {
	Address string
	Free    bool
	Worker  string // name and version of the worker that is there; empty when there is none
	Err     string // why neither; of a worker: why it is none of ours
}

// Network is what mDNS can use.
type Network struct {
	Interfaces []string
	Skipped    map[string]string // why not, by name
	Err        string
}

// Examine returns the findings in the order in which things depend on each other.
func Examine(f Facts) []Finding {
	return slices.Concat(settings(f.Settings), hardware(f.Hardware), server(f.Ollama), modes(f.Modes), f.Roles, graphics(f.Hardware, f.Ollama), variables(f.Ollama.Env, f.Settings), data(f.Data), port(f.Port, f.Settings),
		network(f.Network, f.Settings))
}

// Count says how many findings have this level.
func Count(all []Finding, l Level) (n int) {
	for _, f := range all {
		if f.Level == l {
			n++
		}
	}
	return n
}

func settings(s Settings) []Finding {
	text := "no settings file, so defaults and environment hold"
	if s.File != "" {
		text = s.File
	}
	found := []Finding{{OK, "settings", text, ""}}
	for _, one := range s.Strange {
		found = append(found, Finding{Warning, "settings", one, "loopkeeper config show  # on a coordinator another machine may have it: loopkeeper models"})
	}
	return found
}

// broken are the warnings of the probe about something that does not work, and not only about what cannot be told.
var broken = map[hwprobe.WarningCode]bool{
	hwprobe.WarnDriverNotLoaded: true, hwprobe.WarnDriverMismatch: true, hwprobe.WarnAccessLost: true, hwprobe.WarnDeviceLost: true,
	hwprobe.WarnNeedsReset: true, hwprobe.WarnToolTimeout: true, hwprobe.WarnProbeStuck: true, hwprobe.WarnProbeFailed: true,
}

func hardware(r hwprobe.Report) (found []Finding) {
	for _, d := range r.Devices {
		if d.State == hwprobe.StateOK || d.State == hwprobe.StateAsleep {
			found = append(found, Finding{OK, "hardware", d.Name + ", " + memory(r, d.Pool), ""})
		}
	}
	if len(r.Devices) == 0 && !(hwprobe.Findings{Warnings: r.Warnings}).Failed() {
		found = append(found, Finding{OK, "hardware", "no accelerator, models run on the processor: " + memory(r, hwprobe.HostPool), ""})
	}
	for _, w := range r.Warnings {
		level := Warning
		if broken[w.Code] {
			level = Error
		}
		text := w.Message
		if w.Device != "" && !strings.Contains(text, w.Device) {
			text = w.Device + ": " + text
		}
		found = append(found, Finding{level, "hardware", text, w.Next})
	}
	return found
}

func memory(r hwprobe.Report, id string) string {
	p, _ := r.Pool(id)
	total, knowsTotal := p.TotalBytes.Value()
	free, knowsFree := p.FreeBytes.Value()
	switch {
	case knowsTotal && knowsFree:
		return fmt.Sprintf("%s of %s GiB free", gib(free), gib(total))
	case knowsTotal:
		return gib(total) + " GiB, how much is free is unknown"
	default:
		return "its memory is unknown"
	}
}

func gib(n uint64) string { return strconv.FormatFloat(float64(n)/(1<<30), 'f', 1, 64) }

func server(o Ollama) []Finding {
	if o.Err != "" {
		return []Finding{{Error, "ollama", fmt.Sprintf("no Ollama answers at %s: %s", o.URL, o.Err), "ollama serve; or say where it is: worker.ollama in the settings, or OLLAMA_HOST"}}
	}
	version := fmt.Sprintf("version %s at %s", o.Version, o.URL)
	if o.Simulated {
		version += ", simulated by a stand-in"
	}
	found := []Finding{{OK, "ollama", version, ""}}
	if !local(o.URL) {
		found = append(found, Finding{Warning, "ollama", o.URL + " is another machine, and this one's memory is what its models are placed by",
			"run the worker on the machine where Ollama runs"})
	}
	if len(o.Models) == 0 {
		return append(found, Finding{Warning, "models", "Ollama has none", "ollama pull qwen3:8b"})
	}
	const shown = 6
	names := strings.Join(o.Models[:min(len(o.Models), shown)], ", ")
	if more := len(o.Models) - shown; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return append(found, Finding{OK, "models", names, ""})
}

func local(address string) bool {
	u, err := url.Parse(address)
	return err != nil || u.Hostname() == "localhost" || u.Hostname() == "::1" || strings.HasPrefix(u.Hostname(), "127.")
}

func data(d Data) []Finding {
	if d.Err != "" {
		return []Finding{{Error, "data", fmt.Sprintf("%s cannot be written: %s", d.Dir, d.Err), "make it yours, or name another: --data-dir FOLDER, or data_dir in the settings"}}
	}
	return []Finding{{OK, "data", d.Dir + " can be written", ""}}
}

func port(p Port, s Settings) []Finding {
	host := strings.TrimSuffix(p.Address, ":"+p.Address[strings.LastIndexByte(p.Address, ':')+1:])
	switch {
	case p.Worker != "" && p.Err != "":
		return []Finding{{Error, "port", fmt.Sprintf("%s answers at %s, and is none of this fleet: %s", p.Worker, p.Address, p.Err),
			"set the same fleet on both, or another worker.listen"}}
	case p.Worker != "":
		return []Finding{{OK, "port", fmt.Sprintf("%s answers at %s", p.Worker, p.Address), ""}}
	case !p.Free:
		return []Finding{{Error, "port", fmt.Sprintf("%s is taken by another program: %s", p.Address, p.Err), "end that program, or loopkeeper worker --listen " + host + ":0"}}
	case local("//" + p.Address):
		return []Finding{{OK, "port", p.Address + " is free; other machines cannot reach it", ""}}
	case !s.InsecureLAN:
		return []Finding{{Error, "port", p.Address + " can be reached from the network, which is refused without certificates",
			"loopkeeper worker --insecure-lan  # when everybody on that network is trusted; or worker.listen: 127.0.0.1:7701"}}
	}
	return []Finding{{OK, "port", p.Address + " is free, for everybody on the network", ""}}
}

func network(n Network, s Settings) []Finding {
	switch {
	case !s.MDNS:
		return []Finding{{OK, "discovery", "off: workers are named with --worker", ""}}
	case n.Err != "":
		return []Finding{{Error, "discovery", "the network interfaces cannot be listed: " + n.Err, "loopkeeper up --worker HOST:PORT  # on the coordinator; it needs no discovery"}}
	case len(n.Interfaces) > 0:
		return []Finding{{OK, "discovery", "mDNS on " + strings.Join(n.Interfaces, ", "), ""}}
	}
	var why []string
	for name, reason := range n.Skipped {
		why = append(why, name+" "+reason)
	}
	slices.Sort(why)
	return []Finding{{Warning, "discovery", "no network interface can be used: " + strings.Join(why, ", "),
		"name them in discovery.interfaces, or loopkeeper up --worker HOST:PORT on the coordinator"}}
}
