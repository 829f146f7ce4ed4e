package ledger

import (
	"encoding/hex"
	"encoding/json"
	"hash"
	"strconv"
	"time"
)

// An export is a tar file, compressed with gzip, of these files in this order, in a folder of this name; then SHA256SUMS over all
// of them. README.txt, which is in it too, says what is in each.
const (
	archiveFolder  = "run/"
	archiveReadme  = "README.txt"
	archiveHead    = "manifest.json"
	archiveRow     = "run.json"
	archiveList    = "bodies.jsonl"
	archiveEvents  = "events.jsonl"
	archiveWhy     = "decisions.jsonl"
	archiveBodies  = "bodies/"
	archiveSums    = "SHA256SUMS"
	archiveVersion = 1
)

const archiveText = `One run of loopkeeper, as its ledger has it.

run.json         what lists of runs show
events.jsonl     what happened, an event a line, in order
decisions.jsonl  why its calls were placed where they were, as far as that was kept
bodies.jsonl     the texts that the events name by SHA-256; one with "pruned" was dropped on that day
bodies/          those texts, each under its SHA-256
manifest.json    how many there are of each, and the hash of the last event

    sha256sum --check --quiet SHA256SUMS        # is every file as it was written?
    jq -r '[.seq, .time, .kind] | @tsv' events.jsonl
    loopkeeper import FILE                      # checks all of it, and takes the run into another ledger

Each event has the SHA-256 of: the hash of the event before it (nothing for the first), the ID of the run, seq, time, kind, and
the payload as it stands in its line; with a line break between two of them. In Python:

    import hashlib, json
    head, run = "", json.load(open("run.json"))["id"]
    for line in open("events.jsonl", encoding="utf-8", newline="\n"):
        e = json.loads(line)
        payload = line[line.index(',"payload":') + 11 : -2]
        text = "\n".join([head, run, str(e["seq"]), e["time"], e["kind"], payload])
        head = hashlib.sha256(text.encode()).hexdigest()
        assert head == e["hash"], "event %d is not what was written" % e["seq"]
    print(head)

That shows that nothing was changed, moved or left out since somebody wrote that last hash down. By itself it does not show who
wrote the file: nothing in it is signed.
`

// manifest is what an import holds the rest of a file to.
type manifest struct {
	Format int                 `json:"format"`
	Run    string              `json:"run"`
	Made   time.Time           `json:"made"`
	Events int64               `json:"events"`
	Head   string              `json:"head"`   // hash of the last event
	Bodies int64               `json:"bodies"` // with those that were pruned
	Bytes  int64               `json:"bytes"`  // of those that were not
	Files  map[string]fileFact `json:"files"`
}

type fileFact struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// archivedRun is run.json.
type archivedRun struct {
	ID       string          `json:"id"`
	Workflow string          `json:"workflow"`
	State    string          `json:"state"`
	Created  time.Time       `json:"created"`
	Started  time.Time       `json:"started,omitzero"`
	Ended    time.Time       `json:"ended,omitzero"`
	Key      string          `json:"key,omitempty"`
	Summary  json.RawMessage `json:"summary,omitempty"`
}

// archivedBody is a line of bodies.jsonl.
type archivedBody struct {
	SHA256 string    `json:"sha256"`
	Size   int64     `json:"size"`
	Name   string    `json:"name,omitempty"`
	Pruned time.Time `json:"pruned,omitzero"`
}

// archivedDecision is a line of decisions.jsonl.
type archivedDecision struct {
	Step   int             `json:"step"`
	Item   int             `json:"item"`
	Time   time.Time       `json:"time"`
	Action string          `json:"action"`
	Node   string          `json:"node,omitempty"`
	Why    json.RawMessage `json:"why"`
}

// archivedEvent is a line of events.jsonl. The payload comes last and as it is stored, since the hash is over its very bytes.
type archivedEvent struct {
	Seq     int64           `json:"seq"`
	Time    string          `json:"time"`
	Kind    string          `json:"kind"`
	Hash    string          `json:"hash"`
	Payload json.RawMessage `json:"payload"`
}

// appendLine adds the event as a line.
func (e rawEvent) appendLine(line []byte) ([]byte, error) {
	kind, err := json.Marshal(e.kind)
	if err != nil {
		return nil, err
	}
	line = append(strconv.AppendInt(append(line, `{"seq":`...), e.seq, 10), `,"time":"`...)
	line = append(append(line, e.at...), `","kind":`...)
	line = append(append(line, kind...), `,"hash":"`...)
	line = append(hex.AppendEncode(line, e.hash), `","payload":`...)
	return append(append(line, e.payload...), '}', '\n'), nil
}

// meter measures what is written to it.
type meter struct {
	size int64
	sum  hash.Hash
}

func (m *meter) Write(p []byte) (int, error) {
	m.size += int64(len(p))
	return m.sum.Write(p)
}

func (m *meter) fact() fileFact { return fileFact{m.size, hex.EncodeToString(m.sum.Sum(nil))} }
