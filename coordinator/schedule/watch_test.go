package schedule

import (
	"fmt"
	"testing"
	"time"
)

// folderStory is a folder that a story looks at every few seconds.
type folderStory struct {
	*story
	files   map[string]File
	content map[string]string
	ids     int
	reads   int
}

func watched(t testing.TB, s Spec) *folderStory {
	if s.Watch == nil {
		s.Watch = &Watch{}
	}
	s.Watch.Folder = "/inbox"
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	return &folderStory{story: newStory(t, s, now), files: map[string]File{}, content: map[string]string{}}
}

// write gives a file content at the story's time.
func (s *folderStory) write(path, content string) *folderStory {
	f, ok := s.files[path]
	if !ok {
		s.ids++
		f = File{Path: path, ID: fmt.Sprint(s.ids)}
	}
	f.Bytes, f.Modified = int64(len(content)), s.now
	s.files[path], s.content[path] = f, content
	return s
}

func (s *folderStory) remove(path string) *folderStory {
	delete(s.files, path)
	delete(s.content, path)
	return s
}

func (s *folderStory) rename(from, to string) *folderStory {
	f, content := s.files[from], s.content[from]
	s.remove(from)
	f.Path = to
	s.files[to], s.content[to] = f, content
	return s
}

func (s *folderStory) scan() *Scan {
	scan := &Scan{}
	for _, f := range s.files {
		scan.Files = append(scan.Files, f)
	}
	return scan
}

// look looks once, as a turn of the Runner does.
func (s *folderStory) look() *folderStory {
	s.t.Helper()
	facts := Facts{Scan: s.scan()}
	d := s.decide(facts)
	if len(d.Hash) == 0 {
		return s
	}
	facts.Hashes = map[string]Hash{}
	for _, p := range d.Hash {
		s.reads++
		f := s.files[p]
		facts.Hashes[p] = Hash{SHA256: "sha:" + s.content[p], Bytes: f.Bytes, Modified: f.Modified}
	}
	s.decide(facts)
	return s
}

// wait looks every five seconds for a while.
func (s *folderStory) wait(d time.Duration) *folderStory {
	s.t.Helper()
	for end := s.now.Add(d); s.now.Before(end); {
		s.look()
		s.now = s.now.Add(5 * time.Second)
	}
	return s.look()
}

func (s *folderStory) done() *folderStory {
	s.t.Helper()
	s.end("completed")
	return s
}

const settled = 20 * time.Second

func TestWatchFiresForWhatIsNewAndChanged(t *testing.T) {
	s := watched(t, Spec{})
	s.write("old.pdf", "old").look().wait(settled).want()
	s.write("a.pdf", "one").wait(settled).want("a.pdf")
	s.done().wait(settled).want()
	s.write("old.pdf", "changed").write("b.pdf", "two").wait(settled).want("b.pdf old.pdf")
	s.done().wait(settled).want()
	s.write("a.pdf", "one").wait(settled).want() // touched, with the same content
}

func TestWatchTakesWhatIsThereWhenAsked(t *testing.T) {
	s := watched(t, Spec{Watch: &Watch{Existing: true}})
	s.write("a", "1").write("b", "2").wait(settled).want("a b")
}

func TestWatchWaitsForTheEndOfAWrite(t *testing.T) {
	s := watched(t, Spec{})
	s.look()
	for i := range 30 { // a copy over a slow line, which grows every five seconds
		s.write("big", fmt.Sprintf("%0*d", i+1, 0)).wait(5 * time.Second).want()
	}
	s.wait(settled).want("big")
	if s.reads != 1 {
		t.Errorf("it was read %d times", s.reads)
	}
}

// A file may stop for a while in the middle; when it goes on, that is a change.
func TestWatchFiresAgainWhenAWriteGoesOn(t *testing.T) {
	s := watched(t, Spec{})
	s.look().now = s.now.Add(time.Second)
	s.write("big", "half").wait(settled).want("big")
	s.done()
	s.write("big", "half and half").wait(settled).want("big")
}

