// Package configs holds loopkeeper's settings: one documented struct, read from flags, environment, file and defaults in
// that order, and for each value where it came from. Together with cmd it is the only place that reads the environment.
package configs

import (
	"time"
)

// Config is every setting. The yaml tags are the keys of the file; doc comments say the unit and the default.
type Config struct {
	// Fleet is the id of the fleet, [a-z0-9-]{1,63}; a coordinator and its workers share it. Default "home".
	Fleet string `yaml:"fleet"`
	// Name is what this machine is called on screens. Default: its host name.
	Name string `yaml:"name"`
	// DataDir holds the ledger, artifacts and the node id. Default: the user's data folder.
	DataDir string `yaml:"data_dir"`
	// LogLevel is debug, info, warn or error. Default "warn".
	LogLevel string `yaml:"log_level"`
	// InsecureLAN lets listeners leave loopback without certificates. Default false.
	InsecureLAN bool `yaml:"insecure_lan"`

	Coordinator Coordinator `yaml:"coordinator"`
	Worker      Worker      `yaml:"worker"`
	Discovery   Discovery   `yaml:"discovery"`
	Models      Models      `yaml:"models"`
	// Roles gives roles the models that play them.
	Roles Roles `yaml:"roles"`
	// Prompts is a folder whose files NAME.txt stand in for the prompt texts of that name. Default: none.
	Prompts string `yaml:"prompts"`
	// Nodes says what single machines leave to loopkeeper, by name or id.
	Nodes Nodes `yaml:"nodes"`
	// Resources limits what calls hold while they run, by name.
	Resources Resources `yaml:"resources"`
	Script    Script    `yaml:"script"`
	// Workspaces are the folders that the tools of steps may use, by name.
	Workspaces Workspaces `yaml:"workspaces"`
	// HTTP is the hosts that the tool http.request may call. Default: none, and there is no such tool.
	HTTP HTTPHosts `yaml:"http"`
	// Policy says which calls of tools run, ask a person or are refused; the first rule that fits holds.
	Policy Policy `yaml:"policy"`
	// Limits are what runs may use.
	Limits Limits `yaml:"limits"`
}

// Coordinator holds the coordinator's settings.
type Coordinator struct {
	// Listen is the address for the command line, host:port. Default 127.0.0.1:7700.
	Listen string `yaml:"listen"`
	// Workers are static worker addresses, host:port, used beside discovery.
	Workers []string `yaml:"workers"`
	// ActiveRuns is how many runs may host a script at once; others stay queued. Default 8.
	ActiveRuns int `yaml:"active_runs"`
	// LostAfter is how long a node may be silent before its work goes elsewhere. Default 15s.
	LostAfter time.Duration `yaml:"lost_after"`
}

// Worker holds a worker's settings.
type Worker struct {
	// Listen is the address for the coordinator, host:port. Default 127.0.0.1:7701; with insecure_lan 0.0.0.0:7701.
	Listen string `yaml:"listen"`
	// Ollama is the URL of the local Ollama. Default: OLLAMA_HOST, else http://127.0.0.1:11434.
	Ollama string `yaml:"ollama"`
	// Slots is how many generations per model this Ollama runs at once. Default: OLLAMA_NUM_PARALLEL, else 1.
	Slots int `yaml:"slots"`
	// Heartbeat is the interval between reports when nothing changes. Default 3s.
	Heartbeat time.Duration `yaml:"heartbeat"`
	// Hardware is what the owner knows better than the probe.
	Hardware Hardware `yaml:"hardware"`
}

// Discovery holds the mDNS settings.
type Discovery struct {
	// MDNS switches discovery and announcement on. Default true.
	MDNS bool `yaml:"mdns"`
	// Interfaces limits mDNS to these; empty: every usable one.
	Interfaces []string `yaml:"interfaces"`
	// Interval is the time between queries. Default 15s.
	Interval time.Duration `yaml:"interval"`
}

// Models holds fleet-wide model settings.
type Models struct {
	// DefaultContext is the context in tokens per slot where nothing else says. Default 8192.
	DefaultContext int `yaml:"default_context"`
	// Contexts sets a model's context, tokens per slot, by model name.
	Contexts map[string]int `yaml:"contexts"`
	// Pins keeps models loaded on machines, by model name: ids or names of machines.
	Pins Pins `yaml:"pins"`
	// IdleUnload is how long a model that nothing uses stays in memory. 0: for ever. Default 5m.
	IdleUnload time.Duration `yaml:"idle_unload"`
	// Pull is what to do when a model would be served sooner if another machine had it too: ask, auto or never. Default "ask".
	Pull string `yaml:"pull"`
}

// Script holds the limits of workflow scripts.
type Script struct {
	// Memory is what one script may use, bytes. Default 512 MiB.
	Memory uint64 `yaml:"memory_bytes"`
	// CPU is how long a script may compute between two calls. Default 10s.
	CPU time.Duration `yaml:"cpu"`
}

// Default returns the settings that hold when nothing is said. hostname names the machine, dataDir its data folder.
func Default(hostname, dataDir string) Config {
	return Config{
		Fleet: "home", Name: hostname, DataDir: dataDir, LogLevel: "warn",
		Coordinator: Coordinator{Listen: "127.0.0.1:7700", ActiveRuns: 8, LostAfter: 15 * time.Second},
		Worker:      Worker{Listen: "127.0.0.1:7701", Ollama: "http://127.0.0.1:11434", Slots: 1, Heartbeat: 3 * time.Second},
		Discovery:   Discovery{MDNS: true, Interval: 15 * time.Second},
		Models:      Models{DefaultContext: 8192, IdleUnload: 5 * time.Minute, Pull: PullAsk},
		Script:      Script{Memory: 512 << 20, CPU: 10 * time.Second},
		Limits: Limits{Budget: Budget{ArtifactBytes: 64 << 20, SpawnDepth: 8}, CallSeconds: 1800, Width: 1, LeastSeconds: 24 * 3600,
			MostSeconds: 30 * 24 * 3600},
	}
}
