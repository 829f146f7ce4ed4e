package simulation

import (
	"slices"
	"sort"
	"time"

	"github.com/loopkeeper/loopkeeper/scheduler"
)

// gb is the unit of the research prototype's sizes, in bytes.
const gb = 1e9

// Machine is one simulated machine with one Ollama server. The zero value of a field means none or no cap.
type Machine struct {
	Name     string
	Kind     scheduler.PoolKind
	Usable   float64         // bytes that models can take: the pool less what the system holds for itself
	LoadRate float64         // bytes of model file per second
	Fixed    time.Duration   // of every load, whatever its size
	Unload   time.Duration   // until an unloaded model's memory is free
	Lag      time.Duration   // from the end of a load or unload until the coordinator has a report of it
	Slots    int             // calls at once per model (OLLAMA_NUM_PARALLEL)
	MaxCalls int             // calls at once over all models
	Solo     bool            // a load and a call never run together, as in the research prototype
	Tier     int             // what a person would give a router with priorities: 0 is asked first
	Rates    map[string]Rate // by model name, for the models that fit
}

// Rate is how fast a machine runs a model, in tokens per second of one call alone.
type Rate struct{ Prompt, Decode float64 }

// Model is a model that every machine of the fleet has on its disk.
type Model struct {
	Name  string
	Need  float64 // bytes with context, graph and margin, as scheduler.NeedFor counts them
	File  float64 // bytes on disk
	Embed bool
}

// Fleet is the machines and the models of a workload.
type Fleet struct {
	Machines []Machine
	Models   []Model
}

// model is the index of a model by name.
func (f *Fleet) model(name string) int {
	return slices.IndexFunc(f.Models, func(m Model) bool { return m.Name == name })
}

func (f *Fleet) machine(name string) int {
	return slices.IndexFunc(f.Machines, func(m Machine) bool { return m.Name == name })
}

// loadTime is how long a machine takes to load a model.
func (m *Machine) loadTime(model *Model) time.Duration {
	return m.Fixed + seconds(model.File/m.LoadRate)
}

func (m *Machine) slots() int { return max(m.Slots, 1) }

// reserve is what scheduler.Limits keep free by default on a pool of this kind. The simulated system holds exactly that, so
// Usable is what both the scheduler and the simulated Ollama can give to models.
func (m *Machine) reserve() float64 {
	if m.Kind == scheduler.PoolDevice {
		return 256 << 20
	}
	return 8 << 30
}

// only is the fleet with some of its machines.
func (f Fleet) only(names ...string) Fleet {
	f.Machines = slices.DeleteFunc(slices.Clone(f.Machines), func(m Machine) bool { return !slices.Contains(names, m.Name) })
	return f
}

// simContext is the context of every call, in tokens. It only matters through Model.Need.
const simContext = 8192

// shape is a model shape with which scheduler.NeedFor, margin included, comes to the model's Need on one GPU.
func (m *Model) shape() *scheduler.Shape {
	s := scheduler.Shape{Architecture: "simulated", Layers: 1, EmbeddingLength: 64, Heads: 1, KVHeads: []int{1}, VocabSize: 1, ContextLength: simContext}
	n := sort.Search(int(m.Need), func(weights int) bool {
		s.WeightBytes = uint64(weights)
		return float64(scheduler.NeedFor(s, simContext, 1, scheduler.NeedOptions{GPUs: 1}).Total()) >= m.Need
	})
	s.WeightBytes = uint64(max(n, 1))
	return &s
}

