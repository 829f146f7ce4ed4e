package ledger

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// What an export may be at most. A file beyond is not one of ours, or not one that this machine should take in.
const (
	importLimit = 64 << 30 // bytes, unpacked; Options.ImportLimit
	mostBodies  = 2_000_000
	mostLine    = 64 << 20 // bytes of one event, of the row, of the manifest
	mostIdent   = 512      // bytes of an ID
)

// unpacked takes what is in an export, in its order, after each has been checked. A nil function skips.
type unpacked struct {
	begin    func(manifest, RunRow, []archivedBody) error // before the others
	event    func(Event) error
	decision func(Decision) error
	body     func(Artifact, io.Reader) error // reads to the end, and there learns whether the body is what its name says
}

// unpacker reads one export.
type unpacker struct {
	in     *summed
	take   unpacked
	head   manifest
	row    RunRow
	bodies []archivedBody
	failed error // of take
}

// taken passes on what take made of something: an error of its own is none of the file's.
func (u *unpacker) taken(err error) error {
	u.failed = err
	return err
}

// unpack reads an export to its end and hands out what is in it. InvalidArgument: it is not one, or not whole. It believes nothing
// that it has not checked: names, sizes and order are those that Export writes, and nothing else is in the file.
func unpack(ctx context.Context, r io.Reader, limit int64, take unpacked) error {
	all := bufio.NewReader(&source{ctx: ctx, r: r})
	zip, err := gzip.NewReader(all)
	if err != nil {
		return notExport(err, "it is not compressed with gzip")
	}
	zip.Multistream(false) // what follows another export is not part of this one
	plain := &limited{r: zip, left: limit}
	u := &unpacker{in: newSummed(tar.NewReader(plain)), take: take}
	for _, do := range []func() error{u.readme, u.manifest, u.run, u.list, u.begin, u.events, u.decisions, u.texts, u.sums} {
		if err := do(); err != nil {
			return err
		}
	}
	if _, err := u.in.Next(); err != io.EOF {
		return notExport(err, "there is more in it than there should be")
	}
	if _, err := io.Copy(zeros{}, plain); err != nil { // gzip tells at its end whether all was right
		return notExport(err, "it is damaged at its end")
	}
	if _, err := all.ReadByte(); err != io.EOF {
		return notExport(err, "there is more in it than there should be")
	}
	return nil
}

// limited fails instead of ending when more comes than may.
type limited struct {
	r    io.Reader
	left int64
}

var errTooLarge = errors.New("it unpacks to more than may be imported")

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errTooLarge
	}
	n, err := l.r.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

// notExport is the error of a file that is not taken in. What the caller's own code said, or its context, is passed on.
func notExport(cause error, format string, args ...any) error {
	var done *apierr.Error
	if errors.As(cause, &done) || errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	e := apierr.New(apierr.InvalidArgument, "this is not a whole export of a run: "+format, args...)
	if cause != nil && cause != io.EOF {
		e.Cause = cause
	}
	return e.WithNext("nothing was imported; export the run again", "see what is in the file: tar -tzvf FILE")
}

// next goes to the file that must come now.
func (u *unpacker) next(name string) (int64, error) {
	h, err := u.in.Next()
	if err != nil {
		return 0, notExport(err, "%s is missing, or cannot be read", name)
	}
	if h.Name != archiveFolder+name || h.Typeflag != tar.TypeReg || h.Size < 0 {
		return 0, notExport(nil, "%q stands where the file %s should", h.Name, archiveFolder+name)
	}
	return h.Size, nil
}

// small reads a file that must fit into memory.
func (u *unpacker) small(name string) ([]byte, error) {
	size, err := u.next(name)
	if err != nil {
		return nil, err
	}
	if size > mostLine {
		return nil, notExport(nil, "%s has %d bytes", name, size)
	}
	b, err := io.ReadAll(u.in)
	if err != nil {
		return nil, notExport(err, "%s cannot be read", name)
	}
	return b, nil
}

