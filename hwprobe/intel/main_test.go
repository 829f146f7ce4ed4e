package intel

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// card is a card with a render node.
func card(id, pci, driver string) fstest.MapFS {
	const dir = "sys/class/drm/card0/device/"
	return fixture.Write(fstest.MapFS{}, dir+"vendor", "0x8086\n", dir+"drm/renderD128/dev", "226:128\n",
		dir+"uevent", "DRIVER="+driver+"\nPCI_ID="+strings.ToUpper(id)+"\nPCI_SLOT_NAME="+pci+"\n")
}

// The machine's rights, as /proc/self/status shows them: none; CAP_PERFMON alone; all of root's.
const (
	noRights = "Name:\tloopkeeper\nCapPrm:\t000001ffffffffff\nCapEff:\t0000000000000000\n"
	perfmon  = "Name:\tloopkeeper\nCapEff:\t0000004000000000\n"
	allRight = "Name:\tloopkeeper\nCapEff:\t000001ffffffffff\n"
)

// answers is what a machine's drivers answer: a call's name and an error, or bytes as the driver gives them.
type answers map[string]any

func probe(t *testing.T, root fstest.MapFS, a answers) hwprobe.Findings {
	t.Helper()
	calls := source.Calls{}
	for name, answer := range a {
		calls[name] = func(context.Context, ...string) (any, error) {
			switch answer := answer.(type) {
			case error:
				return nil, answer
			case []byte:
				if name == CallXeRegions {
					return decodeXe(answer)
				}
				return decodeI915(answer)
			}
			return answer, nil
		}
	}
	return Probe(t.Context(), source.Machine{OS: "linux", Files: root, Calls: calls}, hwprobe.Host{})
}

// region is one memory region of a reply: its class, its size and what is used (xe) or unallocated (i915), in bytes.
type region struct {
	class      uint16
	size, rest uint64
}

// xeReply is a reply laid out as struct drm_xe_query_mem_regions: a count and a padding, then of each region class, instance
// and page size, total and used, the part that the processor sees and what is used of it, and six reserved numbers.
func xeReply(list ...region) []byte {
	reply := binary.NativeEndian.AppendUint32(nil, uint32(len(list)))
	reply = binary.NativeEndian.AppendUint32(reply, 0)
	for i, r := range list {
		reply = binary.NativeEndian.AppendUint16(reply, r.class)
		reply = binary.NativeEndian.AppendUint16(reply, uint16(i))
		reply = binary.NativeEndian.AppendUint32(reply, 64<<10)
		for _, n := range []uint64{r.size, r.rest, 256 << 20, 1 << 20, 0, 0, 0, 0, 0, 0} {
			reply = binary.NativeEndian.AppendUint64(reply, n)
		}
	}
	return reply
}

// i915Reply is a reply laid out as struct drm_i915_query_memory_regions: a count and three reserved words, then of each region
// class, instance and a reserved word, probed and unallocated size, the same of the part that the processor sees, and six
// reserved numbers.
func i915Reply(list ...region) []byte {
	reply := binary.NativeEndian.AppendUint32(nil, uint32(len(list)))
	reply = append(reply, make([]byte, 12)...)
	for i, r := range list {
		reply = binary.NativeEndian.AppendUint16(reply, r.class)
		reply = binary.NativeEndian.AppendUint16(reply, uint16(i))
		reply = binary.NativeEndian.AppendUint32(reply, 0)
		for _, n := range []uint64{r.size, r.rest, 256 << 20, 256 << 20, 0, 0, 0, 0, 0, 0} {
			reply = binary.NativeEndian.AppendUint64(reply, n)
		}
	}
	return reply
}
