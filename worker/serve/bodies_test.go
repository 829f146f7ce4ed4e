package serve

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

func TestBodiesByHashAreAskedForOnce(t *testing.T) {
	r := newRig(t, ollamatest.Config{})
	g := request("a")
	g.Context = []*workerv1.Body{byHash("rule one"), body("rule two"), byHash("rule three")}
	_, _, err := r.generate(t.Context(), g)
	e := apierr.As(apierr.FromStatus(err))
	if e.Code != apierr.MissingArtifact || !slices.Equal(e.Details, []string{sha("rule one"), sha("rule three")}) {
		t.Fatalf("%+v", e)
	}
	g.Context[0], g.Context[2] = body("rule one"), body("rule three")
	r.mustGenerate(t, g)
	g = request("b")
	g.Context = []*workerv1.Body{byHash("rule one"), byHash("rule two"), byHash("rule three")}
	out := r.mustGenerate(t, g)
	at := -1
	for _, text := range []string{"rule one", "rule two", "rule three"} {
		i := strings.Index(out.GetPrompt(), text)
		if i <= at {
			t.Errorf("%q is missing or out of order in %q", text, out.GetPrompt())
		}
		at = i
	}
}

func TestHashThatLiesIsRefused(t *testing.T) {
	r := newRig(t, ollamatest.Config{})
	g := request("k")
	lie := body("poison")
	lie.Sha256, lie.Name = sha("rule one"), "rules.md"
	g.Context = []*workerv1.Body{lie}
	_, _, err := r.generate(t.Context(), g)
	if e := apierr.As(apierr.FromStatus(err)); e.Code != apierr.InvalidArgument || !strings.Contains(e.Message, "rules.md") {
		t.Errorf("%+v", e)
	}
	if _, ok := r.server.bodies.find(sha("rule one")); ok {
		t.Error("it is in the cache")
	}
}

func TestBodyCacheIsBoundedAndKeepsWhatIsUsed(t *testing.T) {
	c := newBodyCache(1000)
	used := strings.Repeat("u", 100)
	if _, err := c.texts(body(used)); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if _, err := c.texts(body(fmt.Sprintf("%0100d", i)), byHash(used)); err != nil {
			t.Fatal(err)
		}
		if c.size > 1000 || c.size != 100*c.order.Len() || len(c.byKey) != c.order.Len() {
			t.Fatalf("%d bytes, %d texts, %d keys", c.size, c.order.Len(), len(c.byKey))
		}
	}
	if _, err := c.texts(byHash(fmt.Sprintf("%0100d", 1))); apierr.CodeOf(err) != apierr.MissingArtifact {
		t.Errorf("the oldest is still there: %v", err)
	}
	if got, err := c.texts(body(strings.Repeat("x", 5000))); err != nil || len(got[0]) != 5000 || c.order.Len() != 1 {
		t.Errorf("a text larger than the cache: %v, %d kept", err, c.order.Len())
	}
}

// Images travel like texts: once by value, then by hash. A model that cannot see them says so: Ollama would leave them out in silence.
func TestImagesReachModelsThatSee(t *testing.T) {
	seeing := ollamatest.SmallPresets()[:1]
	seeing[0].Capabilities = append(slices.Clone(seeing[0].Capabilities), "vision")
	png := "\x89PNG\r\n\x1a\n and so on"
	for _, sees := range []bool{true, false} {
		config := ollamatest.Config{}
		if sees {
			config.Models = seeing
		}
		r := newRig(t, config)
		g := request("a")
		g.Images = []*workerv1.Body{{Sha256: sha(png), Name: "photo.png", Data: []byte(png)}}
		out := r.mustGenerate(t, g)
		if !sees {
			if f := out.GetFailure(); f.GetKind() != "bad_request" || !strings.Contains(f.GetMessage(), "cannot see") {
				t.Errorf("%v", f)
			}
			continue
		}
		again := request("b")
		again.Images = []*workerv1.Body{byHash(png)}
		if f := r.mustGenerate(t, again).GetFailure(); f != nil {
			t.Errorf("by hash: %v", f)
		}
		if calls := r.ollama.Calls(); len(calls) != 2 || calls[0].Images != 1 || calls[1].Images != 1 {
			t.Errorf("%+v", calls)
		}
	}
}
