package configs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Node is what a person leaves of one machine.
type Node struct {
	// Hours are when it may be used, such as "Mon-Fri 18:00-08:00"; none: always. See ParseWindow.
	Hours []string `yaml:"hours" json:"hours"`
	// Zone is the time zone of Hours, such as Europe/Berlin. Default: the coordinator's.
	Zone string `yaml:"zone" json:"zone"`
	// Reserve is kept free in each of its pools of memory that models load into. Default 0: as loopkeeper keeps free by itself.
	Reserve Size `yaml:"reserve" json:"reserve_bytes"`
	// MaxCalls is how many calls may run there at once, over all models. Default 0: as many as its slots.
	MaxCalls int `yaml:"max_calls" json:"max_calls"`
	// KVType is what OLLAMA_KV_CACHE_TYPE is set to for its Ollama, which tells nobody: f16, q8_0 or q4_0. Default: f16.
	KVType string `yaml:"kv_type" json:"kv_type"`
	// GPUOverhead is what OLLAMA_GPU_OVERHEAD is set to for its Ollama, which tells nobody: kept free on each GPU. Default 0.
	GPUOverhead Size `yaml:"gpu_overhead" json:"gpu_overhead_bytes"`
}

// kvTypes are the types of a KV cache that Ollama knows.
var kvTypes = []string{"f16", "q8_0", "q4_0"}

// Resource is the limit of something that calls hold while they run.
type Resource struct {
	// Cap is how many calls may hold it at once. Default 0: any number.
	Cap int `yaml:"cap" json:"cap"`
	// Rate is how many calls a second may take it. Default 0: any number.
	Rate float64 `yaml:"rate" json:"rate"`
	// Burst is how many may take it at once after a pause. Default 1.
	Burst int `yaml:"burst" json:"burst"`
}

// The policies for models that are only on some machines.
const (
	PullAsk   = "ask"   // say which download would pay, and the command
	PullAuto  = "auto"  // download by itself what pays
	PullNever = "never" // say nothing
)

// Nodes, Resources and Pins are tables that know how they are shown.
type (
	// Nodes is a table of Node by id or name.
	Nodes map[string]Node
	// Resources is a table of Resource by name.
	Resources map[string]Resource
	// Pins is a table of ids or names of nodes by model.
	Pins map[string][]string
)

