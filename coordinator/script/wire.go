package script

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
)

// maxMessage bounds a line between host and child, in bytes. Large bodies travel by reference, so that a line this long
// is a mistake.
const maxMessage = 64 << 20

// protocolVersion is the version of the messages between a host and its child. The two are the same program, but for a
// coordinator that goes on running while its file is replaced by another version.
const protocolVersion = 3

// question is what a host asks its child, one JSON line each. Exactly one field beside Version and Limits is set.
type question struct {
	Version  int        `json:"version,omitempty"` // protocolVersion, with the first one
	Limits   *Limits    `json:"limits,omitempty"`  // with the first one
	Describe *Program   `json:"describe,omitempty"`
	Start    *Start     `json:"start,omitempty"`
	Delivery *Delivery  `json:"delivery,omitempty"`
	Replay   []Delivery `json:"replay,omitempty"`
}

// answer is what the child says to a question. Exactly one field beside Version is set.
type answer struct {
	Version   int        `json:"version"` // protocolVersion
	Interface *Interface `json:"interface,omitempty"`
	Yield     *Yield     `json:"yield,omitempty"`
	Yields    []Yield    `json:"yields,omitempty"`  // of Replay
	Failure   *Failure   `json:"failure,omitempty"` // of Describe
	Error     string     `json:"error,omitempty"`   // the question was wrong
}

// A replay goes to the child in parts of this many deliveries, or fewer where they are large.
const (
	replayPart  = 256
	replayBytes = 4 << 20
)

// parts cuts deliveries into messages.
func parts(ds []Delivery) iter.Seq[[]Delivery] {
	return func(yield func([]Delivery) bool) {
		from, size := 0, 0
		for i, d := range ds {
			if i > from && (i-from == replayPart || size+len(d.Value)+len(d.About) > replayBytes) {
				if !yield(ds[from:i]) {
					return
				}
				from, size = i, 0
			}
			size += len(d.Value) + len(d.About)
		}
		if from < len(ds) {
			yield(ds[from:])
		}
	}
}

// errTooLong is a line of more than maxMessage bytes.
var errTooLong = fmt.Errorf("a message has more than %d MiB", maxMessage>>20)

func writeMessage(w io.Writer, message any) error {
	line, err := marshal(message)
	if err != nil {
		return err
	}
	if len(line) >= maxMessage {
		return errTooLong
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

func readMessage(r *bufio.Reader, message any) error {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxMessage {
			return errTooLong
		}
		if err == nil {
			return json.Unmarshal(line, message)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// The exit codes with which a child ends itself.
const (
	exitCPU    = 71
	exitMemory = 72
)

// The child watches itself this often and, when the script cannot be interrupted, ends after the grace.
const (
	watchInterval  = 10 * time.Millisecond
	interruptGrace = 300 * time.Millisecond
)

// marshal is json.Marshal without the escapes for HTML, which would change a body on its way.
func marshal(value any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
