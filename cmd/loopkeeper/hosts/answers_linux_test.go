package hosts

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// nodes is what of `loopkeeper nodes -o json` the tests look at.
type nodes struct {
	Nodes      []node   `json:"nodes"`
	Candidates []string `json:"candidates"`
}

type node struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Address  string    `json:"address"`
	State    string    `json:"state"`
	FoundBy  string    `json:"found_by"`
	LastSeen time.Time `json:"last_seen"`
	Problem  string    `json:"problem"`
	Report   struct {
		Pools []struct {
			Kind  string `json:"kind"`
			Total uint64 `json:"total_bytes"`
		} `json:"pools"`
	} `json:"report"`
}

// device is the memory of the node's device, bytes; 0 when it has none.
func (n node) device() uint64 {
	for _, p := range n.Report.Pools {
		if p.Kind == "device" {
			return p.Total
		}
	}
	return 0
}

func (h *host) nodes(t *testing.T) nodes {
	t.Helper()
	var all nodes
	if code := h.ask(t, &all, "nodes"); code != 0 {
		t.Fatalf("loopkeeper nodes: exit code %d", code)
	}
	return all
}

// named returns the only node of that name; the zero node when there is none.
func (all nodes) named(t *testing.T, name string) node {
	t.Helper()
	var found []node
	for _, n := range all.Nodes {
		if n.Name == name {
			found = append(found, n)
		}
	}
	switch len(found) {
	case 0:
		return node{}
	case 1:
		return found[0]
	default:
		t.Fatalf("%d nodes are called %s: %+v", len(found), name, found)
		return node{}
	}
}

// awaitNode waits until the coordinator on h knows a node of that name for which is holds, and returns it.
func (h *host) awaitNode(t *testing.T, limit time.Duration, name, what string, is func(node) bool) node {
	t.Helper()
	var n node
	eventually(t, limit, name+" is "+what, func() (bool, any) {
		all := h.nodes(t)
		n = all.named(t, name)
		return is(n), all
	})
	return n
}

func up(n node) bool { return n.State == "up" }

// ran is what of a run the tests look at.
type ran struct {
	ID    string `json:"id"`
	State string `json:"state"`
	Error string `json:"error"`
	Items struct {
		Total     int `json:"total"`
		Succeeded int `json:"succeeded"`
		Failed    int `json:"failed"`
	} `json:"items"`
	Nodes []struct {
		Name   string `json:"name"`
		Items  int    `json:"items"`
		Failed int    `json:"failed_tries"`
	} `json:"nodes"`
	InFlight []struct {
		Node string `json:"node"`
	} `json:"in_flight"`
}

// on returns how many items succeeded and how many tries failed on the node.
func (r ran) on(name string) (items, failed int) {
	for _, n := range r.Nodes {
		if n.Name == name {
			return n.Items, n.Failed
		}
	}
	return 0, 0
}

// working says whether an item runs on the node.
func (r ran) working(name string) bool {
	for _, f := range r.InFlight {
		if f.Node == name {
			return true
		}
	}
	return false
}

// batchItems is how many lines the batches of the tests have.
const batchItems = 40

// batch is the command line of a batch on the host.
func (h *host) batch(t *testing.T) []string {
	t.Helper()
	var text strings.Builder
	for i := range batchItems {
		fmt.Fprintf(&text, "Pump %d runs at %d bar and was serviced in week %d.\n", i, 3+i*7, 1+i)
	}
	path := filepath.Join(h.home, "pumps.txt")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"map", "--model", "qwen3:8b", "--prompt", "Summarise in one sentence: {{item}}", "--max-tokens", "400", "--each", "line", path}
}

func (h *host) show(t *testing.T, id string) ran {
	t.Helper()
	var r ran
	if code := h.ask(t, &r, "show", id); code != 0 {
		t.Fatalf("loopkeeper show %s: exit code %d", id, code)
	}
	return r
}
