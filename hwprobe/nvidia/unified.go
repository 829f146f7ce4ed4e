package nvidia

import (
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

// The compute capabilities by which CUDA itself names the kinds of chips (developer.nvidia.com/cuda-gpus).
var (
	// Chips that are made with a processor and share its memory: Tegra K1 to Thor (11.0, once 10.1), and GB10 and N1X (12.1).
	sharedCapabilities = []string{"3.2", "5.3", "6.2", "7.2", "8.7", "10.1", "11.0", "12.1"}
	// Chips that only come with their own memory, also beside a processor whose page tables they use: Volta beside POWER9; Hopper and
	// Blackwell beside Grace (GH200, GB200, GB300).
	ownCapabilities = []string{"3.0", "3.5", "3.7", "5.0", "5.2", "6.0", "6.1", "7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "10.3", "12.0"}
)

// unified tells whether a device shares the host's memory, unknown when nothing says so or the contrary. ATS is the
// hardware's shared page table; HMM is software and runs on ordinary cards. A small but plausible memory number beside a
// shared memory is a carve-out (unsloth#10283). Where the driver has no notion of device memory, rather than an error
// reading it, there is none; no device of that kind has been made for amd64, so there it stays an open question.
func unified(r row, arch string) hwprobe.Flag {
	capability := r.text("compute_cap")
	total, _ := r.memory()
	switch {
	case strings.Contains(r.text("name"), "(nvgpu)"), slices.Contains(sharedCapabilities, capability):
		return hwprobe.Known(true)
	case r.text("addressing_mode") == "ATS":
		return hwprobe.Known(!slices.Contains(ownCapabilities, capability))
	case total != (hwprobe.Bytes{}), arch == "amd64", slices.Contains(ownCapabilities, capability):
		return hwprobe.Known(false)
	case r.notSupported("memory.total") && r.notSupported("memory.free") && r.answers("name") && r.answers("uuid"):
		return hwprobe.Known(true)
	}
	return hwprobe.Flag{}
}

// answers says whether the cell has a value, or was not asked for.
func (r row) answers(field string) bool {
	_, asked := r.cells[field]
	return !asked || r.text(field) != ""
}
