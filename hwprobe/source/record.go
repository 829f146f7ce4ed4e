package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/loopkeeper/loopkeeper/hwprobe/mask"
)

// answersLimit is how many different answers to one question are kept; what comes after them is not.
const answersLimit = 64

// ErrNotEmpty says that a recording cannot be made in a folder that holds something.
var ErrNotEmpty = errors.New("the folder of a recording must be new or empty")

// Recorder keeps what a machine is asked and what it answers, see Record.
type Recorder struct {
	machine Machine
	dir     string
	mask    mask.Mask

	mu       sync.Mutex
	files    map[string][]stored
	folders  map[string]folder
	links    map[string]string
	commands map[string]*command
	calls    map[string]*call
}

// Record prepares a recording of a machine in a folder, which must be new or empty. Probe its Machine, then Close it. users are
// names of people on the machine, to be masked wherever they stand; what else is masked is found in the answers.
func Record(m Machine, dir string, users ...string) (*Recorder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the recording's folder: %w", err)
	}
	switch entries, err := os.ReadDir(dir); {
	case err != nil:
		return nil, fmt.Errorf("look into the recording's folder: %w", err)
	case len(entries) > 0:
		return nil, fmt.Errorf("%s: %w", dir, ErrNotEmpty)
	}
	r := &Recorder{machine: m, dir: dir, files: map[string][]stored{}, folders: map[string]folder{}, links: map[string]string{},
		commands: map[string]*command{}, calls: map[string]*call{}}
	for _, u := range users {
		r.mask.User(u)
	}
	return r, nil
}

// Machine is the recorded machine, which answers as the real one does.
func (r *Recorder) Machine() Machine {
	return Machine{OS: r.machine.OS, Arch: r.machine.Arch, Files: recordingFS{r}, Commands: recordingRunner{r}, Calls: recordingCaller{r}}
}

// Mask returns the text with everything masked that was found to be a secret by the time of Close.
func (r *Recorder) Mask(text string) string { return r.mask.Text(text) }

// Masked says what was masked by the time of Close.
func (r *Recorder) Masked() []mask.Count { return r.mask.Counts() }

// Asked is how many files, commands and calls of the system the recording holds.
func (r *Recorder) Asked() (files, commands, calls int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.files), len(r.commands), len(r.calls)
}

// appendAnswer adds an answer, unless there are too many.
func appendAnswer[T any](answers []T, a T) []T {
	if len(answers) >= answersLimit {
		return answers
	}
	return append(answers, a)
}

// settled leaves out the repetitions at the end: the last answer holds for all later questions.
func settled[T any](answers []T) []T {
	for len(answers) > 1 && reflect.DeepEqual(answers[len(answers)-1], answers[len(answers)-2]) {
		answers = answers[:len(answers)-1]
	}
	return answers
}

type recordingRunner struct{ *Recorder }

// Run implements Runner.
func (r recordingRunner) Run(ctx context.Context, name string, args ...string) (Output, error) {
	out, err := r.machine.Commands.Run(ctx, name, args...)
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.commands[question(name, args)]
	if c == nil {
		c = &command{Name: name, Args: slices.Clone(args)}
		r.commands[question(name, args)] = c
	}
	c.Answers = appendAnswer(c.Answers, output{ExitCode: out.ExitCode, Error: failureOf(err), stdout: string(out.Stdout), stderr: string(out.Stderr)})
	return out, err
}

type recordingCaller struct{ *Recorder }

// Call implements Caller.
func (r recordingCaller) Call(ctx context.Context, name string, args ...string) ([]byte, error) {
	raw, err := r.machine.Calls.Call(ctx, name, args...)
	if errors.Is(err, ErrNoCall) { // as everything is that was not recorded
		return raw, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.calls[question(name, args)]
	if c == nil {
		c = &call{Name: name, Args: slices.Clone(args)}
		r.calls[question(name, args)] = c
	}
	c.Answers = appendAnswer(c.Answers, callResult{JSON: bytes.Clone(raw), Error: failureOf(err)})
	return raw, err
}

// Close masks what was recorded and writes it. Nothing is written before.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.learn()
	w := &writer{dir: r.dir, mask: &r.mask}
	x := index{Version: RecordingVersion, OS: r.machine.OS, Arch: r.machine.Arch, Files: map[string][]stored{}, Folders: map[string]folder{},
		Links: map[string]string{}}
	for _, name := range sortedKeys(r.files) { // masks are numbered in the order of their use
		x.Files[w.mask.Text(name)] = w.file(name, settled(r.files[name]))
	}
	for name, f := range r.folders {
		x.Folders[w.mask.Text(name)] = w.folder(f)
	}
	for name, target := range r.links {
		x.Links[w.mask.Text(name)] = w.mask.Text(target)
	}
	for i, key := range sortedKeys(r.commands) {
		x.Commands = append(x.Commands, w.command(i+1, r.commands[key]))
	}
	for _, key := range sortedKeys(r.calls) {
		x.Calls = append(x.Calls, w.call(r.calls[key]))
	}
	w.json(indexName, x)
	if w.err != nil {
		return fmt.Errorf("write the recording: %w", w.err)
	}
	return nil
}

// learn finds the secrets in all answers before any of them is masked: what one file calls a serial number may stand in
// another one without a word about it. Questions hold secrets only where answers have told them.
func (r *Recorder) learn() {
	for _, name := range sortedKeys(r.files) {
		for _, a := range r.files[name] {
			r.mask.LearnFile(name, a.text)
			r.learnFailure(a.Error)
		}
	}
	for _, name := range sortedKeys(r.folders) {
		for entry := range r.folders[name].Entries {
			r.mask.Learn(entry)
		}
	}
	for _, name := range sortedKeys(r.links) {
		r.mask.Learn(r.links[name])
	}
	for _, key := range sortedKeys(r.commands) {
		for _, a := range r.commands[key].Answers {
			r.mask.Learn(a.stdout)
			r.mask.Learn(a.stderr)
			r.learnFailure(a.Error)
		}
	}
	for _, key := range sortedKeys(r.calls) {
		for _, a := range r.calls[key].Answers {
			r.mask.Learn(string(a.JSON))
			r.learnFailure(a.Error)
		}
	}
}

func (r *Recorder) learnFailure(f *failure) {
	if f != nil {
		r.mask.Learn(f.Text)
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// localPath is where a copy of a file lies, spelled so that every system can have it: a PCI address has colons, which Windows
// has not.
func localPath(parts ...string) string {
	var b strings.Builder
	for _, c := range []byte(filepath.ToSlash(filepath.Join(parts...))) {
		if c < ' ' || c > '~' || strings.IndexByte(`<>:"\|?*%`, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
