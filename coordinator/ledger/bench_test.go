package ledger_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger/ledgertest"
)

// The metrics compare the rate of events with what the disk does at that moment, in turns and by the median, so that a busy machine slows both:
// "of-append" with plain appends of the same bytes to a file, each synced alone; "of-commit" with commits of one row of the same
// bytes to a bare SQLite database in write-ahead logging, as durable as ours.
func BenchmarkAppend1(b *testing.B)   { benchmarkAppend(b, 1) }
func BenchmarkAppend100(b *testing.B) { benchmarkAppend(b, 100) }

func benchmarkAppend(b *testing.B, group int64) {
	s := benchLedger(b, 0)
	payload, err := json.Marshal(map[string]string{"text": string(make([]byte, 30))}) // 200 bytes
	fine(b, err)
	plain, commit := plainAppend(b, payload), bareCommit(b, payload)
	var ours, appends, commits []time.Duration
	seq := int64(1)
	for b.Loop() {
		c := ledger.Commit{Runs: ledgertest.Story("r1", "running", 1, 0).Runs} // the engine writes the row with every commit
		for range group {
			c.Events = append(c.Events, ledger.Event{RunID: "r1", Seq: seq, Time: ledgertest.At, Kind: "step.succeeded", Payload: payload})
			seq++
		}
		ours = append(ours, timed(b, func() error { return s.Append(b.Context(), c) }))
		appends = append(appends, timed(b, plain))
		commits = append(commits, timed(b, commit))
	}
	each := median(ours) / float64(group)
	b.ReportMetric(1/each, "events/s")
	b.ReportMetric(median(appends)/each, "of-append")
	b.ReportMetric(median(commits)/each, "of-commit")
}

// median in seconds: the mean is that of whoever else used the disk.
func median(d []time.Duration) float64 {
	slices.Sort(d)
	return d[len(d)/2].Seconds()
}

