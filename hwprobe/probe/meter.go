package probe

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// startCost is the processor time that starting a process takes of its parent; the benchmark holds it.
const startCost = 3 * time.Millisecond

// meter adds up the processor time of the commands that are run.
type meter struct {
	source.Runner
	spent atomic.Int64 // nanoseconds
}

// Run implements source.Runner.
func (m *meter) Run(ctx context.Context, name string, args ...string) (source.Output, error) {
	out, err := m.Runner.Run(ctx, name, args...)
	m.spent.Add(int64(startCost + out.CPU))
	return out, err
}

func (m *meter) total() time.Duration { return time.Duration(m.spent.Load()) }