func (u *unpacker) readme() error { _, err := u.small(archiveReadme); return err }

func (u *unpacker) manifest() error {
	b, err := u.small(archiveHead)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, &u.head); err != nil {
		return notExport(err, "%s is not as it should be", archiveHead)
	}
	if u.head.Format > archiveVersion {
		return apierr.New(apierr.LedgerTooNew, "this export has format %d, this loopkeeper knows up to %d", u.head.Format, archiveVersion).
			WithNext("install the loopkeeper that wrote it, or a newer one")
	}
	if m := u.head; m.Format < 1 || m.Run == "" || len(m.Run) > mostIdent || !oneLine(m.Run) || m.Events < 1 || m.Bodies < 0 || m.Bodies > mostBodies {
		return notExport(nil, "%s names no run, no events or too many bodies", archiveHead)
	}
	return nil
}

func (u *unpacker) run() error {
	b, err := u.small(archiveRow)
	if err != nil {
		return err
	}
	if got := (fileFact{int64(len(b)), Digest(b)}); got != u.head.Files[archiveRow] {
		return notExport(nil, "%s is not the one that was written", archiveRow)
	}
	var row archivedRun
	if err := json.Unmarshal(b, &row); err != nil || row.ID != u.head.Run {
		return notExport(err, "%s is not of the run %s", archiveRow, u.head.Run)
	}
	u.row = RunRow(row)
	if row.Summary != nil {
		var summary bytes.Buffer
		if err := json.Compact(&summary, row.Summary); err != nil {
			return notExport(err, "%s is not as it should be", archiveRow)
		}
		u.row.Summary = summary.Bytes()
	}
	for _, t := range []*time.Time{&u.row.Created, &u.row.Started, &u.row.Ended} {
		if *t = t.UTC(); !writable(*t) {
			return notExport(nil, "%s has a time that the ledger cannot write", archiveRow)
		}
	}
	return nil
}

// writable says whether a time has the width that all have in the ledger.
func writable(t time.Time) bool { return t.Year() >= 0 && t.Year() <= 9999 }

// lines hands out the lines of a file and holds it to the manifest.
func (u *unpacker) lines(name string, take func([]byte) error) error {
	if _, err := u.next(name); err != nil {
		return err
	}
	m := &meter{sum: sha256.New()}
	in := bufio.NewReaderSize(io.TeeReader(u.in, m), 64<<10)
	for n := 1; ; n++ {
		line, err := readLine(in)
		if err == io.EOF {
			break
		}
		if err != nil {
			return notExport(err, "line %d of %s cannot be read", n, name)
		}
		err = take(line)
		if u.failed != nil {
			return u.failed
		}
		if err != nil {
			return notExport(err, "line %d of %s is not as it should be", n, name)
		}
	}
	if m.fact() != u.head.Files[name] {
		return notExport(nil, "%s is not the one that was written", name)
	}
	return nil
}

// readLine returns a line without its end; io.EOF where there is none.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > mostLine:
			return nil, errors.New("it is too long")
		case err == nil:
			return line[:len(line)-1], nil
		case err == io.EOF && len(line) > 0:
			return nil, io.ErrUnexpectedEOF
		case err != bufio.ErrBufferFull:
			return nil, err
		}
	}
}

func (u *unpacker) list() error {
	var bytes int64
	last := ""
	err := u.lines(archiveList, func(line []byte) error {
		var b archivedBody
		if err := json.Unmarshal(line, &b); err != nil {
			return err
		}
		if !isDigest(b.SHA256) || b.SHA256 <= last || b.Size < 0 || len(b.Name) > mostLine || int64(len(u.bodies)) >= u.head.Bodies {
			return fmt.Errorf("%q is no body, is there twice, out of order or too many", b.SHA256)
		}
		if last = b.SHA256; b.Pruned.IsZero() {
			bytes += b.Size
		}
		u.bodies = append(u.bodies, b)
		return nil
	})
	if err == nil && (int64(len(u.bodies)) != u.head.Bodies || bytes != u.head.Bytes) {
		return notExport(nil, "it should have %d bodies of %d bytes, it lists %d of %d", u.head.Bodies, u.head.Bytes, len(u.bodies), bytes)
	}
	return err
}