func TestWatchSettlesByTimeThatPassesNotByTheClock(t *testing.T) {
	// A time.Time of time.Now has a monotonic reading, which Sub prefers; Round(0) takes it away.
	now := time.Now()
	s := newStory(t, Spec{Watch: &Watch{Folder: "/inbox", SettleSeconds: 3600}}, now)
	s.decide(Facts{Scan: &Scan{}})
	file := File{Path: "a", Bytes: 1, Modified: now, ID: "1"}
	s.now = now.Add(time.Second)
	s.decide(Facts{Scan: &Scan{Files: []File{file}}})
	s.now = now.Add(10 * time.Second)
	if d := s.decide(Facts{Scan: &Scan{Files: []File{file}}}); len(d.Hash) != 0 {
		t.Errorf("settled after ten seconds of an hour: %v", d.Hash)
	}
	if since := s.state.settling["a"].since; since == since.Round(0) {
		t.Error("the moment has no monotonic reading: a clock that is set would settle the file")
	}
}

func TestWatchFollowsRenames(t *testing.T) {
	s := watched(t, Spec{})
	s.look().write("a", "1").write("b", "2").wait(settled).want("a b")
	s.done().rename("a", "sub/a").wait(settled).want()
	s.rename("sub/a", "x").write("x", "changed").wait(settled).want("x") // renamed and changed: new
	s.done()
	// A system without identities knows a rename by its content.
	s.rename("b", "c")
	f := s.files["c"]
	f.ID = ""
	s.files["c"] = f
	s.wait(settled).want()
	// A program that writes a file beside and renames it.
	s.write("c.part", "3").wait(settled).want()
	s.rename("c.part", "c.txt").wait(settled).want("c.txt")
	// One that replaces a known file so.
	s.done()
	s.write("x.tmp", "new x").wait(settled)
	s.remove("x").rename("x.tmp", "x")
	s.wait(settled).want("x")
}

func TestWatchCopyIsNew(t *testing.T) {
	s := watched(t, Spec{})
	s.look().write("a", "1").wait(settled).want("a")
	s.done().write("copy", "1").wait(settled).want("copy")
}

// One known file takes the place of another: what its path holds has changed.
func TestWatchRenameOverAKnownFile(t *testing.T) {
	s := watched(t, Spec{})
	s.look().write("a", "1").write("b", "2").wait(settled).want("a b")
	s.done().remove("a").rename("b", "a").wait(settled).want("a")
}

func TestWatchDeletion(t *testing.T) {
	s := watched(t, Spec{})
	s.look().write("a", "1").wait(settled).want("a")
	s.done().remove("a").wait(settled).want()
	s.write("a", "2").wait(settled).want("a")
	s.done().write("b", "3").wait(5 * time.Second).remove("b").wait(settled).want()
}

// A folder that cannot be seen, such as a share that is not mounted, has lost nothing.
func TestWatchFolderThatVanishes(t *testing.T) {
	s := watched(t, Spec{})
	s.look().write("a", "1").wait(settled).want("a")
	s.done()
	for range 10 {
		s.now = s.now.Add(time.Minute)
		s.decide(Facts{Scan: &Scan{Err: "no such file or directory"}})
	}
	s.because("no such file")
	s.wait(settled).want()
}

func TestWatchLeavesAlone(t *testing.T) {
	s := watched(t, Spec{Watch: &Watch{Pattern: "*.txt", MaxBytes: 5}})
	s.look()
	for _, name := range []string{".hidden.txt", ".git/x.txt", "sub/.cache/x.txt", "a.txt~", "a.txt.part", "a.pdf", "x.tmp"} {
		s.write(name, "1")
	}
	s.write("large.txt", "123456").wait(settled).want().because("large.txt has 6 bytes")
	s.write("sub/good.txt", "1").wait(settled).want("sub/good.txt")
	s.decide(Facts{Scan: &Scan{Left: 2}})
	s.because("2 entries are links")
}

