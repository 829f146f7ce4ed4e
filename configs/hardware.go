package configs

import (
	"fmt"
	"strings"
)

// Hardware is what the owner of a machine says about its hardware, over what is probed.
type Hardware struct {
	// Memory is what this machine has for models: it pins the total of its accelerator's pool, or of main memory where there is none.
	// With several accelerators say it in Pools. Default 0: as probed.
	Memory Size `yaml:"memory"`
	// Pools pin totals and keep memory out of use, by pool.
	Pools Pools `yaml:"pools"`
	// Devices hide or force devices.
	Devices Devices `yaml:"devices"`
}

// Pool is the owner's word about one pool of memory.
type Pool struct {
	// ID is the pool's as `loopkeeper probe` shows it, or PCI address, UUID or LUID of a device that draws on it.
	ID string `yaml:"id" json:"id"`
	// Total replaces the probed total. Default 0: as probed.
	Total Size `yaml:"total" json:"total_bytes"`
	// Reserve is kept out of use. Default 0.
	Reserve Size `yaml:"reserve" json:"reserve_bytes"`
}

// String is "host: total 24 GiB, reserve 4 GiB".
func (p Pool) String() string {
	var said []string
	if p.Total > 0 {
		said = append(said, "total "+p.Total.String())
	}
	if p.Reserve > 0 {
		said = append(said, "reserve "+p.Reserve.String())
	}
	return p.ID + ": " + strings.Join(said, ", ")
}

// Device is the owner's word about one device.
type Device struct {
	// ID is the device's as `loopkeeper probe` shows it, or its PCI address, UUID or LUID.
	ID string `yaml:"id" json:"id"`
	// Hide takes the device out, as one that is kept for something else.
	Hide bool `yaml:"hide" json:"hide"`
	// Force has it used whatever its kind, as one that is not known to work.
	Force bool `yaml:"force" json:"force"`
}

// String is "gpu:0000:0c:00.0: hide".
func (d Device) String() string {
	if d.Hide {
		return d.ID + ": hide"
	}
	return d.ID + ": force"
}

// Pools and Devices are lists that know how they are shown.
type (
	// Pools is a list of Pool.
	Pools []Pool
	// Devices is a list of Device.
	Devices []Device
)

// String joins the list.
func (p Pools) String() string { return joined(p) }

// String joins the list.
func (d Devices) String() string { return joined(d) }

func joined[T fmt.Stringer](list []T) string {
	all := make([]string, len(list))
	for i, x := range list {
		all[i] = x.String()
	}
	return strings.Join(all, "; ")
}

// validate returns the key and the fault of the first entry that cannot work.
func (h Hardware) validate() (key string, err error) {
	seen := map[string]bool{}
	for i, p := range h.Pools {
		key := fmt.Sprintf("worker.hardware.pools[%d]", i)
		switch {
		case p.ID == "":
			return key, fmt.Errorf("want an id: loopkeeper probe shows those of this machine")
		case seen[p.ID]:
			return key, fmt.Errorf("pool %s stands there twice", p.ID)
		case p.Total == 0 && p.Reserve == 0:
			return key, fmt.Errorf("pool %s: want a total or a reserve", p.ID)
		case p.Total > 0 && p.Reserve >= p.Total:
			return key, fmt.Errorf("pool %s: a reserve of %s leaves nothing of %s", p.ID, p.Reserve, p.Total)
		}
		seen[p.ID] = true
	}
	clear(seen)
	for i, d := range h.Devices {
		key := fmt.Sprintf("worker.hardware.devices[%d]", i)
		switch {
		case d.ID == "":
			return key, fmt.Errorf("want an id: loopkeeper probe shows those of this machine")
		case seen[d.ID]:
			return key, fmt.Errorf("device %s stands there twice", d.ID)
		case d.Hide == d.Force:
			return key, fmt.Errorf("device %s: want hide: true or force: true", d.ID)
		}
		seen[d.ID] = true
	}
	return "", nil
}
