package windows

import (
	"context"
	"encoding/binary"
	"regexp"
	"strconv"
	"unicode/utf16"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// CallCounters is the name of the call that answers with the values of performance counters: for each path of its arguments
// a list of CounterValue. Paths are in English, whatever the machine's language.
const CallCounters = "pdh"

// The counters of what all processes use of an adapter's memory, in bytes. DXGI's own figures are the asking process's.
const (
	dedicatedUsage = `\GPU Adapter Memory(*)\Dedicated Usage`
	sharedUsage    = `\GPU Adapter Memory(*)\Shared Usage`
)

// CounterValue is one instance of a counter.
type CounterValue struct {
	Instance string `json:"instance"` // such as "luid_0x00000000_0x0001532a_phys_0"
	Status   uint32 `json:"status"`   // PDH's; 0 and 1 mean that the value is good
	Value    int64  `json:"value"`
}

// usage is what all processes use of an adapter's memory.
type usage struct{ dedicated, shared hwprobe.Bytes }

// readUsage returns the usage by LUID; it is unknown for one that the counters do not name.
func readUsage(ctx context.Context, calls source.Caller) map[uint64]usage {
	counters, err := source.Ask[map[string][]CounterValue](ctx, calls, CallCounters, dedicatedUsage, sharedUsage)
	if err != nil {
		return nil // before Windows 10 1709 there are no such counters: free is unknown
	}
	dedicated, shared := sumByLUID(counters[dedicatedUsage]), sumByLUID(counters[sharedUsage])
	used := map[uint64]usage{}
	for luid, n := range dedicated {
		used[luid] = usage{dedicated: n, shared: shared[luid]}
	}
	return used
}

var instanceName = regexp.MustCompile(`(?i)^luid_0x([0-9a-f]{8})_0x([0-9a-f]{8})_phys_\d+$`)

// sumByLUID adds up the physical parts of linked cards. One bad value makes its adapter's sum unknown.
func sumByLUID(values []CounterValue) map[uint64]hwprobe.Bytes {
	sums := map[uint64]hwprobe.Bytes{}
	for _, v := range values {
		name := instanceName.FindStringSubmatch(v.Instance)
		if name == nil {
			continue
		}
		luid, err := strconv.ParseUint(name[1]+name[2], 16, 64)
		if err != nil {
			continue
		}
		n := hwprobe.Bytes{}
		if v.Status <= 1 && v.Value >= 0 {
			n = hwprobe.Known(uint64(v.Value))
		}
		if before, have := sums[luid]; have {
			n = hwprobe.Sum(before, n)
		}
		sums[luid] = n
	}
	return sums
}

// counterItemSize is the size of a PDH_FMT_COUNTERVALUE_ITEM_W where pointers have 8 bytes: the name's address, the status,
// 4 bytes of padding, the value.
const counterItemSize = 24

// decodeCounters reads what PdhGetFormattedCounterArrayW wrote into a buffer that lies at address base: count items, and
// behind them the names that they point to. An item whose name is not inside the buffer is left out.
func decodeCounters(buffer []byte, base uint64, count uint32) []CounterValue {
	values := []CounterValue{}
	for i := uint64(0); i < uint64(count) && (i+1)*counterItemSize <= uint64(len(buffer)); i++ {
		item := buffer[i*counterItemSize:]
		at := binary.LittleEndian.Uint64(item) - base
		if at >= uint64(len(buffer)) {
			continue
		}
		values = append(values, CounterValue{
			Instance: decodeUTF16(buffer[at:]),
			Status:   binary.LittleEndian.Uint32(item[8:]),
			Value:    int64(binary.LittleEndian.Uint64(item[16:])),
		})
	}
	return values
}

// decodeUTF16 reads text up to the first NUL or the end.
func decodeUTF16(raw []byte) string {
	var units []uint16
	for ; len(raw) >= 2; raw = raw[2:] {
		unit := binary.LittleEndian.Uint16(raw)
		if unit == 0 {
			break
		}
		units = append(units, unit)
	}
	return string(utf16.Decode(units))
}
