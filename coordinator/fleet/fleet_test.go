package fleet

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/proto/discovery"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

func inBubble(t *testing.T, f func(*testing.T, *house)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newHouse(t)) })
}

func TestNodeIsUpOnceItDescribedItself(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		f := h.fleet(static("den:1"))
		settle(time.Second)
		if nodes, why := f.View(); len(nodes) != 0 || len(why) != 1 || !strings.HasPrefix(why[0], "den:1: ") {
			t.Fatalf("an address without a worker: %v %q", nodes, why)
		}
		h.start("den:1", newMachine("den"))
		settle(6 * time.Second)
		h.want(f, "den", scheduler.NodeUp)
		if _, ok := f.Client("den"); !ok {
			t.Error("it has no client")
		}
		select {
		case <-f.Changed():
		default:
			t.Error("nobody was told")
		}
		n := f.Nodes()
		if len(n) != 1 || n[0].Name != "the den" || n[0].Slots != 2 || len(n[0].Models) != 1 || n[0].Pools[0].Total != (scheduler.Bytes{N: 8 << 30, Known: true}) || n[0].Pools[0].Free.Known {
			t.Errorf("%+v", n)
		}
		if nodes, why := f.View(); len(why) != 0 || nodes[0].FoundBy != "static" || nodes[0].Problem != "" {
			t.Errorf("%+v %q", nodes, why)
		}
	})
}

// A worker looks at its hardware more rarely than it reports, and its clock may be another one than ours.
func TestFreeMemoryIsAsOldAsTheLookAtTheHardware(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		m, elsewhere := newMachine("den"), time.Now().Add(-time.Hour)
		m.report.Pools[0].ReserveBytes = 3 << 30
		m.report.Time, m.report.Probed = timestamppb.New(elsewhere), timestamppb.New(elsewhere.Add(-40*time.Second))
		h.start("den:1", m)
		f := h.fleet(static("den:1"))
		settle(time.Second)
		if age := f.Nodes()[0].Pools[0].FreeAge; age < 40*time.Second || age > 42*time.Second {
			t.Errorf("free is %s old", age)
		}
		if kept := f.Nodes()[0].Pools[0].Reserve; kept != 3<<30 {
			t.Errorf("the owner keeps %d", kept)
		}
	})
}

func TestStrangersAreRefusedWithAReason(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*workerv1.DescribeResponse)
		says   []string
	}{
		"another fleet":   {func(d *workerv1.DescribeResponse) { d.Fleet = "lab" }, []string{`"lab"`, `"home"`, "set the same `fleet`"}},
		"too old":         {func(d *workerv1.DescribeResponse) { d.Version = "0.3.9" }, []string{"0.3.9", "0.5.0", "update loopkeeper on the den"}},
		"too new":         {func(d *workerv1.DescribeResponse) { d.Version = "0.7.0" }, []string{"update loopkeeper on the coordinator"}},
		"another major":   {func(d *workerv1.DescribeResponse) { d.Version = "1.5.0" }, []string{"update loopkeeper on the coordinator"}},
		"no version":      {func(d *workerv1.DescribeResponse) { d.Version = "dev" }, []string{"same release"}},
		"no node id":      {func(d *workerv1.DescribeResponse) { d.NodeId = "" }, []string{"node id"}},
		"a bad node id":   {func(d *workerv1.DescribeResponse) { d.NodeId = "a/../b" }, []string{"node id"}},
		"one minor older": {func(d *workerv1.DescribeResponse) { d.Version = "v0.4.2" }, nil},
		"one minor newer": {func(d *workerv1.DescribeResponse) { d.Version = "0.6.0-rc1+x" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *house) {
				m := newMachine("den")
				m.describe.Version = "0.5.0"
				c.change(m.describe)
				h.start("den:1", m)
				f := h.fleet(static("den:1"), func(o *Options) { o.Version = "0.5.0" })
				settle(20 * time.Second)
				nodes, why := f.View()
				if c.says == nil {
					if len(nodes) != 1 || len(why) != 0 {
						t.Fatalf("%v %q", nodes, why)
					}
					return
				}
				if len(nodes) != 0 || len(why) != 1 {
					t.Fatalf("%v %q", nodes, why)
				}
				for _, s := range c.says {
					if !strings.Contains(why[0], s) {
						t.Errorf("%q does not say %s", why[0], s)
					}
				}
			})
		})
	}
	if err := compatible("(devel)", "(devel)", "den"); err != nil {
		t.Errorf("two equal builds: %v", err)
	}
}

