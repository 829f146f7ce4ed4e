//go:build windows

package windows

import (
	"errors"
	"fmt"
	"unsafe"

	win "golang.org/x/sys/windows"
)

var (
	pdh                  = win.NewLazySystemDLL("pdh.dll")
	pdhOpenQuery         = pdh.NewProc("PdhOpenQueryW")
	pdhAddEnglishCounter = pdh.NewProc("PdhAddEnglishCounterW")
	pdhCollect           = pdh.NewProc("PdhCollectQueryData")
	pdhCounterArray      = pdh.NewProc("PdhGetFormattedCounterArrayW")
	pdhCloseQuery        = pdh.NewProc("PdhCloseQuery")
	pdhProcedures        = []*win.LazyProc{pdhOpenQuery, pdhAddEnglishCounter, pdhCollect, pdhCounterArray, pdhCloseQuery}
)

const (
	pdhFormatLarge = 0x400      // PDH_FMT_LARGE: a 64-bit whole number
	pdhMoreData    = 0x800007d2 // PDH_MORE_DATA: the buffer is too small
)

// counterValues reads counters that are levels, not rates, so that one collection is enough.
func counterValues(paths []string) (map[string][]CounterValue, error) {
	for _, p := range pdhProcedures {
		if err := p.Find(); err != nil {
			return nil, err
		}
	}
	var query win.Handle
	if status, _, _ := pdhOpenQuery.Call(0, 0, uintptr(unsafe.Pointer(&query))); status != 0 {
		return nil, fmt.Errorf("PdhOpenQuery: %#x", uint32(status))
	}
	defer pdhCloseQuery.Call(uintptr(query))
	counters := map[string]win.Handle{}
	for _, path := range paths {
		text, err := win.UTF16PtrFromString(path)
		if err != nil {
			return nil, err
		}
		var counter win.Handle
		if status, _, _ := pdhAddEnglishCounter.Call(uintptr(query), uintptr(unsafe.Pointer(text)), 0, uintptr(unsafe.Pointer(&counter))); status != 0 {
			return nil, fmt.Errorf("PdhAddEnglishCounter %s: %#x", path, uint32(status))
		}
		counters[path] = counter
	}
	if status, _, _ := pdhCollect.Call(uintptr(query)); status != 0 {
		return nil, fmt.Errorf("PdhCollectQueryData: %#x", uint32(status))
	}
	values := map[string][]CounterValue{}
	for path, counter := range counters {
		list, err := counterArray(counter)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		values[path] = list
	}
	return values, nil
}

// counterArray asks for the size, then for the values. An adapter that appears in between makes the buffer too small again.
func counterArray(counter win.Handle) ([]CounterValue, error) {
	var buffer []uint64 // aligned for the items
	for range 4 {
		size, count := uint32(len(buffer)*8), uint32(0)
		var start unsafe.Pointer
		if len(buffer) > 0 {
			start = unsafe.Pointer(&buffer[0])
		}
		status, _, _ := pdhCounterArray.Call(uintptr(counter), pdhFormatLarge,
			uintptr(unsafe.Pointer(&size)), uintptr(unsafe.Pointer(&count)), uintptr(start))
		switch {
		case uint32(status) == pdhMoreData:
			buffer = make([]uint64, (size+7)/8+1)
		case status != 0:
			return nil, fmt.Errorf("PdhGetFormattedCounterArray: %#x", uint32(status))
		case len(buffer) == 0:
			return []CounterValue{}, nil // no instance
		default:
			return decodeCounters(unsafe.Slice((*byte)(start), len(buffer)*8), uint64(uintptr(start)), count), nil
		}
	}
	return nil, errors.New("PdhGetFormattedCounterArray: the counters do not stay the same")
}
