// Package ledger keeps what happened: the append-only record of every run's events, the rows that list runs, small
// shared values, and content-addressed artifacts. It knows nothing of what an event means. What Append has acknowledged
// survives a power cut, whole or not at all.
package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"iter"
	"time"
)

// InlineLimit is the size in bytes up to which an artifact lives inside the database and commits with its event. Above
// it a file is cheaper to read and keeps the database small enough to copy.
const InlineLimit = 64 << 10

// Event is one fact about one run. Events are never changed or removed.
type Event struct {
	RunID   string
	Seq     int64     // position within the run, from 1, without gaps
	Time    time.Time // UTC, nanoseconds
	Kind    string
	Payload json.RawMessage // valid JSON; nil is stored as null
}

// RunRow is what a list of runs shows: a projection of the run's events, replaced in the transaction of the events that
// changed it. Every run with events has one.
type RunRow struct {
	ID       string
	Workflow string
	State    string
	Created  time.Time
	Started  time.Time // zero until it starts
	Ended    time.Time // zero until it ends
	Key      string    // the caller's idempotency key, unique unless ""
	Summary  json.RawMessage
}

// Artifact names a stored body.
type Artifact struct {
	SHA256 string // lower-case hex, 64 characters
	Size   int64  // bytes
	Name   string // for people: the name under which it was stored first, maybe ""
}

// Body is an artifact held in memory, to be stored together with events.
type Body struct {
	Name string // for people, may be ""
	Data []byte
}

// Digest returns the lower-case hex SHA-256 of data, which is the name of its artifact.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Commit is what one Append makes durable, all or nothing.
type Commit struct {
	Events []Event                    // of any number of runs; within a run each Seq is one more than the last stored
	Runs   []RunRow                   // inserted or replaced, by ID; a run's first commit carries its row
	Bodies []Body                     // normally up to InlineLimit each; a larger one is written to a file first
	Meta   map[string]json.RawMessage // keys to set; nil removes the key

	Learned   []Learned
	Decisions []Decision // on runs that have a row
	Incidents []Incident
}

// Empty says whether there is nothing to make durable.
func (c Commit) Empty() bool {
	return len(c.Events)+len(c.Runs)+len(c.Bodies)+len(c.Meta)+len(c.Learned)+len(c.Decisions)+len(c.Incidents) == 0
}

// RunFilter selects runs; zero fields select everything.
type RunFilter struct {
	States []string // any of these
	Key    string   // exactly this idempotency key
	Prefix string   // IDs that start with this, case matters
	Limit  int      // at most so many, the newest; 0 for all
}

// Report says what Verify looked at and what it found.
type Report struct {
	Runs, Events, Artifacts int64
	ArtifactBytes           int64
	Problems                []Problem // empty when the ledger is what was written
}

// Problem is one place where the ledger is not what was written.
type Problem struct {
	Subject string // "database", "run R", "artifact SHA"
	Detail  string
}

// Store is the durable memory of a coordinator. It may be used from several goroutines. Errors are *apierr.Error where a
// user can do something: LedgerCorrupt for wrong content, Unavailable for a full, read-only or failing disk.
type Store interface {
	// Append makes c durable before it returns nil. Conflict: a Seq is not the next one of its run, or another run has
	// the key. InvalidArgument: a run without a row, or something that is not JSON. After these nothing was written; after
	// any other error it may or may not have been, and only reading tells. ctx bounds the wait for the writer: a commit
	// that has begun is finished.
	Append(ctx context.Context, c Commit) error

	// Events returns runID's events with Seq > afterSeq in order, at most limit (0 for all); none for an unknown run.
	Events(ctx context.Context, runID string, afterSeq int64, limit int) ([]Event, error)

	// Runs returns the rows that match f, newest first, by Created and then ID.
	Runs(ctx context.Context, f RunFilter) ([]RunRow, error)

	// Meta returns the values whose keys start with prefix.
	Meta(ctx context.Context, prefix string) (map[string]json.RawMessage, error)

	// Learned returns everything that was learned, by kind, node and subject.
	Learned(ctx context.Context) ([]Learned, error)

	// Decisions returns what is kept of the decisions on a step of a run, oldest first; step -1 is all of them.
	Decisions(ctx context.Context, runID string, step int) ([]Decision, error)

	// Incidents returns a node's incidents, newest first, at most limit (0 for all); node "" is every node.
	Incidents(ctx context.Context, node string, limit int) ([]Incident, error)

	// PutArtifact stores what r yields, in constant memory, and makes it durable before it returns. Storing the same
	// bytes again is cheap, changes nothing and repairs a damaged body.
	PutArtifact(ctx context.Context, name string, r io.Reader) (Artifact, error)

	// OpenArtifact returns the body named sha. NotFound: there is none. LedgerCorrupt: it is not what was stored, told
	// by OpenArtifact, or for a large body by the Read that reaches its end.
	OpenArtifact(ctx context.Context, sha string) (io.ReadCloser, Artifact, error)

	// HasArtifact says whether OpenArtifact would find sha. It does not read the body.
	HasArtifact(ctx context.Context, sha string) (bool, error)

	// Verify reads everything and reports what is not as written. Its error says that it could not look.
	Verify(ctx context.Context) (Report, error)

	// Backup writes a consistent copy, which opens like the original, to the folder path, which must not exist. Appends
	// go on meanwhile.
	Backup(ctx context.Context, path string) error

	// Close waits for what is under way and releases the ledger.
	Close() error
}

// eventPage is how many events All holds in memory.
const eventPage = 1024

// All yields runID's events with Seq > afterSeq in order, a page at a time, however many there are. An error is yielded
// once, last.
func All(ctx context.Context, s Store, runID string, afterSeq int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			page, err := s.Events(ctx, runID, afterSeq, eventPage)
			if err != nil {
				yield(Event{}, err)
				return
			}
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
				afterSeq = e.Seq
			}
			if len(page) < eventPage {
				return
			}
		}
	}
}