func TestSilentNodeIsLostOnceAndComesBack(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		m := newMachine("den")
		h.start("den:1", m)
		f := h.fleet(static("den:1"))
		settle(10 * time.Second)
		m.hush(true) // the stream is open and nothing comes
		settle(13 * time.Second)
		h.want(f, "den", scheduler.NodeUp)
		settle(3 * time.Second)
		if got := h.losses(); !slices.Equal(got, []string{"den"}) {
			t.Fatalf("lost %q", got)
		}
		if h.tried("den:1") < 2 {
			t.Error("a stream that hangs is not given up")
		}
		m.hush(false)
		settle(10 * time.Second)
		h.want(f, "den", scheduler.NodeUp)
		settle(5 * time.Minute)
		if got := h.losses(); len(got) != 1 {
			t.Errorf("lost %q", got)
		}
	})
}

func TestNodeWhoseConnectionBreaksIsDegradedThenLost(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		m := newMachine("den")
		h.start("den:1", m)
		f := h.fleet(static("den:1"))
		settle(10 * time.Second)
		m.stop()
		settle(time.Second)
		h.want(f, "den", scheduler.NodeDegraded)
		if _, ok := f.Client("den"); ok {
			t.Error("it has a client")
		}
		settle(time.Hour)
		h.want(f, "den", scheduler.NodeLost)
		nodes, why := f.View()
		if len(why) != 0 {
			t.Errorf("a lost node is told about as a stranger, too: %q", why)
		}
		if got := h.losses(); len(got) != 1 || len(nodes) != 1 || !strings.Contains(nodes[0].Problem, "no report since") || len(f.Nodes()[0].Models) != 1 {
			t.Errorf("lost %q, %+v", got, nodes)
		}
		h.start("den:1", newMachine("den"))
		settle(6 * time.Second)
		h.want(f, "den", scheduler.NodeUp)
	})
}

func TestNodeWithoutOllamaIsDegraded(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		m := newMachine("den")
		h.start("den:1", m)
		f := h.fleet(static("den:1"))
		settle(time.Second)
		m.say(&workerv1.NodeReport{Ollama: &workerv1.Ollama{Error: "connection refused"}})
		settle(3 * time.Second)
		h.want(f, "den", scheduler.NodeDegraded)
		if nodes, _ := f.View(); !strings.Contains(nodes[0].Problem, "connection refused") {
			t.Errorf("%+v", nodes)
		}
	})
}

func TestKnownNodesSurviveARestart(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		m := newMachine("den")
		h.start("den:1", m)
		f := h.fleet(static("den:1"))
		settle(5 * time.Second)
		m.say(report("qwen3:8b", "llama3.2:3b"))
		settle(30 * time.Second)
		seen := f.Nodes()[0].LastSeen
		m.stop()
		f.Stop()
		bad := ledger.Commit{Meta: map[string]json.RawMessage{metaPrefix + "attic": json.RawMessage(`{"report":17}`)}}
		if err := h.store.Append(t.Context(), bad); err != nil {
			t.Fatal(err)
		}

		f = h.fleet() // knows no address but what it remembers
		settle(time.Minute)
		h.want(f, "den", scheduler.NodeLost)
		nodes, _ := f.View()
		if len(nodes) != 1 || nodes[0].Name != "the den" || len(nodes[0].Report.GetModels()) != 2 || nodes[0].Report.GetPools()[0].GetTotalBytes() != 8<<30 {
			t.Fatalf("%+v", nodes)
		}
		if d := nodes[0].LastSeen.Sub(seen).Abs(); d > time.Second {
			t.Errorf("last seen is %s off", d)
		}
		if got := h.losses(); len(got) != 0 {
			t.Errorf("it was lost in an earlier life, not now: %q", got)
		}
		h.start("den:1", newMachine("den"))
		settle(6 * time.Second)
		h.want(f, "den", scheduler.NodeUp)
		if nodes, _ := f.View(); nodes[0].FoundBy != "static" {
			t.Errorf("found by %q", nodes[0].FoundBy)
		}
	})
}

// announces makes discovery find a node at what h.found holds.
func (h *house) announces(id string) func(*Options) {
	return func(o *Options) {
		o.Interval = 20 * time.Second
		o.Find = func(context.Context) (Found, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			return Found{Records: []discovery.Record{{NodeID: id, Fleet: "home", Addrs: append([]string{}, h.found...)}, {NodeID: "other", Fleet: "lab", Addrs: []string{"lab:1"}}},
				Rejected: map[string]string{"other": `belongs to fleet "lab"`, "printer": otherService}}, nil
		}
	}
}

func (h *house) announce(addrs ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.found = addrs
}

