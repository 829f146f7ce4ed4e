package hwprobe

// ReportVersion is the version of the Report's JSON form. Adding a field keeps it; changing the meaning of one raises it.
const ReportVersion = 1

// HostPool is the id of the pool that is the machine's main memory. Every report has it.
const HostPool = "host"

// Report is what one probe found out. It is a value: a later probe makes a new one.
type Report struct {
	Version  int       `json:"version"`
	Host     Host      `json:"host"`
	Devices  []Device  `json:"devices"`  // ordered by id; empty, not null, when there is none
	Pools    []Pool    `json:"pools"`    // the host pool first, then ordered by id
	Warnings []Warning `json:"warnings"` // what could not be read or is wrong; empty, not null, when all is well
	// Hidden are the devices that an override took out of Devices, as they were found; their pools are out, too.
	Hidden []Device `json:"hidden,omitempty"`
}

// Device returns the device with this id.
func (r Report) Device(id string) (Device, bool) {
	for _, d := range r.Devices {
		if d.ID == id {
			return d, true
		}
	}
	return Device{}, false
}

// Pool returns the pool with this id.
func (r Report) Pool(id string) (Pool, bool) {
	for _, p := range r.Pools {
		if p.ID == id {
			return p, true
		}
	}
	return Pool{}, false
}

// Host is the machine itself. Its memory is the machine's, whatever limit a container sets; the limit is in the host pool.
type Host struct {
	Hostname       string `json:"hostname"`
	OS             string `json:"os"`   // as Go spells it: linux, darwin, windows
	Arch           string `json:"arch"` // as Go spells it: amd64, arm64
	Kernel         string `json:"kernel,omitempty"`
	CPU            string `json:"cpu,omitempty"`   // model name
	Cores          int    `json:"cores,omitempty"` // logical processors; absent when unknown, as no machine has none
	TotalBytes     Bytes  `json:"total_bytes"`
	AvailableBytes Bytes  `json:"available_bytes"` // what programs can still get without swapping (MemAvailable on Linux)
}

// Device is one accelerator, or one partition of an accelerator.
type Device struct {
	// ID is stable across probes and reboots where the machine allows it: "gpu:" and the PCI address, a partition's UUID, the
	// UUID, the LUID, or else a name that holds only while the machine is not changed.
	ID          string `json:"id"`
	Vendor      Vendor `json:"vendor"`
	Name        string `json:"name"`                // for people; says nothing about the memory
	PCI         string `json:"pci,omitempty"`       // normalised, see PCIAddress; a partition has its card's
	LUID        string `json:"luid,omitempty"`      // Windows' name for the adapter until it restarts, see LUID
	UUID        string `json:"uuid,omitempty"`      // as the vendor spells it
	Partition   string `json:"partition,omitempty"` // which part of the card at PCI it is, such as MIG's "3g.40gb"; empty: the whole
	Integrated  Flag   `json:"integrated"`          // true: shares the host's memory chips (unified); false: has its own
	Driver      string `json:"driver,omitempty"`    // version where the vendor tells it, else the kernel module's name
	State       State  `json:"state"`
	AgeSeconds  uint64 `json:"age_seconds,omitempty"` // since a probe last found it; 0: this one did
	Forced      bool   `json:"forced,omitempty"`      // an override says that it is to be used, whatever its kind
	Pool        string `json:"pool"`                  // id of the pool it draws on
	Utilisation Number `json:"utilisation_percent"`   // 0 to 100
	Temperature Number `json:"temperature_celsius"`
	Power       Number `json:"power_watts"`
}

// Vendor is who made a device.
type Vendor string

// The vendors.
const (
	NVIDIA Vendor = "nvidia"
	AMD    Vendor = "amd"
	Intel  Vendor = "intel"
	Apple  Vendor = "apple"
	// OtherVendor made a device that Windows lists and no part of the probe knows.
	OtherVendor Vendor = "other"
)

// State says whether a device can be used now.
type State string

// The states of a device.
const (
	// StateOK: it works and its numbers are current.
	StateOK State = "ok"
	// StateAsleep: it is powered down to save energy and wakes when used; numbers that only a wake could tell are unknown.
	StateAsleep State = "asleep"
	// StateDegraded: it is there, but a driver or a permission stops it from being read or used; a warning says what to do.
	StateDegraded State = "degraded"
	// StateLost: it was there and no longer answers, such as a card that fell off the bus.
	StateLost State = "lost"
	// StateUnsupported: it is there, but this version cannot tell how it may be used; nothing should be placed on it.
	StateUnsupported State = "unsupported"
)

// Pool is memory that can be claimed once, whoever draws on it.
type Pool struct {
	ID          string   `json:"id"` // HostPool, the id of the device that owns it, or of the card whose partitions share it
	Kind        PoolKind `json:"kind"`
	TotalBytes  Bytes    `json:"total_bytes"`
	TotalSource Source   `json:"total_source,omitempty"` // empty when the total is unknown
	// TotalAgeSeconds is how old a total from SourceLastKnown is; 0: this probe read it.
	TotalAgeSeconds uint64 `json:"total_age_seconds,omitempty"`
	FreeBytes       Bytes  `json:"free_bytes"`
	FreeSource      Source `json:"free_source,omitempty"` // empty when free is unknown
	// ReserveBytes is what the machine's owner keeps out of use. Total and free still count it: who places something subtracts it.
	ReserveBytes uint64     `json:"reserve_bytes,omitempty"`
	Parts        []PoolPart `json:"parts,omitempty"` // only where a pool is made of parts, such as an APU's
}

