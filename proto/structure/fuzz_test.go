package structure

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/loopkeeper/loopkeeper/proto/structure/structuretest"
)

// Whatever schema there is: it is refused with its place, or what is sent for it keeps to what was measured, in its own order
// and sorted, and is the same every time.
func FuzzFormat(f *testing.F) {
	for _, r := range structuretest.Recordings(f) {
		f.Add(r.Text(), []byte(r.Name))
	}
	f.Fuzz(func(t *testing.T, written string, entropy []byte) {
		for _, raw := range []json.RawMessage{json.RawMessage(written), structuretest.Schema(entropy)} {
			s, err := Compile(raw)
			if err != nil {
				var bad *Error
				if !errors.As(err, &bad) || bad.Problem == "" {
					t.Fatalf("%s: an error without a place: %v", raw, err)
				}
				continue
			}
			checkSafe(t, string(raw), s.Format())
			sorted, restore := s.Ordered()
			checkSafe(t, string(raw), sorted)
			again, err := Compile(raw)
			if err != nil || string(again.Format()) != string(s.Format()) {
				t.Errorf("%s: sent %s, and then %s, %v", raw, s.Format(), again.Format(), err)
			}
			if n := s.Budget(); n < leastBudget || n > mostBudget {
				t.Errorf("%s: a budget of %d tokens", raw, n)
			}
			restore(json.RawMessage(written))
		}
	})
}