func TestNodeThatMovesIsFollowedAndItsOldAddressLetGo(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		m := newMachine("den")
		h.start("den:1", m)
		h.announce("den:1")
		f := h.fleet(h.announces("den"))
		settle(5 * time.Second)
		m.stop()
		h.start("den:2", newMachine("den"))
		h.announce("den:2")
		settle(time.Minute)
		h.want(f, "den", scheduler.NodeUp)
		nodes, why := f.View()
		if len(nodes) != 1 || nodes[0].Address != "den:2" || !slices.Equal(why, []string{`other: belongs to fleet "lab"`}) {
			t.Fatalf("%+v %q", nodes, why)
		}
		before := h.tried("den:1")
		settle(time.Hour)
		if n := h.tried("den:1"); n != before {
			t.Errorf("the old address was dialled %d times more", n-before)
		}
		if h.tried("lab:1") != 0 {
			t.Error("another fleet was dialled")
		}
	})
}

func TestTwoAddressesOfOneNodeAreOneNode(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		m := newMachine("den")
		h.start("den:1", m)
		h.mu.Lock()
		h.at["den.lan:1"] = h.at["den:1"]
		h.mu.Unlock()
		h.announce("den:1")
		f := h.fleet(static("den.lan:1"), h.announces("den"))
		settle(time.Minute)
		nodes, why := f.View()
		if len(nodes) != 1 || len(f.Nodes()) != 1 || len(why) != 1 {
			t.Fatalf("%+v %q", nodes, why)
		}
		h.want(f, "den", scheduler.NodeUp)
		// Either address is enough.
		held, other := nodes[0].Address, "den:1"
		if held == other {
			other = "den.lan:1"
		}
		m.stop()
		h.mu.Lock()
		clear(h.at)
		h.mu.Unlock()
		h.start(other, newMachine("den"))
		settle(30 * time.Second)
		h.want(f, "den", scheduler.NodeUp)
		if nodes, _ := f.View(); nodes[0].Address != other {
			t.Errorf("it is at %s", nodes[0].Address)
		}
		if got := h.losses(); len(got) > 1 {
			t.Errorf("lost %q", got)
		}
	})
}

// Two workers that share a data folder have one id. They are not two addresses of one: the second is left out, and it is said why.
func TestTwoWorkersWithOneIDAreTold(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		h.start("den:1", newMachine("den"))
		attic := newMachine("den")
		attic.describe.Name = "attic"
		h.start("den:2", attic)
		f := h.fleet(static("den:1", "den:2"))
		settle(time.Minute)
		nodes, why := f.View()
		if len(nodes) != 1 || len(why) != 1 {
			t.Fatalf("%+v %q", nodes, why)
		}
		for _, want := range []string{"attic", "the den", "the same data folder", "--data-dir"} {
			if !strings.Contains(why[0], want) && !strings.Contains(nodes[0].Name, want) {
				t.Errorf("%q does not say %q", why[0], want)
			}
		}
		h.want(f, "den", scheduler.NodeUp)
		if got := h.losses(); len(got) > 0 {
			t.Errorf("it was lost: %v", got)
		}
	})
}

func TestAnnouncedAddressThatNobodyAnswersAtIsDropped(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		h.announce("gone:1")
		f := h.fleet(h.announces("den"))
		settle(19 * time.Second)
		if _, why := f.View(); len(why) != 2 || !strings.HasPrefix(why[0], "gone:1: ") {
			t.Fatalf("%q", why)
		}
		h.announce()
		settle(2 * time.Minute)
		before := h.tried("gone:1")
		settle(time.Hour)
		f.mu.Lock()
		links, reasons := len(f.links), len(f.reasons)
		f.mu.Unlock()
		if n := h.tried("gone:1"); n != before || links != 0 || reasons != 0 {
			t.Errorf("%d dials more, %d links and %d reasons are left", n-before, links, reasons)
		}
	})
}

func TestWorkerThatDoesNotReportIsNotDialledWithoutPause(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		m := newMachine("den")
		m.noWatch = true
		h.start("den:1", m)
		h.fleet(static("den:1"))
		settle(10 * time.Minute)
		if n := h.tried("den:1"); n > 250 { // every 2.5 to 5 s
			t.Errorf("%d dials in ten minutes", n)
		}
	})
}

func TestStopLeavesNothingBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		m := newMachine("den")
		h.start("den:1", m)
		h.announce("den:1", "gone:1")
		f := h.fleet(static("den:1", "none:1"), h.announces("den"))
		settle(5 * time.Second)
		f.Stop()
		f.Stop()
		before := h.tried("none:1")
		m.stop()
		settle(time.Hour)
		if got := h.losses(); len(got) != 0 {
			t.Errorf("after Stop it said lost: %q", got)
		}
		if h.tried("none:1") != before {
			t.Error("it dials after Stop")
		}
		f.want("late:1", byStatic, "")
		settle(time.Minute)
		if h.tried("late:1") != 0 {
			t.Error("it begins after Stop")
		}
	})
}
