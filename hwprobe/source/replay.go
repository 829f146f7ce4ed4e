package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
)

// What may be wrong with a folder that Open is given.
var (
	ErrNoRecording    = errors.New("no recording")
	ErrLaterRecording = errors.New("a recording of a later program")
)

// Open opens a recording as the machine that was recorded, on any system. What was not asked then is not there: no such file,
// no such tool, no such call.
func Open(dir string) (Machine, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() { // opening a pipe may never come back
		return Machine{}, fmt.Errorf("%s: %w: it is no folder", dir, ErrNoRecording)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Machine{}, fmt.Errorf("open the recording: %w", err)
	}
	defer root.Close() // everything is read now
	files := &copies{root: root.FS(), left: recordingLimit}
	raw, err := files.read(indexName)
	if err != nil {
		return Machine{}, fmt.Errorf("%s: %w: %w", dir, ErrNoRecording, err)
	}
	var x index
	if err := json.Unmarshal(raw, &x); err != nil {
		return Machine{}, fmt.Errorf("%s: %w: read %s: %w", dir, ErrNoRecording, indexName, err)
	}
	switch {
	case x.Version > RecordingVersion:
		return Machine{}, fmt.Errorf("%s: %w: it has version %d, this program reads version %d", dir, ErrLaterRecording, x.Version, RecordingVersion)
	case x.Version != RecordingVersion:
		return Machine{}, fmt.Errorf("%s: %w: it has version %d", dir, ErrNoRecording, x.Version)
	}
	r := &replay{index: x, asked: map[string]int{}, runs: map[string]command{}, made: map[string]call{}}
	if err := x.check(); err != nil {
		return Machine{}, fmt.Errorf("%s: %w: read %s: %w", dir, ErrNoRecording, indexName, err)
	}
	if err := r.load(files.read); err != nil {
		return Machine{}, fmt.Errorf("%s: %w: %w", dir, ErrNoRecording, err)
	}
	return Machine{OS: x.OS, Arch: x.Arch, Files: replayFS{r}, Commands: replayRunner{r}, Calls: replayCaller{r}}, nil
}

// check refuses names that no file system has: a folder with an entry without a name would contain itself.
func (x index) check() error {
	for _, name := range slices.Concat(sortedKeys(x.Files), sortedKeys(x.Folders), sortedKeys(x.Links)) {
		if !fs.ValidPath(name) {
			return fmt.Errorf("%q is no path", name)
		}
		for entry := range x.Folders[name].Entries {
			if !fs.ValidPath(entry) || entry == "." || strings.Contains(entry, "/") {
				return fmt.Errorf("%q is no name of a file", entry)
			}
		}
	}
	return nil
}

// replay answers as the recorded machine did.
type replay struct {
	index index
	runs  map[string]command // by question
	made  map[string]call

	mu    sync.Mutex
	asked map[string]int // how often, by question
}

// load reads all texts.
func (r *replay) load(copyOf func(name string) ([]byte, error)) error {
	read := func(name string) (string, error) {
		if name == "" {
			return "", nil
		}
		text, err := copyOf(name)
		return string(text), err
	}
	var err error
	for _, answers := range r.index.Files {
		for i := range answers {
			if answers[i].text, err = read(answers[i].Text); err != nil {
				return err
			}
		}
	}
	for _, c := range r.index.Commands {
		for i := range c.Answers {
			a := &c.Answers[i]
			if a.stdout, err = read(a.Stdout); err != nil {
				return err
			}
			if a.stderr, err = read(a.Stderr); err != nil {
				return err
			}
		}
		r.runs[question(c.Name, c.Args)] = c
	}
	for _, c := range r.index.Calls {
		for i, a := range c.Answers {
			var compact bytes.Buffer
			if a.Error == nil && json.Compact(&compact, a.JSON) == nil { // the index is indented for people
				c.Answers[i].JSON = compact.Bytes()
			}
		}
		r.made[question(c.Name, c.Args)] = c
	}
	return nil
}

// next is the answer whose turn it is.
func next[T any](r *replay, key string, answers []T) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := min(r.asked[key], len(answers)-1)
	r.asked[key]++
	return answers[i]
}

type replayRunner struct{ *replay }

// Run implements Runner.
func (r replayRunner) Run(_ context.Context, name string, args ...string) (Output, error) {
	key := question(name, args)
	c := r.runs[key]
	if len(c.Answers) == 0 {
		return Output{}, &exec.Error{Name: name, Err: exec.ErrNotFound}
	}
	a := next(r.replay, "run\x00"+key, c.Answers)
	return Output{Stdout: []byte(a.stdout), Stderr: []byte(a.stderr), ExitCode: a.ExitCode}, a.Error.error()
}

type replayCaller struct{ *replay }

// Call implements Caller.
func (r replayCaller) Call(_ context.Context, name string, args ...string) ([]byte, error) {
	key := question(name, args)
	c := r.made[key]
	if len(c.Answers) == 0 {
		return nil, fmt.Errorf("%s: %w", name, ErrNoCall)
	}
	a := next(r.replay, "call\x00"+key, c.Answers)
	return a.JSON, a.Error.error()
}
