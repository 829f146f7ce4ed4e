package scheduler

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkPlace is a busy evening: 10 nodes, 500 waiting tasks of 5 models, some of which avoid a node.
func BenchmarkPlace(b *testing.B) {
	s := Snapshot{Now: noon}
	for i := range 10 {
		n := gpuNode(fmt.Sprintf("node%02d", i), 24, 23.5, pulled...)
		n.Slots = 4
		s.Nodes = append(s.Nodes, n.load(loadedAt(pulled[i%3], 8192, 4, i%5, time.Hour)))
	}
	for i := range 500 {
		task := Task{Key: fmt.Sprint("t", i), Model: pulled[i%5].Name, Ready: noon.Add(-time.Duration(500-i) * time.Second)}
		if i%7 == 0 {
			task.Avoid = []string{fmt.Sprintf("node%02d", i%10)}
		}
		s.Waiting = append(s.Waiting, task)
	}
	for b.Loop() {
		if plan := Place(s, Limits{}); len(plan.Decisions) < 500 {
			b.Fatalf("%d decisions", len(plan.Decisions))
		}
	}
}
