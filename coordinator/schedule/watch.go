package schedule

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// Scan is what was in a folder at one look.
type Scan struct {
	Files []File
	Left  int    // entries that are no regular files, such as links: they are left alone
	Err   string // why the folder could not be looked at; then Files says nothing
}

// File is a regular file at one look.
type File struct {
	Path     string // relative to the folder, with /
	Bytes    int64
	Modified time.Time
	ID       string // of the file itself, the same after a rename; "" where the system has none
}

// Hash is the content of a file, with what the file was when it was read.
type Hash struct {
	SHA256   string
	Bytes    int64
	Modified time.Time
	Err      string // why it could not be read
}

// Known is a file that needs nothing: it was fired, or was there before anything counted.
type Known struct {
	Bytes    int64     `json:"bytes"`
	Modified time.Time `json:"modified"`
	ID       string    `json:"id,omitempty"`
	SHA256   string    `json:"sha256,omitempty"` // "" when it was never read
}

// quiet is a file that has not changed since a moment. The moment has a monotonic reading: setting a clock settles nothing.
type quiet struct {
	File
	since  time.Time
	sha256 string // once it was read
}

// gone is a file that vanished.
type gone struct {
	Known
	at time.Time
}

// is says that f is as it was. Another file of the same size and time in its place is a change; identities change with a mount too, so
// they count only where the content can settle it.
func (k Known) is(f File) bool {
	return k.Bytes == f.Bytes && k.Modified.Equal(f.Modified) && (k.SHA256 == "" || k.ID == "" || f.ID == "" || k.ID == f.ID)
}

// temporary are the names that programs give to files that they are still writing.
var temporary = []string{".tmp", ".temp", ".part", ".partial", ".crdownload", ".download", ".swp", "~"}

// wanted says whether a file counts by its name and size.
func (w *Watch) wanted(f File) bool {
	name := path.Base(f.Path)
	if strings.HasPrefix(f.Path, ".") || strings.Contains(f.Path, "/.") || f.Bytes > w.MaxBytes {
		return false
	}
	if slices.ContainsFunc(temporary, func(end string) bool { return strings.HasSuffix(strings.ToLower(name), end) }) {
		return false
	}
	if w.Pattern == "" {
		return true
	}
	ok, _ := path.Match(w.Pattern, name) // the pattern was checked
	return ok
}

// look decides about the files of the folder.
func (d *deciding) look() {
	scan := d.facts.Scan
	if scan == nil {
		return
	}
	if scan.Err != "" { // a folder that cannot be seen has lost no files
		d.say("the folder %s cannot be looked at: %s", d.Watch.Folder, scan.Err)
		return
	}
	files := map[string]File{}
	for _, f := range scan.Files {
		if d.Watch.wanted(f) {
			files[f.Path] = f
		} else if f.Bytes > d.Watch.MaxBytes {
			d.say("%s has %d bytes and is left alone (max_bytes)", f.Path, f.Bytes)
		}
	}
	if scan.Left > 0 {
		d.say("%d entries are links or no files, and are left alone", scan.Left)
	}
	d.forget(files)
	if d.State.settling == nil {
		d.State.settling = map[string]quiet{}
		d.begin(files)
	}
	if ready := d.settle(files); len(ready) > 0 {
		d.fireFor(ready)
	}
}

// forget moves what vanished to gone, for as long as a rename may take to be seen.
func (d *deciding) forget(files map[string]File) {
	s := &d.State
	keep := 2*time.Duration(d.Watch.SettleSeconds+d.Watch.PollSeconds)*time.Second + onTime
	s.gone = slices.DeleteFunc(s.gone, func(g gone) bool { return d.now.Sub(g.at) > keep })
	var missing []string
	for p := range s.Known {
		if _, ok := files[p]; !ok {
			missing = append(missing, p)
		}
	}
	slices.Sort(missing)
	for _, p := range missing {
		s.gone = append(s.gone, gone{s.Known[p], d.now})
		delete(s.Known, p)
	}
	maps.DeleteFunc(s.settling, func(p string, _ quiet) bool { _, ok := files[p]; return !ok })
}

