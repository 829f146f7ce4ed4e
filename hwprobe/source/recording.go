package source

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
)

// RecordingVersion is the version of a recording's index. A later one may not be readable by an earlier program.
const RecordingVersion = 1

const indexName = "index.json"

// index says what a machine was asked and what it answered. What was asked more than once has the answers in their order; the
// last one holds for all later questions.
type index struct {
	Version  int                 `json:"version"`
	OS       string              `json:"os"`
	Arch     string              `json:"arch"`
	Files    map[string][]stored `json:"files"`   // by path
	Folders  map[string]folder   `json:"folders"` // by path, those that were listed
	Links    map[string]string   `json:"links"`   // by path, those that were read
	Commands []command           `json:"commands"`
	Calls    []call              `json:"calls"`
}

// stored is what reading a file gave.
type stored struct {
	Text  string   `json:"text,omitempty"` // path of its copy below the recording
	Error *failure `json:"error,omitempty"`
	text  string
}

type folder struct {
	Entries map[string]entryKind `json:"entries,omitempty"` // by name
	Error   *failure             `json:"error,omitempty"`
}

type entryKind string

const (
	kindFile   entryKind = "file"
	kindFolder entryKind = "folder"
	kindLink   entryKind = "link"
)

type command struct {
	Name    string   `json:"name"`
	Args    []string `json:"args"`
	Answers []output `json:"answers"`
}

type output struct {
	Stdout   string   `json:"stdout,omitempty"` // path of its copy below the recording
	Stderr   string   `json:"stderr,omitempty"`
	ExitCode int      `json:"exit_code,omitempty"`
	Error    *failure `json:"error,omitempty"`
	stdout   string
	stderr   string
}

type call struct {
	Name    string       `json:"name"`
	Args    []string     `json:"args"`
	Answers []callResult `json:"answers"`
}

type callResult struct {
	JSON  json.RawMessage `json:"json,omitempty"`
	Error *failure        `json:"error,omitempty"`
}

// failure is an error that can be written down: its text, and which of the known errors it is.
type failure struct {
	Kinds []string `json:"kinds,omitempty"`
	Text  string   `json:"text"`
}

// kinds are the errors that a probe may tell apart.
var kinds = []struct {
	name string
	err  error
}{
	{"not_found", exec.ErrNotFound}, {"not_exist", fs.ErrNotExist}, {"permission", fs.ErrPermission}, {"no_call", ErrNoCall},
	{"timeout", context.DeadlineExceeded}, {"cancelled", context.Canceled}, {"stuck", ErrStuck}, {"output_too_large", ErrOutputTooLarge},
	{"file_too_large", ErrFileTooLarge},
}

// failureOf is nil for no error.
func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Text: err.Error()}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			f.Kinds = append(f.Kinds, k.name)
		}
	}
	return f
}

// error is the error that was written down; nil for none.
func (f *failure) error() error {
	if f == nil {
		return nil
	}
	e := &recordedError{text: f.Text}
	for _, k := range kinds {
		if slices.Contains(f.Kinds, k.name) {
			e.is = append(e.is, k.err)
		}
	}
	return e
}

type recordedError struct {
	text string
	is   []error
}

// Error implements error.
func (e *recordedError) Error() string { return e.text }

// Unwrap gives the known errors that it is.
func (e *recordedError) Unwrap() []error { return e.is }

// question is one command or call as a key.
func question(name string, args []string) string {
	return strings.Join(append([]string{name}, args...), "\x00")
}