func (u *unpacker) begin() error {
	if u.take.begin == nil {
		return nil
	}
	return u.take.begin(u.head, u.row, u.bodies)
}

func (u *unpacker) events() error {
	var end chainEnd
	err := u.lines(archiveEvents, func(line []byte) error {
		var a archivedEvent
		if err := json.Unmarshal(line, &a); err != nil {
			return err
		}
		e := Event{RunID: u.row.ID, Seq: a.Seq, Kind: a.Kind, Payload: a.Payload}
		var err error
		if e.Time, err = time.Parse(timeFormat, a.Time); err != nil || formatTime(e.Time) != a.Time {
			return fmt.Errorf("%q is no time as the ledger writes it", a.Time)
		}
		if a.Seq != end.seq+1 || a.Seq > u.head.Events {
			return fmt.Errorf("event %d follows event %d of %d", a.Seq, end.seq, u.head.Events)
		}
		if err := (Commit{Events: []Event{e}}).check(); err != nil {
			return errors.New(err.Error()) // not advice about a commit
		}
		end = chainEnd{a.Seq, link(end.hash, e.RunID, e.Seq, a.Time, e.Kind, string(e.Payload))}
		if hex.EncodeToString(end.hash) != a.Hash {
			return fmt.Errorf("event %d is not what was written: its hash does not fit it and event %d", a.Seq, a.Seq-1)
		}
		if u.take.event == nil {
			return nil
		}
		return u.taken(u.take.event(e))
	})
	if err == nil && end.head() != (Head{u.head.Events, u.head.Head}) {
		return notExport(nil, "events are missing: there are %d of %d, or the last is another one", end.seq, u.head.Events)
	}
	return err
}

func (u *unpacker) decisions() error {
	return u.lines(archiveWhy, func(line []byte) error {
		var a archivedDecision
		if err := json.Unmarshal(line, &a); err != nil {
			return err
		}
		d := Decision{RunID: u.row.ID, Step: a.Step, Item: a.Item, Time: a.Time.UTC(), Action: a.Action, Node: a.Node, Why: a.Why}
		if !json.Valid(d.Why) || !writable(d.Time) {
			return errors.New("it has no reason or no time")
		}
		if u.take.decision == nil {
			return nil
		}
		return u.taken(u.take.decision(d))
	})
}

// texts holds each body to its name.
func (u *unpacker) texts() error {
	for _, b := range u.bodies {
		if !b.Pruned.IsZero() {
			continue
		}
		size, err := u.next(archiveBodies + b.SHA256)
		if err != nil {
			return err
		}
		if size != b.Size {
			return notExport(nil, "%s has %d bytes, %d were written", b.SHA256, size, b.Size)
		}
		m := &meter{sum: sha256.New()}
		body := io.TeeReader(u.in, m)
		if u.take.body != nil {
			if err := u.take.body(Artifact{SHA256: b.SHA256, Size: b.Size, Name: b.Name}, body); err != nil {
				return err
			}
		}
		if _, err := io.Copy(io.Discard, body); err != nil {
			return notExport(err, "%s cannot be read", b.SHA256)
		}
		if m.fact().SHA256 != b.SHA256 {
			return notExport(nil, "%s is not what was written", archiveBodies+b.SHA256)
		}
	}
	return nil
}

// sums are for people: all that they say has been checked.
func (u *unpacker) sums() error {
	if _, err := u.next(archiveSums); err != nil {
		return err
	}
	want, listed := u.in.all.Sum(nil), sha256.New()
	if _, err := io.Copy(listed, u.in); err != nil {
		return notExport(err, "%s cannot be read", archiveSums)
	}
	if !bytes.Equal(listed.Sum(nil), want) {
		return notExport(nil, "a file in it is not what %s says", archiveSums)
	}
	return nil
}
