package ollamatest

import (
	"cmp"
	"time"
)

// Defaults of a real Ollama 0.17.4 (envconfig/config.go), and of this stand-in where Ollama has no such setting.
const (
	DefaultVersion   = "0.17.4"
	defaultMemory    = 24 << 30 // bytes: a common consumer card
	defaultKeepAlive = 5 * time.Minute
	defaultMaxQueue  = 512
	defaultMaxLoaded = 3 // OLLAMA_MAX_LOADED_MODELS: three per device
	defaultSlowdown  = 8 // how much slower the host computes than the device
)

// Config describes one simulated Ollama. The zero value is usable: 24 GiB of device memory, the small presets, no
// waiting and no faults.
type Config struct {
	Name          string        `yaml:"name"`           // shown by /control/info
	Version       string        `yaml:"version"`        // as /api/version reports it; 0.30 and newer change the rules
	Memory        Bytes         `yaml:"memory"`         // device memory
	CPUOnly       bool          `yaml:"cpu_only"`       // no device: models live in host memory
	HostMemory    Bytes         `yaml:"host_memory"`    // what may spill to the host; 0 = without limit
	LoadSpeed     Bytes         `yaml:"load_speed"`     // bytes per second; 0 = at once
	LoadLatency   time.Duration `yaml:"load_latency"`   // added to every load
	PromptRate    float64       `yaml:"prompt_rate"`    // tokens per second; 0 = at once
	DecodeRate    float64       `yaml:"decode_rate"`    // tokens per second and slot; 0 = at once
	Slowdown      float64       `yaml:"slowdown"`       // factor for the part of a model that spilled to the host
	Slots         int           `yaml:"slots"`          // OLLAMA_NUM_PARALLEL
	MaxQueue      int           `yaml:"max_queue"`      // OLLAMA_MAX_QUEUE
	MaxLoaded     int           `yaml:"max_loaded"`     // OLLAMA_MAX_LOADED_MODELS
	KeepAlive     time.Duration `yaml:"keep_alive"`     // OLLAMA_KEEP_ALIVE; negative = for ever
	ContextLength int           `yaml:"context_length"` // OLLAMA_CONTEXT_LENGTH; 0 = by device memory, as Ollama does
	Seed          uint64        `yaml:"seed"`           // of the faults
	Models        []Model       `yaml:"models"`         // installed; nil = SmallPresets
	Registry      []Model       `yaml:"registry"`       // what pull finds beside the presets
	Faults        []Fault       `yaml:"faults"`
	Player        Player        `yaml:"-"` // answers in place of the stand-in's own words
}

// complete fills in defaults and refuses what makes no sense.
func (c Config) complete() (Config, error) {
	c.Version = cmp.Or(c.Version, DefaultVersion)
	c.Memory = cmp.Or(c.Memory, defaultMemory)
	if c.CPUOnly {
		c.Memory = 0
	}
	c.Slots = cmp.Or(c.Slots, 1)
	c.MaxQueue = cmp.Or(c.MaxQueue, defaultMaxQueue)
	c.MaxLoaded = cmp.Or(c.MaxLoaded, defaultMaxLoaded)
	c.KeepAlive = cmp.Or(c.KeepAlive, defaultKeepAlive)
	c.Slowdown = cmp.Or(c.Slowdown, defaultSlowdown)
	c.ContextLength = cmp.Or(c.ContextLength, defaultContext(c.Memory))
	for _, n := range []struct {
		key   string
		value float64
	}{
		{"slots", float64(c.Slots)}, {"max_queue", float64(c.MaxQueue)}, {"max_loaded", float64(c.MaxLoaded)},
		{"context_length", float64(c.ContextLength)}, {"prompt_rate", c.PromptRate}, {"decode_rate", c.DecodeRate},
		{"load_latency", float64(c.LoadLatency)},
	} {
		if n.value < 0 {
			return c, wrong(n.key, "must not be negative")
		}
	}
	if c.Slowdown < 1 {
		return c, wrong("slowdown", "must be at least 1")
	}
	if c.Models == nil {
		c.Models = SmallPresets()
	}
	var err error
	if c.Models, err = completeModels("models", c.Models); err != nil {
		return c, err
	}
	if c.Registry, err = completeModels("registry", c.Registry); err != nil {
		return c, err
	}
	return c, checkFaults(c.Faults)
}

// defaultContext is Ollama's default num_ctx by total device memory (research: scheduling §2.2).
func defaultContext(memory Bytes) int {
	switch {
	case memory >= 47<<30:
		return 262144
	case memory >= 23<<30:
		return 32768
	default:
		return 4096
	}
}

// modern says whether the rules of Ollama 0.30 and newer apply.
func (c Config) modern() bool { return c.since(0, 30, 0) }