// PoolPart is one part of a pool. An engine may be able to use only one of them.
type PoolPart struct {
	Name       string `json:"name"`                  // "vram": set aside for the device; "gtt", "shared": host memory it may use
	BorrowedOf string `json:"borrowed_of,omitempty"` // id of the pool that really holds these bytes; a claim counts there too
	TotalBytes Bytes  `json:"total_bytes"`
	FreeBytes  Bytes  `json:"free_bytes"`
}

// PoolKind says who can use a pool.
type PoolKind string

// The kinds of pools.
const (
	// PoolOfHost: main memory that only the processor uses.
	PoolOfHost PoolKind = "host"
	// PoolOfDevice: memory of one discrete device.
	PoolOfDevice PoolKind = "device"
	// PoolUnified: memory that both the processor and a device draw on.
	PoolUnified PoolKind = "unified"
)

// Source says where a number comes from.
type Source string

// The sources.
const (
	SourceOS          Source = "os"              // the operating system's own account: /proc/meminfo on Linux
	SourceCgroup      Source = "cgroup"          // the limit of the control group that the probe runs in
	SourceNVIDIASMI   Source = "nvidia-smi"      // NVIDIA's tool
	SourceAMDGPUSysfs Source = "amdgpu-sysfs"    // mem_info_* of the amdgpu driver
	SourceROCmSMI     Source = "rocm-smi"        // AMD's older tool
	SourceAMDSMI      Source = "amd-smi"         // AMD's newer tool
	SourceDRM         Source = "drm-ioctl"       // the kernel's DRM interface
	SourceIntelFiles  Source = "intel-files"     // files of Intel's driver in sysfs or debugfs
	SourceDXGI        Source = "dxgi"            // Windows' graphics interface
	SourceRegistry    Source = "registry"        // what a driver or DirectX wrote into Windows' registry
	SourcePDH         Source = "pdh"             // Windows' performance counters
	SourceMetal       Source = "metal"           // Apple's graphics interface
	SourceSysctl      Source = "sysctl"          // macOS' settings
	SourceIORegistry  Source = "ioreg"           // the I/O registry of macOS' kernel
	SourceProfiler    Source = "system_profiler" // macOS' tool
	SourceEstimate    Source = "estimate"        // a rule, where a Mac tells its main memory and not what the GPU may use of it
	SourceOverride    Source = "override"        // the machine's owner, see Overrides
	SourceLastKnown   Source = "last known"      // an earlier probe; Pool.TotalAgeSeconds says how old it is
)

// Warning says what could not be read or is wrong, and what to do about it.
type Warning struct {
	Code    WarningCode `json:"code"`
	Device  string      `json:"device,omitempty"` // id of the device it is about
	Message string      `json:"message"`
	Next    string      `json:"next"` // the most useful next step for the machine's owner
}

// WarningCode is the stable kind of a warning.
type WarningCode string

// The kinds of warnings.
const (
	WarnHostUnreadable  WarningCode = "host_unreadable"    // main memory or processor could not be read
	WarnMemoryLimited   WarningCode = "memory_limited"     // a control group allows less than the machine has
	WarnMemoryUnknown   WarningCode = "memory_unknown"     // a device does not tell its memory
	WarnMemoryEstimated WarningCode = "memory_estimated"   // a pool's total is a rule's, not the machine's
	WarnGPUsUnreadable  WarningCode = "gpus_unreadable"    // the operating system does not list its graphics adapters
	WarnToolMissing     WarningCode = "tool_missing"       // a device is there, its vendor's tool is not
	WarnToolTimeout     WarningCode = "tool_timeout"       // a vendor tool did not answer in time
	WarnToolFailed      WarningCode = "tool_failed"        // a vendor tool failed in a way that no other code names
	WarnDriverNotLoaded WarningCode = "driver_not_loaded"  // the tool is there, the driver does not answer
	WarnDriverMismatch  WarningCode = "driver_mismatch"    // kernel module and user library differ in version
	WarnAccessLost      WarningCode = "access_lost"        // a container lost its devices, or the OS blocks them
	WarnNoPermission    WarningCode = "no_permission"      // the numbers need more rights
	WarnDeviceLost      WarningCode = "device_lost"        // a device fell off the bus
	WarnNeedsReset      WarningCode = "needs_reset"        // a device works again only after a reset
	WarnPartitioned     WarningCode = "partitioned"        // a device is split, and the parts are not read
	WarnDeviceRemoved   WarningCode = "device_removed"     // a device that was there is gone without an error, as when it is unplugged
	WarnProbeStuck      WarningCode = "probe_stuck"        // a part of the probe hangs, as a read from a broken driver does
	WarnProbeFailed     WarningCode = "probe_failed"       // a part of the probe broke: a fault of this program
	WarnOverride        WarningCode = "override_unmatched" // an override names nothing that is there
	WarnUnsupportedGPU  WarningCode = "unsupported_gpu"    // a device that this version cannot judge
	WarnPartOfPool      WarningCode = "part_of_pool"       // some engines can use only a part of a device's pool
)