func fine(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func timed(b *testing.B, do func() error) time.Duration {
	start := time.Now()
	fine(b, do())
	return time.Since(start)
}

func plainAppend(b *testing.B, data []byte) func() error {
	f, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	fine(b, err)
	b.Cleanup(func() { _ = f.Close() })
	return func() error {
		if _, err := f.Write(data); err != nil {
			return err
		}
		return f.Sync()
	}
}

func bareCommit(b *testing.B, data []byte) func() error {
	db, err := sql.Open("sqlite", filepath.Join(b.TempDir(), "bare.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	fine(b, err)
	b.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	_, err = db.Exec("CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT)")
	fine(b, err)
	insert, err := db.Prepare("INSERT INTO t (body) VALUES (?)")
	fine(b, err)
	return func() error { _, err := insert.Exec(string(data)); return err }
}

// benchLedger has a run of so many items: for each the events that an item has, and a prompt and a reply beside them.
func benchLedger(b *testing.B, items int) ledger.Store {
	b.Helper()
	s, err := ledger.Open(b.Context(), ledger.Options{Dir: b.TempDir()})
	fine(b, err)
	b.Cleanup(func() { _ = s.Close() })
	row := ledgertest.Story("r1", "completed", 1, 0).Runs
	row[0].Ended = ledgertest.At
	fine(b, s.Append(b.Context(), ledger.Commit{Runs: row}))
	var c ledger.Commit
	for i := range items {
		appendItem(&c, i)
		if (i+1)%100 == 0 || i+1 == items {
			fine(b, s.Append(b.Context(), c))
			c = ledger.Commit{}
		}
	}
	return s
}

// eventsPerItem are placed, succeeded, and the judge's two.
const eventsPerItem = 4

func appendItem(c *ledger.Commit, i int) {
	prompt, reply := fmt.Appendf(nil, "%d: %0800d", i, 0), fmt.Appendf(nil, "%d: %0300d", i, 1)
	c.Bodies = append(c.Bodies, ledger.Body{Name: "prompt", Data: prompt}, ledger.Body{Name: "reply", Data: reply})
	for n := range eventsPerItem {
		payload := fmt.Sprintf(`{"pos":1,"item":%d,"phase":"work","number":1,"node":"den","model":"qwen3:8b","seed":%d,"prompt":"%s","raw":"%s"}`,
			i, n, ledger.Digest(prompt), ledger.Digest(reply))
		c.Events = append(c.Events, ledger.Event{RunID: "r1", Seq: int64(eventsPerItem*i + n + 1), Time: ledgertest.At, Kind: "attempt.succeeded", Payload: json.RawMessage(payload)})
	}
}

func BenchmarkReplay10000(b *testing.B) {
	s, err := ledger.Open(b.Context(), ledger.Options{Dir: b.TempDir()})
	fine(b, err)
	defer s.Close() //nolint:errcheck // a benchmark
	fine(b, s.Append(b.Context(), ledgertest.Story("r1", "running", 1, 10_000)))
	for b.Loop() {
		for _, err := range ledger.All(b.Context(), s, "r1", 0) {
			fine(b, err)
		}
	}
}

// Of a batch of so many items: bytes of the database for each, whose bodies are 1,100 bytes and whose events 1,300; and what it
// costs to read a page of 100 from its end, to verify, to export, to import and to prune it. -bench Items/100000 is the largest.
func BenchmarkItems(b *testing.B) {
	for _, items := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(items), func(b *testing.B) { benchmarkItems(b, items) })
	}
}

func benchmarkItems(b *testing.B, items int) {
	s := benchLedger(b, items).(*ledger.SQLite)
	var size int64
	for _, name := range []string{"ledger.db", "ledger.db-wal"} {
		st, err := os.Stat(filepath.Join(s.Dir(), name))
		fine(b, err)
		size += st.Size()
	}
	var seqs []int64
	for i := range 100 {
		seqs = append(seqs, int64(eventsPerItem*(items-i)))
	}
	per := func(name string, do func() error) {
		b.ReportMetric(float64(timed(b, do).Microseconds())/float64(items), name)
	}
	for b.Loop() { // once is enough: -benchtime 1x
		page := timed(b, func() error { _, err := s.EventsAt(b.Context(), "r1", seqs); return err })
		b.ReportMetric(float64(page.Microseconds()), "µs/page")
		per("µs-verify/item", func() error { _, err := s.Verify(b.Context()); return err })
		var file bytes.Buffer
		stop := watchHeap(b, "MB-heap-export")
		per("µs-export/item", func() error { return s.Export(b.Context(), "r1", io.MultiWriter(&file)) })
		stop(int64(file.Len()))
		b.ReportMetric(float64(file.Len())/float64(items), "B-export/item")
		to, err := ledger.Open(b.Context(), ledger.Options{Dir: b.TempDir()})
		fine(b, err)
		stop = watchHeap(b, "MB-heap-import")
		per("µs-import/item", func() error { _, err := to.Import(b.Context(), &file, []string{"completed"}); return err })
		stop(int64(file.Cap()))
		fine(b, to.Close())
		stop = watchHeap(b, "MB-heap-prune")
		policy := ledger.PrunePolicy{Before: time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC), Keys: []string{"prompt", "raw"}}
		var rep ledger.PruneReport
		per("µs-prune/item", func() error { rep, err = s.Prune(b.Context(), policy); return err })
		stop(0)
		b.ReportMetric(float64(rep.DiskAfter)/float64(items), "B-pruned/item")
	}
	b.ReportMetric(float64(size)/float64(items), "B/item")
}

// watchHeap reports the largest heap seen until the function that it returns is called, less what the caller itself holds.
func watchHeap(b *testing.B, metric string) func(own int64) {
	done, top := make(chan struct{}), make(chan uint64)
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		var m runtime.MemStats
		var most uint64
		for {
			select {
			case <-tick.C:
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc)
			case <-done:
				top <- most
				return
			}
		}
	}()
	return func(own int64) {
		close(done)
		b.ReportMetric(float64(int64(<-top)-own)/(1<<20), metric)
	}
}
