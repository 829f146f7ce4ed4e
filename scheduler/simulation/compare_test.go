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
	show      = flag.Int("show", -1, "the seed of which to print what happens, under loopkeeper or the first of -policy")
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
	for _, i := range wanted() {
		c, err := Compare(&Suite[i], chosen, *seeds)
		if err != nil {
			t.Error(err)
			continue
		}
		if err := c.Table(os.Stdout); err != nil {
			t.Fatal(err)
		}
		p50, p99, most := DecisionTimes(c)
		t.Logf("decisions: median %s, 99th percentile %s, longest %s", p50, p99, most)
	}
}

// wanted are the workloads of -workload.
func wanted() (list []int) {
	for i := range Suite {
		if slices.ContainsFunc(strings.Split(*workloads, ","), func(s string) bool { return strings.HasPrefix(Suite[i].Name, s) }) {
			list = append(list, i)
		}
	}
	return list
}

// TestTrace prints one simulation line by line: go test ./scheduler/simulation -run TestTrace -v -workload wave -show 0
func TestTrace(t *testing.T) {
	if *show < 0 {
		t.Skip("-show says which seed")
	}
	name := Loopkeeper.Name
	if *names != "" {
		name, _, _ = strings.Cut(*names, ",")
	}
	for _, i := range wanted() {
		if _, err := Trace(&Suite[i], policy(t, name), uint64(*show), os.Stdout); err != nil {
			t.Error(err)
		}
	}
}
