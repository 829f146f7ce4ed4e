package probe

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// warned returns the codes of a report's warnings.
func warned(r hwprobe.Report) []hwprobe.WarningCode {
	var codes []hwprobe.WarningCode
	for _, w := range r.Warnings {
		codes = append(codes, w.Code)
	}
	return codes
}

// hanging is a Runner whose tool answers only when it is ended.
type hanging struct{}

func (hanging) Run(ctx context.Context, _ string, _ ...string) (source.Output, error) {
	<-ctx.Done()
	return source.Output{}, ctx.Err()
}

func TestProbeOutlivesAHangingTool(t *testing.T) {
	amd := fixture.Tree(t, "amd-sysfs-rx6900xt-16g.txtar")
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r := Probe(ctx, machine(amd, hanging{}, bigHost("amd64")))
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("took %v, want the timeout", took)
		}
		if !slices.Equal(warned(r), []hwprobe.WarningCode{hwprobe.WarnToolTimeout}) || len(r.Devices) != 1 || r.Devices[0].State != hwprobe.StateOK {
			t.Errorf("got %+v, want the AMD card and a timeout", r)
		}
	})
}
