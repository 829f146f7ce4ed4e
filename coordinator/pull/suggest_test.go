package pull

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

const gib = 1 << 30

var shape = scheduler.Shape{Architecture: "llama", WeightBytes: 4 * gib, Layers: 32, EmbeddingLength: 4096, Heads: 32, KVHeads: []int{8},
	FeedForward: 14336, VocabSize: 32000, ContextLength: 8192}

// node has a card of so many GiB, and the model where a call of it takes so long.
func node(id string, room uint64, service time.Duration) scheduler.Node {
	n := scheduler.Node{ID: id, Name: "the " + id, State: scheduler.NodeUp, OllamaVersion: "0.17.4", Slots: 1,
		Pools:   []scheduler.Pool{{ID: "gpu", Kind: scheduler.PoolDevice, Total: scheduler.Bytes{N: room * gib, Known: true}, Free: scheduler.Bytes{N: room * gib, Known: true}}},
		Devices: []scheduler.Device{{Name: "card", Pool: "gpu", Usable: true}}}
	if service > 0 {
		n.Models = []scheduler.Model{{Name: "m:8b", Digest: "d", FileBytes: 5 * gib, Shape: &shape}}
		n.Speeds = map[string]scheduler.Speed{"d": {Service: service}}
	}
	return n
}

func at(bytesPerSecond float64) func(string) float64 {
	return func(string) float64 { return bytesPerSecond }
}

// 5 GiB at 50 MiB/s take 102 s and 5 s to load. 100 calls of 10 s take 1,000 s on one slot; with another from second 107 on, 447 s less.
func TestADownloadPaysWhenItSavesMoreThanItTakes(t *testing.T) {
	attic, den, shed := node("attic", 24, 10*time.Second), node("den", 24, 0), node("shed", 4, 0)
	other := node("den", 24, 10*time.Second)
	other.Models[0].Digest = "another"
	away, unmeasured, lost, full := attic, attic, den, den
	away.State, unmeasured.Speeds, lost.State = scheduler.NodeLost, nil, scheduler.NodeLost
	full.Loaded = []scheduler.Loaded{{Name: "busy:20b", Digest: "b", SizeBytes: 20 * gib, VRAMBytes: 20 * gib, Busy: 1, Context: 4096}}
	full.Pools = []scheduler.Pool{{ID: "gpu", Kind: scheduler.PoolDevice, Total: full.Pools[0].Total, Free: scheduler.Bytes{N: 4 * gib, Known: true}}}
	for name, c := range map[string]struct {
		nodes   []scheduler.Node
		waiting int
		rate    float64
		on      string
		saves   time.Duration
	}{
		"it pays":                                   {[]scheduler.Node{attic, den, shed}, 100, 50 << 20, "den", 446 * time.Second},
		"the line is slow":                          {[]scheduler.Node{attic, den}, 100, 5 << 20, "", 0},
		"few wait":                                  {[]scheduler.Node{attic, den}, 20, 50 << 20, "", 0},
		"it fits nowhere else":                      {[]scheduler.Node{attic, shed}, 100, 50 << 20, "", 0},
		"another model of the name is there":        {[]scheduler.Node{attic, other}, 100, 50 << 20, "", 0},
		"the time of a call is not known":           {[]scheduler.Node{unmeasured, den}, 100, 50 << 20, "", 0},
		"the other machine is lost":                 {[]scheduler.Node{attic, lost}, 100, 50 << 20, "", 0},
		"calls would have to end for it":            {[]scheduler.Node{attic, full}, 100, 50 << 20, "", 0},
		"who has it is away, and a slow line helps": {[]scheduler.Node{away, den}, 1, 1 << 20, "den", 0},
		"nobody has it":                             {[]scheduler.Node{den}, 100, 50 << 20, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := Suggest(scheduler.Snapshot{Now: time.Unix(0, 0), Nodes: c.nodes}, scheduler.Limits{}, map[string]int{"m:8b": c.waiting}, at(c.rate))
			switch {
			case c.on == "" && len(got) == 0:
			case c.on == "" || len(got) != 1 || got[0].Node != c.on || got[0].Saves.Round(time.Second) != c.saves || !strings.Contains(got[0].Why, "the "+c.on):
				t.Errorf("suggested %+v, want %s saving %s", got, c.on, c.saves)
			}
		})
	}
}

// What is suggested twice in a row is downloaded, and not tried again for hours when it fails.
func TestAutoFollowsWhatHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(nobody{})
		defer p.Stop()
		var mu sync.Mutex
		var notes []string
		noted := func() []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(notes)
		}
		looks := 0
		ctx, cancel := context.WithCancel(t.Context())
		a := Auto{Puller: p, Log: slog.New(slog.DiscardHandler),
			Suggest: func(context.Context) ([]Suggestion, error) {
				if looks++; looks == 2 || looks == 10 { // the queue is gone for a moment
					return nil, nil
				}
				return []Suggestion{{Model: "m:8b", Node: "den", Name: "the den", Why: "it pays"}}, nil
			},
			Note: func(_ context.Context, node, model, text string) {
				mu.Lock()
				defer mu.Unlock()
				notes = append(notes, text)
			}}
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.Run(ctx)
		}()
		time.Sleep(3*autoPause + time.Second)
		synctest.Wait()
		if notes := noted(); len(notes) != 0 {
			t.Errorf("followed at once: %v", notes)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if notes := noted(); len(notes) != 2 || !strings.Contains(notes[1], "not connected") {
			t.Errorf("after an hour: %v", notes)
		}
		time.Sleep(autoRetry)
		synctest.Wait()
		if notes := noted(); len(notes) != 4 {
			t.Errorf("after the pause: %v", notes)
		}
		cancel()
		<-done
	})
}

type nobody struct{}

func (nobody) Client(string) (workerv1.WorkerServiceClient, bool) { return nil, false }
