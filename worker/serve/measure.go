package serve

import (
	"context"
	"slices"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

// sight is what a load can be measured by: the free memory of the accelerators, and what else was loaded.
type sight struct {
	free   uint64   // bytes over all accelerators
	known  bool     // all of them could be read
	others []string // digests of the other loaded models, sorted
	there  bool     // the model itself is loaded
}

// look sees the machine as it is now, not as in the latest report. Host memory is no measure: mapped weights stay page cache,
// so a machine without accelerators sees nothing.
func (s *Server) look(ctx context.Context, model string) sight {
	loaded, err := s.o.Ollama.Loaded(ctx)
	if err != nil {
		return sight{}
	}
	var now sight
	for _, l := range loaded {
		if ollama.Name(l.Name) == ollama.Name(model) {
			now.there = true
		} else {
			now.others = append(now.others, l.Digest)
		}
	}
	slices.Sort(now.others)
	now.free, now.known = s.deviceFree(ctx)
	return now
}

// deviceFree is the free memory of all accelerators; unknown without one, when one of them cannot be read, and when one has no memory
// of its own.
func (s *Server) deviceFree(ctx context.Context) (free uint64, known bool) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	report := s.Report()
	if report.GetSimulated() {
		m, err := s.o.Ollama.Simulation(ctx)
		return m.FreeBytes, err == nil && m.MemoryBytes > 0
	}
	if !slices.ContainsFunc(report.GetPools(), accelerated) {
		return 0, false
	}
	now, ok := s.monitor.machine.fresh(ctx)
	if !ok {
		return 0, false
	}
	for _, p := range now.Pools {
		if p.Kind == hwprobe.PoolOfHost {
			continue
		}
		bytes, ok := p.FreeBytes.Value()
		if !ok || p.Kind == hwprobe.PoolUnified { // where the host's memory is the device's, mapped weights count as free, too
			return 0, false
		}
		free, known = free+bytes, true
	}
	return free, known
}

// taken is what a load took between two looks, bytes. It is unknown when something else moved meanwhile: then the difference is
// not the model's.
func taken(before, after sight) (uint64, bool) {
	if !before.known || !after.known || before.there || !after.there || !slices.Equal(before.others, after.others) || after.free >= before.free {
		return 0, false
	}
	return before.free - after.free, true
}
