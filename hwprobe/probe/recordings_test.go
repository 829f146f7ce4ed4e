package probe

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// TestRecordings probes the machines in testdata, each a folder that loopkeeper probe --raw made, and compares with the
// report.json beside it, which a person has compared with the machine.
func TestRecordings(t *testing.T) {
	indexes, err := filepath.Glob("testdata/*/index.json")
	if err != nil || len(indexes) == 0 {
		t.Fatalf("no recordings, %v", err)
	}
	for _, index := range indexes {
		dir := filepath.Dir(index)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			m, err := source.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			r := Probe(t.Context(), m)
			checkConsistent(t, r)
			want, err := os.ReadFile(filepath.Join(dir, "report.json"))
			if err != nil {
				t.Errorf("no report to compare with: check this one and save it there: %v", err)
			}
			if got := asJSON(t, r) + "\n"; got != string(want) {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}
