package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// nearModels adds to an error about a model that no machine has the ones that may have been meant.
func nearModels(ctx context.Context, c *client, models []string, err error) error {
	if codeOf(err) != apierr.NotFound {
		return err
	}
	nodes, failed := c.ListNodes(ctx, &coordinatorv1.ListNodesRequest{})
	if failed != nil {
		return err // what went wrong first matters more
	}
	have := modelNames(nodes)
	for _, m := range models {
		if m == "" || slices.Contains(have, tagged(m)) {
			continue
		}
		e := apierr.As(apierr.FromStatus(err))
		if near := nearest(tagged(m), have); len(near) > 0 {
			e.Message += "; you have " + strings.Join(near, ", ")
		}
		var next []string
		for _, n := range e.Next {
			if !strings.HasPrefix(n, "loopkeeper nodes") && n != "loopkeeper models" { // which show less of it, or come below
				next = append(next, n)
			}
		}
		e.Next = append(next, "loopkeeper models")
		return e
	}
	return err
}

// nearNodes adds to an error about a machine that nobody knows the ones that may have been meant.
func nearNodes(ctx context.Context, c *client, named []string, err error) error {
	if codeOf(err) != apierr.NotFound {
		return err
	}
	r, failed := c.ListNodes(ctx, &coordinatorv1.ListNodesRequest{})
	if failed != nil {
		return err // what went wrong first matters more
	}
	for _, name := range named {
		if known := nodeNames(r); !slices.Contains(known, name) {
			return meant(err, name, known)
		}
	}
	return err
}

// meant adds the names that a mistyped one may stand for, else the few that there are.
func meant(err error, name string, known []string) error {
	e := apierr.As(apierr.FromStatus(err))
	var near []string
	for _, k := range known {
		if alike(strings.ToLower(name), strings.ToLower(k)) {
			near = append(near, k)
		}
	}
	switch {
	case len(near) > 0:
		e.Message += "; did you mean " + strings.Join(near[:min(len(near), 3)], " or ") + "?"
	case len(known) > 0 && len(known) <= 6:
		e.Message += "; there are " + strings.Join(known, ", ")
	}
	return e
}

// nodeNames are the names of the machines, and the ids of those whose name others have too.
func nodeNames(r *coordinatorv1.ListNodesResponse) (names []string) {
	for _, n := range r.GetNodes() {
		if slices.Contains(names, n.GetName()) {
			names = append(names, n.GetId())
		} else {
			names = append(names, n.GetName())
		}
	}
	return names
}

// alike says whether one name may be the other one mistyped or shortened.
func alike(name, other string) bool {
	return distance(other, name) <= 1+len(name)/4 || strings.HasPrefix(other, name) || strings.HasPrefix(name, other)
}

// tagged is a model's full name: without a tag Ollama means the latest.
func tagged(name string) string {
	if strings.Contains(name[strings.LastIndex(name, "/")+1:], ":") {
		return name
	}
	return name + ":latest"
}

// nearest are the names of the same family, else those that are a few letters away; at most three.
func nearest(name string, have []string) []string {
	family, _, _ := strings.Cut(name, ":")
	var same, others []string
	for _, h := range have {
		f, _, _ := strings.Cut(h, ":")
		switch {
		case f == family:
			same = append(same, h)
		case alike(strings.ToLower(family), strings.ToLower(f)):
			others = append(others, h)
		}
	}
	all := append(same, others...)
	return all[:min(len(all), 3)]
}

// distance is Levenshtein's: how many letters must be changed, added or dropped.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
