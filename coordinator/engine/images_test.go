package engine

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
)

// A script that opens an image is told so, and not given what is left of its bytes as text.
func TestAScriptCannotReadAnImage(t *testing.T) {
	p, err := script.BundleText("flow.ts", `import { read } from "loopkeeper";
export default (input: any) => read(input.file).catch((e) => e.kind + ": " + e.message);`)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(1), Options{})
		art, err := r.store.PutArtifact(t.Context(), "a.png", strings.NewReader("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\xff"))
		if err != nil {
			t.Fatal(err)
		}
		id := r.submit(p, map[string]any{"file": map[string]any{"ref": art.SHA256, "name": "a.png", "bytes": art.Size}})
		v := r.wait(id)
		if got := r.output(id, "result"); v.Status != run.Completed || !strings.HasPrefix(got, `"not_text: it is an image: give its reference`) {
			t.Errorf("%s: %s %s", v.Status, v.Error, got)
		}
		if again, err := r.e.Replay(t.Context(), id); err != nil || again.Divergence != nil {
			t.Errorf("the replay: %+v, %v", again, err)
		}
	})
}