func TestWatchOverlap(t *testing.T) {
	t.Run("queue", func(t *testing.T) {
		s := watched(t, Spec{})
		s.look().write("a", "1").wait(settled).want("a")
		s.write("b", "2").wait(settled).write("c", "3").wait(settled).want().because("wait for the run")
		reads := s.reads
		s.wait(time.Minute)
		if s.reads != reads {
			t.Errorf("files that wait were read %d times more", s.reads-reads)
		}
		s.done().look().want("b c")
	})
	t.Run("allow", func(t *testing.T) {
		s := watched(t, Spec{Overlap: Allow})
		s.look().write("a", "1").wait(settled).write("b", "2").wait(settled).want("a", "b")
	})
}

func TestWatchAfterDowntime(t *testing.T) {
	for _, c := range []struct {
		catchUp CatchUp
		want    []string
	}{
		{CatchUp{}, []string{"changed n1 n2 n3"}},
		{CatchUp{Policy: None}, nil},
		{CatchUp{Policy: Last}, []string{"n3"}},
		{CatchUp{Policy: All, Most: 2}, []string{"n2 n3"}},
	} {
		t.Run(string(c.catchUp.Policy), func(t *testing.T) {
			s := watched(t, Spec{CatchUp: c.catchUp})
			s.look().write("changed", "1").write("moved", "2").write("same", "3").wait(settled).want("changed moved same")
			s.done()
			s.restart()
			s.now = s.now.Add(time.Hour)
			s.rename("moved", "elsewhere").write("changed", "4")
			for i := range 3 {
				s.now = s.now.Add(time.Minute)
				s.write(fmt.Sprintf("n%d", i+1), fmt.Sprint(i))
			}
			s.wait(settled).want(c.want...)
			if len(c.want) > 0 {
				s.done()
			}
			s.write("later", "5").wait(settled).want("later")
		})
	}
}

func TestWatchRuleGathers(t *testing.T) {
	s := watched(t, Spec{Rule: []Condition{{"files", ">=", 3}}})
	s.look().write("a", "1").wait(settled).write("b", "2").wait(settled).want().because("files >= 3 is asked for, and it is 2")
	s.write("c", "3").wait(settled).want("a b c")
}

func TestWatchUnreadableFile(t *testing.T) {
	s := watched(t, Spec{})
	s.look().write("a", "1")
	for range 5 {
		facts := Facts{Scan: s.scan(), Hashes: map[string]Hash{"a": {Err: "permission denied"}}}
		s.decide(facts)
		s.now = s.now.Add(5 * time.Second)
	}
	s.because("a cannot be read: permission denied")
	s.look().want("a")
}

func TestWatchChangedWhileRead(t *testing.T) {
	s := watched(t, Spec{})
	s.look().write("a", "1")
	for range 5 {
		s.decide(Facts{Scan: s.scan(), Hashes: map[string]Hash{"a": {SHA256: "half", Bytes: 7, Modified: s.now}}})
		s.now = s.now.Add(5 * time.Second)
	}
	s.want()
	s.look().want("a")
}

func TestWatchTenThousandFiles(t *testing.T) {
	s := watched(t, Spec{Watch: &Watch{Existing: true}})
	const many = 12_000
	for i := range many {
		s.write(fmt.Sprintf("%05d", i), fmt.Sprint(i))
	}
	s.wait(settled)
	if len(s.state.Running) != 1 {
		t.Fatalf("%d runs", len(s.state.Running))
	}
	s.done().look()
	if len(s.state.Known) != many || len(s.fired) != 2 || s.reads != many {
		t.Errorf("%d known, %d firings, %d reads", len(s.state.Known), len(s.fired), s.reads)
	}
	start := time.Now()
	const looks = 5
	for range looks {
		s.look()
	}
	if each := time.Since(start) / looks; each > 2*time.Second {
		t.Errorf("a look at %d files that are as before takes %v", many, each)
	}
}

func BenchmarkLookAtTenThousandFiles(b *testing.B) {
	s := watched(b, Spec{})
	for i := range 10_000 {
		s.write(fmt.Sprintf("%05d", i), fmt.Sprint(i))
	}
	s.look()
	scan := s.scan()
	for b.Loop() {
		Decide(s.spec, s.state, s.now, Facts{Scan: scan})
	}
}