// Windows are the node's hours, read; validate has made sure that they can be.
func (n Node) Windows() ([]Window, error) {
	out := make([]Window, len(n.Hours))
	for i, text := range n.Hours {
		var err error
		if out[i], err = ParseWindow(text); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Location is the time zone of the node's hours; nil is the coordinator's.
func (n Node) Location() (*time.Location, error) {
	if n.Zone == "" {
		return nil, nil
	}
	z, err := time.LoadLocation(n.Zone)
	if err != nil || n.Zone == "Local" {
		return nil, fmt.Errorf("want a time zone such as Europe/Berlin, got %q", n.Zone)
	}
	return z, nil
}

// String is "Mon-Fri 18:00-08:00 Europe/Berlin, reserve 2 GiB, max_calls 1".
func (n Node) String() string {
	var said []string
	if len(n.Hours) > 0 {
		said = append(said, strings.TrimSpace(strings.Join(n.Hours, " + ")+" "+n.Zone))
	}
	if n.Reserve > 0 {
		said = append(said, "reserve "+n.Reserve.String())
	}
	if n.MaxCalls > 0 {
		said = append(said, fmt.Sprintf("max_calls %d", n.MaxCalls))
	}
	if n.KVType != "" {
		said = append(said, "kv_type "+n.KVType)
	}
	if n.GPUOverhead > 0 {
		said = append(said, "gpu_overhead "+n.GPUOverhead.String())
	}
	return strings.Join(said, ", ")
}

// String is "cap 2, rate 0.5, burst 5".
func (r Resource) String() string {
	var said []string
	if r.Cap > 0 {
		said = append(said, fmt.Sprintf("cap %d", r.Cap))
	}
	if r.Rate > 0 {
		said = append(said, fmt.Sprintf("rate %g", r.Rate))
	}
	if r.Burst > 0 {
		said = append(said, fmt.Sprintf("burst %d", r.Burst))
	}
	return strings.Join(said, ", ")
}

// String joins the table.
func (n Nodes) String() string {
	return table(n, Node.String)
}

// String joins the table.
func (r Resources) String() string {
	return table(r, Resource.String)
}

// String joins the table.
func (p Pins) String() string {
	return table(p, func(nodes []string) string { return strings.Join(nodes, ", ") })
}

func table[V any](m map[string]V, text func(V) string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		all = append(all, key+": "+text(m[key]))
	}
	return strings.Join(all, "; ")
}

// validatePlacement returns the key and the fault of the first setting about models, nodes and resources that cannot work.
func validatePlacement(c *Config) (string, error) {
	switch m := c.Models; {
	case m.IdleUnload < 0 || m.IdleUnload > 0 && m.IdleUnload < time.Second:
		return "models.idle_unload", fmt.Errorf("want at least 1s, or 0 for never, got %s", m.IdleUnload)
	case m.Pull != PullAsk && m.Pull != PullAuto && m.Pull != PullNever:
		return "models.pull", fmt.Errorf("want %s, %s or %s, got %q", PullAsk, PullAuto, PullNever, m.Pull)
	}
	for _, model := range slices.Sorted(maps.Keys(c.Models.Contexts)) {
		if n := c.Models.Contexts[model]; n < 1 {
			return "models.contexts." + model, fmt.Errorf("want at least 1 token, got %d", n)
		}
	}
	for _, model := range slices.Sorted(maps.Keys(c.Models.Pins)) {
		key := "models.pins." + model
		if len(c.Models.Pins[model]) == 0 {
			return key, fmt.Errorf("want the names of the machines that keep %s loaded, such as [attic]", model)
		}
		for i, node := range c.Models.Pins[model] {
			if strings.TrimSpace(node) == "" {
				return fmt.Sprintf("%s[%d]", key, i), fmt.Errorf("want the name of a machine, got an empty text")
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Nodes)) {
		if key, err := c.Nodes[name].validate(); err != nil {
			return "nodes." + name + key, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Resources)) {
		if key, err := c.Resources[name].validate(); err != nil {
			return "resources." + name + key, err
		}
	}
	return "", nil
}

func (n Node) validate() (key string, err error) {
	for i, text := range n.Hours {
		if _, err := ParseWindow(text); err != nil {
			return fmt.Sprintf(".hours[%d]", i), err
		}
	}
	if _, err := n.Location(); err != nil {
		return ".zone", err
	}
	switch {
	case n.Zone != "" && len(n.Hours) == 0:
		return ".zone", fmt.Errorf("is the time zone of hours, and there are none")
	case n.MaxCalls < 0:
		return ".max_calls", fmt.Errorf("want at least 0, got %d", n.MaxCalls)
	case n.KVType != "" && !slices.Contains(kvTypes, n.KVType):
		return ".kv_type", fmt.Errorf("want %s, as OLLAMA_KV_CACHE_TYPE there, got %q", strings.Join(kvTypes, ", "), n.KVType)
	}
	return "", nil
}

func (r Resource) validate() (key string, err error) {
	switch {
	case r.Cap < 0:
		return ".cap", fmt.Errorf("want at least 0, got %d", r.Cap)
	case !(r.Rate >= 0 && r.Rate <= 1e6): // NaN too
		return ".rate", fmt.Errorf("want calls a second, such as 0.5, got %g", r.Rate)
	case r.Burst < 0:
		return ".burst", fmt.Errorf("want at least 0, got %d", r.Burst)
	case r.Cap == 0 && r.Rate == 0:
		return "", fmt.Errorf("want a cap or a rate: without either it limits nothing")
	case r.Burst > 0 && r.Rate == 0:
		return ".burst", fmt.Errorf("belongs to a rate, and there is none")
	}
	return "", nil
}
