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
	Payload json.RawMessage // valid JSON without a line break; nil is stored as null
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

	Pruned time.Time // when its body was dropped; zero while it is there
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

	Accepted  []Accepted // of runs that have a row
	Schedules []Schedule // inserted or replaced, by Name
	ToolCalls []ToolCall // inserted or replaced, by Key
	Learned   []Learned
	Decisions []Decision // on runs that have a row
	Incidents []Incident
}

// Empty says whether there is nothing to make durable.
func (c Commit) Empty() bool {
	return len(c.Events)+len(c.Runs)+len(c.Bodies)+len(c.Meta)+len(c.Accepted)+len(c.Schedules)+len(c.ToolCalls)+len(c.Learned)+len(c.Decisions)+len(c.Incidents) == 0
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
	Pruned                  int64     // artifacts whose bodies were dropped, not counted above
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

	// EventsAt returns the events of runID with the given Seqs, in the order asked for, without reading others. NotFound: there
	// is no such event.
	EventsAt(ctx context.Context, runID string, seqs []int64) ([]Event, error)

	// Head returns the end of runID's chain of events. NotFound: there is no such run.
	Head(ctx context.Context, runID string) (Head, error)

	// Runs returns the rows that match f, newest first, by Created and then ID.
	Runs(ctx context.Context, f RunFilter) ([]RunRow, error)

	// Meta returns the values whose keys start with prefix.
	Meta(ctx context.Context, prefix string) (map[string]json.RawMessage, error)

	// Accepted returns the results that were accepted for request, newest first, at most limit (0 for all that are kept). One
	// whose body was pruned is forgotten.
	Accepted(ctx context.Context, request string, limit int) ([]Accepted, error)

	// Schedules returns all schedules by name.
	Schedules(ctx context.Context) ([]Schedule, error)

	// ToolCall returns what is kept of the call of a tool with a key; found is false when nothing is.
	ToolCall(ctx context.Context, key string) (call ToolCall, found bool, err error)

	// Learned returns everything that was learned, by kind, node and subject.
	Learned(ctx context.Context) ([]Learned, error)

	// Decisions returns what is kept of the decisions on a step of a run, oldest first; step -1 is all of them.
	Decisions(ctx context.Context, runID string, step int) ([]Decision, error)

	// Incidents returns a node's incidents, newest first, at most limit (0 for all); node "" is every node.
	Incidents(ctx context.Context, node string, limit int) ([]Incident, error)

	// PutArtifact stores what r yields, in constant memory, and makes it durable before it returns. Storing the same
	// bytes again is cheap, changes nothing and repairs a damaged body.
	PutArtifact(ctx context.Context, name string, r io.Reader) (Artifact, error)

	// OpenArtifact returns the body named sha. NotFound: there is none, or it was pruned, and then the Artifact beside the error
	// says when. LedgerCorrupt: it is not what was stored, told by OpenArtifact, or for a large body by the Read that reaches
	// its end.
	OpenArtifact(ctx context.Context, sha string) (io.ReadCloser, Artifact, error)

	// ReadArtifactAt returns n bytes of the body named sha from byte off on, fewer where it ends, without reading the rest: so
	// that they are what was stored is not checked. Errors are those of OpenArtifact, and InvalidArgument for an off beyond the
	// end.
	ReadArtifactAt(ctx context.Context, sha string, off int64, n int) ([]byte, error)

	// HasArtifact says whether OpenArtifact would find sha. It does not read the body.
	HasArtifact(ctx context.Context, sha string) (bool, error)

	// StatArtifact returns what is known of sha, whether its body is there or was pruned. NotFound: nothing.
	StatArtifact(ctx context.Context, sha string) (Artifact, error)

	// Verify reads everything and reports what is not as written: of each run the first event that does not fit its chain. Its
	// error says that it could not look.
	Verify(ctx context.Context) (Report, error)

	// Backup writes a consistent copy, which opens like the original, to the folder path, which must not exist. Appends
	// go on meanwhile.
	Backup(ctx context.Context, path string) error

	// Prune drops old bodies and keeps the facts: events, hashes, sizes, names. Appends go on meanwhile. Conflict: bodies are being
	// copied or checked. InvalidArgument: the policy names what a replay needs.
	Prune(ctx context.Context, p PrunePolicy) (PruneReport, error)

	// Pruned returns what was dropped of runID, oldest first.
	Pruned(ctx context.Context, runID string) ([]Pruning, error)

	// Export writes runID with its events, decisions and bodies to w, as one file that Import reads and people can too.
	// NotFound: there is no such run. A run that goes on is exported as it is at the beginning of the call.
	Export(ctx context.Context, runID string, w io.Writer) error

	// Import takes in what Export wrote, all of it or nothing. ended are the states of runs that have ended: one in another state
	// would go on in two places. InvalidArgument: that, or the file is not whole, not what was written, or larger than is
	// allowed. Conflict: there is another run of that ID. A run that is there already is no error; bodies of it that were pruned
	// come back.
	Import(ctx context.Context, r io.Reader, ended []string) (Imported, error)

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
