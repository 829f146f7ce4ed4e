package simulation

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var (
	workloads = flag.String("workload", "", "workloads whose name begins so; a comma between several")
	names     = flag.String("policy", "", "policies by name; a comma between several; loopkeeper is always there")
	seeds     = flag.Int("seeds", 0, "number of seeds")
)

// TestCompare is for people at work on the scheduler: go test ./scheduler/simulation -run TestCompare -workload wave -seeds 5
func TestCompare(t *testing.T) {
	if *seeds == 0 {
		t.Skip("-seeds says how many")
	}
	chosen := []Policy{Loopkeeper}
	for _, p := range policies() {
		if *names == "" && !strings.HasPrefix(p.Name, "aware") || slices.Contains(strings.Split(*names, ","), p.Name) {
			chosen = append(chosen, p)
		}
	}
	for i := range Suite {
		if !slices.ContainsFunc(strings.Split(*workloads, ","), func(s string) bool { return strings.HasPrefix(Suite[i].Name, s) }) {
			continue
		}
		c, err := Compare(&Suite[i], chosen, *seeds)
		if err != nil {
			t.Error(err)
			continue
		}
		if err := c.Table(os.Stdout); err != nil {
			t.Fatal(err)
		}
		p50, p99, most := c.DecisionTimes()
		t.Logf("decisions: median %s, 99th percentile %s, longest %s", p50, p99, most)
	}
}
