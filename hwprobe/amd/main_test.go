package amd

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// card adds a card with memory: VRAM total, VRAM used, GTT total, GTT used in bytes, empty for a file that is not there.
func card(root fstest.MapFS, name, id, pci string, memory ...string) fstest.MapFS {
	dir := "sys/class/drm/" + name + "/device/"
	fixture.Write(root, dir+"vendor", "0x1002\n", dir+"uevent", "DRIVER=amdgpu\nPCI_ID="+strings.ToUpper(id)+"\nPCI_SLOT_NAME="+pci+"\n")
	for i, file := range []string{"vram_total", "vram_used", "gtt_total", "gtt_used"} {
		if i < len(memory) && memory[i] != "" {
			fixture.Write(root, dir+"mem_info_"+file, memory[i]+"\n")
		}
	}
	return root
}

// tools is a Runner of tools that each print one text, or fail; others are not installed.
type tools map[string]any

func (o tools) Run(_ context.Context, name string, _ ...string) (source.Output, error) {
	switch answer := o[name].(type) {
	case string:
		return source.Output{Stdout: []byte(answer)}, nil
	case error:
		return source.Output{}, answer
	}
	return source.Output{}, &exec.Error{Name: name, Err: exec.ErrNotFound}
}

// host has 128 GiB, most of it available, and a new kernel.
func host() hwprobe.Host {
	return hwprobe.Host{OS: "linux", Kernel: "6.18.0", TotalBytes: hwprobe.Known[uint64](128 << 30), AvailableBytes: hwprobe.Known[uint64](120 << 30)}
}

func probe(t *testing.T, root fstest.MapFS, installed tools, h hwprobe.Host) hwprobe.Findings {
	t.Helper()
	return Probe(t.Context(), source.Machine{OS: "linux", Files: root, Commands: installed, Calls: source.Calls{}}, h)
}

// hidden is a container that may use the cards and does not see /sys.
func hidden() fstest.MapFS { return fstest.MapFS{"dev/kfd": {}} }

func codes(f hwprobe.Findings) (list []hwprobe.WarningCode) {
	for _, w := range f.Warnings {
		list = append(list, w.Code)
	}
	return list
}

var errBroken = errors.New("broken")
