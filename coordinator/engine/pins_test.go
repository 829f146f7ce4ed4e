package engine

import (
	"context"
	"io"
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/coordinator/workflows"
)

// TestWhatRunsPin: a run keeps the settings of its beginning, a child those of its parent, a fork those of its base, whatever the
// settings say by then.
func TestWhatRunsPin(t *testing.T) {
	workflows.List() // the bundler has goroutines of its own
	child := flow(t, `return 1;`)
	p := flow(t, `const r: any = await spawn({ workflow: "child", input: {} }); return r.run;`)
	synctest.Test(t, func(t *testing.T) {
		known := []run.Calibrated{{Model: "qwen3:8b", Digest: "d", Prompts: "p", N: 30, TPR: 0.9, TNR: 0.8}}
		opts := Options{Workflows: func(context.Context, string) (script.Program, error) { return child, nil },
			Pins: Pins{Roles: map[string][]run.RoleModel{"judge": {{Model: "qwen3:8b", Family: "qwen"}}}, Prompts: map[string]string{"check_think": "Look.", "check_role": "Part."},
				Judges: func(context.Context) ([]run.Calibrated, error) { return known, nil }}}
		r := newRig(t, newFarm(1), opts)
		id := r.submit(p, nil)
		v := r.wait(id)
		if len(v.Children) != 1 {
			t.Fatalf("%s: %s", v.Status, v.Error)
		}
		r.e.Stop() // and comes back with other settings
		r.opts.Pins = Pins{Prompts: map[string]string{"check_think": "Look again."}}
		r.start()
		fork, _, err := r.e.Fork(t.Context(), ForkRequest{Run: id})
		if err != nil {
			t.Fatal(err)
		}
		fresh := r.submit(p, nil)
		first := pinnedOf(t, r, id)
		for name, got := range map[string]run.Created{"child": pinnedOf(t, r, v.Children[0]), "fork": pinnedOf(t, r, fork)} {
			if !reflect.DeepEqual(got.Roles, first.Roles) || !reflect.DeepEqual(got.Prompts, first.Prompts) || !reflect.DeepEqual(got.Judges, known) {
				t.Errorf("the %s pins %+v %v %+v", name, got.Roles, got.Prompts, got.Judges)
			}
		}
		if first.Roles["judge"][0].Model != "qwen3:8b" || text(t, r, first.Prompts["check_think"]) != "Look." || text(t, r, first.Prompts["check_role"]) != "Part." {
			t.Errorf("the run pins %+v %v", first.Roles, first.Prompts)
		}
		if got := pinnedOf(t, r, fresh); got.Roles != nil || got.Judges != nil || len(got.Prompts) != 1 || text(t, r, got.Prompts["check_think"]) != "Look again." {
			t.Errorf("a run of now pins %+v %v", got.Roles, got.Prompts)
		}
		if got := r.wait(id); !reflect.DeepEqual(got.Roles, first.Roles) || !reflect.DeepEqual(got.Prompts, first.Prompts) || len(got.Judges) != 1 {
			t.Errorf("its view shows %+v %v %v", got.Roles, got.Prompts, got.Judges)
		}
		r.wait(fork)
		r.wait(fresh)
	})
}

func pinnedOf(t *testing.T, r *rig, id string) run.Created {
	t.Helper()
	c, err := r.e.Pinned(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func text(t *testing.T, r *rig, sha string) string {
	t.Helper()
	body, _, err := r.store.Store.OpenArtifact(t.Context(), sha)
	if err != nil {
		t.Fatalf("the text %q: %v", sha, err)
	}
	defer body.Close()
	raw, err := io.ReadAll(body)
	if err != nil || ledger.Digest(raw) != sha {
		t.Fatalf("%q %v", raw, err)
	}
	return string(raw)
}