// Prototype is the fleet of the research prototype: a unified machine with a large and slow memory, a 24 GB card, a 12 GB card
// with a SATA disk. One call at a time on each, and loads block it.
func Prototype() Fleet {
	return Fleet{
		Machines: []Machine{
			{Name: "A", Kind: scheduler.PoolUnified, Usable: 96 * gb, LoadRate: 2.5 * gb, Fixed: 3 * time.Second, MaxCalls: 1, Solo: true, Tier: 1, Rates: map[string]Rate{
				"plan120": {400, 50}, "w32": {200, 10}, "w14": {450, 22}, "w8": {900, 40}, "emb": {3000, 1e9}}},
			{Name: "B", Kind: scheduler.PoolDevice, Usable: 22.5 * gb, LoadRate: 2.5 * gb, Fixed: 3 * time.Second, MaxCalls: 1, Solo: true, Tier: 0, Rates: map[string]Rate{
				"w32": {773, 33}, "w14": {1630, 75}, "w8": {3800, 110}, "emb": {15000, 1e9}}},
			{Name: "C", Kind: scheduler.PoolDevice, Usable: 11 * gb, LoadRate: 0.5 * gb, Fixed: 3 * time.Second, MaxCalls: 1, Solo: true, Tier: 2, Rates: map[string]Rate{
				"w14": {700, 30}, "w8": {1500, 50}, "emb": {6000, 1e9}}},
		},
		Models: []Model{
			{Name: "plan120", Need: 77 * gb, File: 65 * gb},
			{Name: "w32", Need: 21.2 * gb, File: 19.8 * gb},
			{Name: "w14", Need: 10.6 * gb, File: 9 * gb},
			{Name: "w8", Need: 6.3 * gb, File: 4.9 * gb},
			{Name: "emb", Need: 0.8 * gb, File: 0.6 * gb, Embed: true},
		},
	}
}

// Home is a fleet as people have it, with the figures of research/scheduling.md section 5.4: a Strix Halo, a 4090 and a 3090
// with NVMe disks, a 3080 Ti with a SATA disk. Several calls run at once and share the machine; a model is loaded beside running calls.
func Home() Fleet {
	machine := func(name string, kind scheduler.PoolKind, usable, rate float64, tier int, rates map[string]Rate) Machine {
		return Machine{Name: name, Kind: kind, Usable: usable * gb, LoadRate: rate * gb, Fixed: 3 * time.Second, Unload: time.Second,
			Lag: 500 * time.Millisecond, Slots: 2, Tier: tier, Rates: rates}
	}
	return Fleet{
		Machines: []Machine{
			machine("a-halo", scheduler.PoolUnified, 88, 1.7, 1, map[string]Rate{ // 14B, 8B: by bandwidth from the 24B and 31B measured
				"plan120": {404, 52}, "coder30": {779, 66}, "w32": {210, 10}, "w14": {450, 22}, "w8": {900, 38}, "emb": {4000, 1e9}}),
			machine("b-4090", scheduler.PoolDevice, 23, 3, 0, map[string]Rate{
				"coder30": {2500, 150}, "w32": {1415, 40.1}, "w14": {3142, 88.9}, "w8": {6899, 127.7}, "emb": {20000, 1e9}}),
			machine("c-3090", scheduler.PoolDevice, 23, 2, 0, map[string]Rate{
				"coder30": {1400, 110}, "w32": {773, 33.7}, "w14": {1635, 75}, "w8": {3865, 111.7}, "emb": {15000, 1e9}}),
			machine("d-3080ti", scheduler.PoolDevice, 11.4, 0.5, 2, map[string]Rate{
				"w14": {1500, 70}, "w8": {3557, 106.7}, "emb": {13000, 1e9}}),
		},
		Models: []Model{
			{Name: "plan120", Need: 70 * gb, File: 65 * gb},
			{Name: "coder30", Need: 20.5 * gb, File: 18.6 * gb},
			{Name: "w32", Need: 21.8 * gb, File: 19.8 * gb},
			{Name: "w14", Need: 10.9 * gb, File: 9 * gb},
			{Name: "w8", Need: 6.9 * gb, File: 4.9 * gb},
			{Name: "emb", Need: 0.9 * gb, File: 0.3 * gb, Embed: true},
		},
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
