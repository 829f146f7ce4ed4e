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
	var same, close []string
	for _, h := range have {
		f, _, _ := strings.Cut(h, ":")
		switch {
		case f == family:
			same = append(same, h)
		case distance(strings.ToLower(f), strings.ToLower(family)) <= 1+len(family)/4, strings.HasPrefix(f, family), strings.HasPrefix(family, f):
			close = append(close, h)
		}
	}
	all := append(same, close...)
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
