package ledger_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger/ledgertest"
)

// The metric "of-disk" is the rate of events against the rate of plain appends of the same bytes, each synced alone, in
// the same run: 1 is what the disk itself can do without group commit.
func BenchmarkAppend1(b *testing.B)   { benchmarkAppend(b, 1) }
func BenchmarkAppend100(b *testing.B) { benchmarkAppend(b, 100) }

func benchmarkAppend(b *testing.B, group int64) {
	s, err := ledger.Open(b.Context(), ledger.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // a benchmark
	if err := s.Append(b.Context(), ledger.Commit{Runs: ledgertest.Story("r1", "running", 1, 0).Runs}); err != nil {
		b.Fatal(err)
	}
	payload, err := json.Marshal(map[string]string{"text": string(make([]byte, 30))}) // 200 bytes
	if err != nil {
		b.Fatal(err)
	}
	raw, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	defer raw.Close() //nolint:errcheck // a benchmark
	var disk time.Duration
	seq := int64(1)
	for b.Loop() {
		c := ledger.Commit{}
		for range group {
			c.Events = append(c.Events, ledger.Event{RunID: "r1", Seq: seq, Time: ledgertest.At, Kind: "step.succeeded", Payload: payload})
			seq++
		}
		if err := s.Append(b.Context(), c); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		start := time.Now()
		if _, err := raw.Write(payload); err != nil {
			b.Fatal(err)
		}
		if err := raw.Sync(); err != nil {
			b.Fatal(err)
		}
		disk += time.Since(start)
		b.StartTimer()
	}
	perEvent := b.Elapsed() / time.Duration(seq-1)
	b.ReportMetric(float64(disk)/float64(b.N)/float64(perEvent), "of-disk")
	b.ReportMetric(1/perEvent.Seconds(), "events/s")
}

func BenchmarkReplay10000(b *testing.B) {
	s, err := ledger.Open(b.Context(), ledger.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // a benchmark
	if err := s.Append(b.Context(), ledgertest.Story("r1", "running", 1, 10_000)); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for _, err := range ledger.All(b.Context(), s, "r1", 0) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
