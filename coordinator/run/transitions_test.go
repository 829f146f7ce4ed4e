package run

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// taken collects the moves that the transcripts make.
type taken map[string]bool

func (k taken) move(machine, was, now string) {
	if was != now && was != "" {
		k[machine+": "+was+" --> "+now] = true
	}
}

// look notes where everything of a run stands.
func look(s *State) map[string]string {
	at := map[string]string{"run": string(s.Status)}
	for _, st := range s.Requests {
		if st.Note {
			continue
		}
		at[fmt.Sprint("step ", st.Pos)] = string(st.Status)
		for i := range st.Items {
			at[fmt.Sprint("step ", st.Pos, "/", i)] = string(st.Items[i].Status)
		}
	}
	for _, p := range s.Pipelines {
		for _, f := range p.Phases {
			at["phase "+p.Name+"/"+f.Name] = string(f.Status)
		}
	}
	return at
}

// TestTranscriptsTakeEveryTransition holds the tables, and with them the diagrams, to what can happen: every edge is in a transcript,
// and every kind of event.
func TestTranscriptsTakeEveryTransition(t *testing.T) {
	k, seen := taken{}, map[string]bool{}
	for name, story := range stories {
		tp := told(t, name, story)
		s := &State{}
		for _, e := range tp.events {
			seen[e.Data.Kind()] = true
			was := look(s)
			if err := Apply(s, e); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for what, now := range look(s) {
				k.move(what[:min(len(what), 4)], was[what], now)
			}
		}
	}
	want := taken{}
	tables(want, "run", Statuses(), Status.Transitions)
	tables(want, "step", StepStatuses(), StepStatus.Transitions)
	tables(want, "phas", PhaseStatuses(), PhaseStatus.Transitions)
	for _, edge := range slices.Sorted(maps.Keys(want)) {
		if !k[edge] {
			t.Errorf("no transcript takes %s", edge)
		}
	}
	for _, edge := range slices.Sorted(maps.Keys(k)) {
		if !want[edge] {
			t.Errorf("a transcript takes %s, which the table does not have", edge)
		}
	}
	for kind := range kinds {
		if !seen[kind] {
			t.Errorf("no transcript has %s", kind)
		}
	}
}

func tables[S ~string](k taken, machine string, all []S, next func(S) []S) {
	for _, from := range all {
		for _, to := range next(from) {
			k.move(machine, string(from), string(to))
		}
	}
}
