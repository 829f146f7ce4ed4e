package plan

import (
	"slices"
	"strings"
)

// edge says that a step waits for another.
type edge struct {
	to    int      // index of the step that it waits for
	reads []string // names that the other writes and this one reads
	after bool     // the model said so
}

func (e edge) why() string {
	var reasons []string
	if len(e.reads) > 0 {
		reasons = append(reasons, "reads "+strings.Join(e.reads, ", "))
	}
	if e.after {
		reasons = append(reasons, "said to come after it")
	}
	return strings.Join(reasons, "; ")
}

// edges derives for each step what it waits for, sorted: the writers of what it reads, and what the model put before it.
func edges(steps []draftStep) [][]edge {
	writers := map[string][]int{}
	numbered := map[int]int{}
	for i, s := range steps {
		for _, name := range s.Writes {
			writers[name] = append(writers[name], i)
		}
		if _, taken := numbered[s.N]; !taken {
			numbered[s.N] = i
		}
	}
	out := make([][]edge, len(steps))
	for i, s := range steps {
		found := map[int]*edge{}
		at := func(to int) *edge {
			if found[to] == nil {
				found[to] = &edge{to: to}
			}
			return found[to]
		}
		for _, name := range s.Reads {
			for _, w := range writers[name] {
				at(w).reads = append(at(w).reads, name)
			}
		}
		for _, n := range s.After {
			if to, ok := numbered[n]; ok {
				at(to).after = true
			}
		}
		for _, e := range found {
			out[i] = append(out[i], *e)
		}
		slices.SortFunc(out[i], func(a, b edge) int { return a.to - b.to })
	}
	return out
}

// sorted orders the steps, or returns those that lie on a cycle or behind one.
func sorted(edges [][]edge) (order, stuck []int) {
	done := make([]bool, len(edges))
	for len(order) < len(edges) {
		next := -1
		for i := range edges {
			if !done[i] && !slices.ContainsFunc(edges[i], func(e edge) bool { return !done[e.to] }) {
				next = i
				break
			}
		}
		if next < 0 {
			for i := range edges {
				if !done[i] {
					stuck = append(stuck, i)
				}
			}
			return order, stuck
		}
		done[next] = true
		order = append(order, next)
	}
	return order, nil
}

// before returns which steps come before step i on every way of carrying the plan out.
func before(edges [][]edge, i int) []bool {
	seen := make([]bool, len(edges))
	left := []int{i}
	for len(left) > 0 {
		at := left[len(left)-1]
		left = left[:len(left)-1]
		for _, e := range edges[at] {
			if !seen[e.to] {
				seen[e.to] = true
				left = append(left, e.to)
			}
		}
	}
	return seen
}
