package tools

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"
)

// EffectLog is the tool effect.log, for tests: it appends each effect with the key of its call to a file, so that effects can be counted
// across crashes. Its input scripts what goes wrong.
type EffectLog struct {
	Path string // the log, one JSON line per effect or crash
	Exit func() // ends the process when a call is scripted to crash; it may return, then the call goes on
}

// Describe implements Tool.
func (EffectLog) Describe() Description {
	return Description{
		Name: "effect.log", Summary: "Appends a line to a log (for tests).", Effect: External, Verifiable: true, Verify: "look for the key of the call in the log",
		Input: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["text"],"properties":{
			"text":{"type":"string"},"delay_seconds":{"type":"number","minimum":0},
			"crash":{"enum":["before","after"],"description":"once per key"},
			"fail":{"type":"string","description":"kind of the failure that it ends with, without an effect"},
			"blind":{"type":"boolean","description":"after a crash it cannot say whether it was done"}}}`),
		Output: json.RawMessage(`{"type":"object","required":["effects"],"properties":{"effects":{"type":"integer"}}}`),
	}
}

// entry is one line of the log.
type entry struct {
	Key   string `json:"key"`
	Text  string `json:"text,omitempty"`
	Crash string `json:"crash,omitempty"` // a crash that was scripted, not an effect
}

type effectInput struct {
	Text  string  `json:"text"`
	Delay float64 `json:"delay_seconds"`
	Crash string  `json:"crash"`
	Fail  string  `json:"fail"`
	Blind bool    `json:"blind"`
}

// Before implements Tool.
func (EffectLog) Before(context.Context, Call) ([]Evidence, error) { return nil, nil }

// Do implements Tool.
func (l EffectLog) Do(ctx context.Context, call Call, _ []Evidence) (Outcome, error) {
	in, err := decode[effectInput](call)
	if err != nil {
		return Outcome{}, err
	}
	select {
	case <-time.After(time.Duration(in.Delay * float64(time.Second))):
	case <-ctx.Done():
		return Outcome{}, ctx.Err()
	}
	if in.Fail != "" {
		return Outcome{}, failed(in.Fail, "%s: the script of the test says so", call.Tool)
	}
	if err := l.crash(call.Key, in.Crash == "before"); err != nil {
		return Outcome{}, err
	}
	if err := l.append(entry{Key: call.Key, Text: in.Text}); err != nil {
		return Outcome{}, explain(call.Tool, "append to", l.Path, err)
	}
	if err := l.crash(call.Key, in.Crash == "after"); err != nil {
		return Outcome{}, err
	}
	return l.outcome(call.Key)
}

// Check implements Tool.
func (l EffectLog) Check(_ context.Context, call Call, _ []Evidence) (Checked, error) {
	in, err := decode[effectInput](call)
	if err != nil {
		return Checked{}, err
	}
	if in.Blind {
		return Checked{State: Unknown, Why: "the script of the test says that nobody can tell"}, nil
	}
	effects, err := l.Effects()
	if err != nil {
		return Checked{}, err
	}
	if len(effects[call.Key]) == 0 {
		return Checked{State: NotDone, Why: "the log does not hold the key"}, nil
	}
	out, err := l.outcome(call.Key)
	return Checked{State: Done, Outcome: &out, Why: "the log holds the key"}, err
}

// Effects are the texts that were logged, by the key of their call; more than one text under a key is an effect that was repeated.
func (l EffectLog) Effects() (map[string][]string, error) {
	effects := map[string][]string{}
	err := l.each(func(e entry) {
		if e.Crash == "" {
			effects[e.Key] = append(effects[e.Key], e.Text)
		}
	})
	return effects, err
}

func (l EffectLog) outcome(key string) (Outcome, error) {
	effects, err := l.Effects()
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{
		Value: encode(map[string]int{"effects": len(effects[key])}),
		After: []Evidence{{Kind: EntryEvidence, Path: l.Path, Exists: true, Text: strings.Join(effects[key], "\n")}},
	}, nil
}

// crash ends the process, once per key: the log says that it has happened.
func (l EffectLog) crash(key string, scripted bool) error {
	if !scripted {
		return nil
	}
	crashed := false
	if err := l.each(func(e entry) { crashed = crashed || (e.Key == key && e.Crash != "") }); err != nil || crashed {
		return err
	}
	if err := l.append(entry{Key: key, Crash: "scripted"}); err != nil {
		return err
	}
	l.Exit()
	return nil
}

func (l EffectLog) each(visit func(entry)) error {
	f, err := os.Open(l.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return err
		}
		visit(e)
	}
	return lines.Err()
}

// append adds one line, durably. Short appends of several processes do not mix.
func (l EffectLog) append(e entry) error {
	f, err := os.OpenFile(l.Path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(encode(e), '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}