// begin decides which of the files that came while nobody looked are made up for.
func (d *deciding) begin(files map[string]File) {
	s := &d.State
	if s.Known == nil {
		s.Known = map[string]Known{}
	}
	var came []File
	for _, f := range files {
		if known, ok := s.Known[f.Path]; !ok || !known.is(f) {
			came = append(came, f)
		}
	}
	slices.SortFunc(came, func(a, b File) int {
		return cmp.Or(b.Modified.Compare(a.Modified), cmp.Compare(a.Path, b.Path)) // newest first
	})
	most := map[CatchUpPolicy]int{None: 0, Last: 1, All: d.CatchUp.Most}[d.CatchUp.Policy]
	if !s.Looked {
		most = 0
		if d.Watch.Existing {
			most = len(came)
		}
	}
	s.Looked = true
	if len(came) <= most {
		return
	}
	for _, f := range came[most:] {
		if !d.renamed(f, "") {
			s.Known[f.Path] = Known{Bytes: f.Bytes, Modified: f.Modified, ID: f.ID}
		}
	}
	d.say("%d files that came before are left alone (existing, catch_up %s)", len(came)-most, d.CatchUp.Policy)
}

// renamed says whether f is a file that vanished, and then takes it for that one: the same file by its identity, or by its content where that is known.
func (d *deciding) renamed(f File, sha256 string) bool {
	i := slices.IndexFunc(d.State.gone, func(g gone) bool {
		return g.ID != "" && g.ID == f.ID && g.is(f) || sha256 != "" && g.SHA256 == sha256
	})
	if i < 0 {
		return false
	}
	known := d.State.gone[i].Known
	d.State.gone = slices.Delete(d.State.gone, i, i+1)
	known.Modified, known.ID = f.Modified, f.ID
	d.State.Known[f.Path] = known
	delete(d.State.settling, f.Path)
	return true
}

// settle follows the files that changed, and returns those that are quiet and whose content is new.
func (d *deciding) settle(files map[string]File) (ready []FileRef) {
	s := &d.State
	for _, p := range slices.Sorted(maps.Keys(files)) {
		f := files[p]
		known, seen := s.Known[p]
		if seen && known.is(f) {
			delete(s.settling, p)
			continue
		}
		if !seen && d.renamed(f, "") {
			continue
		}
		q, ok := s.settling[p]
		if !ok || q.Bytes != f.Bytes || !q.Modified.Equal(f.Modified) || q.ID != f.ID {
			q = quiet{File: f, since: d.now}
		}
		s.settling[p] = q
		if d.now.Sub(q.since) < time.Duration(d.Watch.SettleSeconds)*time.Second || !d.read(p, &q) {
			continue
		}
		s.settling[p] = q
		if known.SHA256 == q.sha256 { // touched, not changed
			s.Known[p] = Known{f.Bytes, f.Modified, f.ID, q.sha256}
			delete(s.settling, p)
			continue
		}
		if !seen && d.renamed(f, q.sha256) {
			continue
		}
		ready = append(ready, FileRef{Path: p, SHA256: q.sha256, Bytes: f.Bytes})
	}
	return ready
}

// read takes the hash of a quiet file from the facts, or asks for it. It is false while there is none.
func (d *deciding) read(p string, q *quiet) bool {
	if q.sha256 != "" {
		return true
	}
	h, ok := d.facts.Hashes[p]
	switch {
	case !ok:
		d.Hash = append(d.Hash, p)
	case h.Err != "":
		d.say("%s cannot be read: %s", p, h.Err)
	case h.Bytes != q.Bytes || !h.Modified.Equal(q.Modified):
		// It was written while it was read: the next look sees it changed.
	default:
		q.sha256 = h.SHA256
		return true
	}
	return false
}

// fireFor decides about files that are ready. What is not fired now is ready again at the next look.
func (d *deciding) fireFor(ready []FileRef) {
	if len(d.Hash) > 0 {
		return // those that are quiet together are fired together
	}
	if d.Overlap == Queue && d.State.busy() || len(d.State.Outbox) > 0 {
		d.say("%d files wait for the run before them", len(ready))
		return
	}
	if len(ready) > mostFiles {
		d.say("%d files are more than one run gets; the rest follows", len(ready))
		ready = ready[:mostFiles]
	}
	var bytes int64
	for _, f := range ready {
		bytes += f.Bytes
	}
	if d.full() {
		return
	}
	if why := d.unmet(len(ready), bytes); why != "" {
		d.say("%d files: %s", len(ready), why)
		return
	}
	sum := sha256.New()
	for _, f := range ready {
		sum.Write([]byte(f.Path + "\x00" + f.SHA256 + "\x00"))
		q := d.State.settling[f.Path]
		d.State.Known[f.Path] = Known{q.Bytes, q.Modified, q.ID, f.SHA256}
		delete(d.State.settling, f.Path)
	}
	d.queue(Firing{Key: d.State.key(d.Name, hex.EncodeToString(sum.Sum(nil))), Due: d.wall, Files: ready})
}
