package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

func TestWriteKeepsEvidence(t *testing.T) {
	r := newRig(t)
	r.put("notes.md", "one\ntwo\nthree\n")
	if err := os.Chmod(filepath.Join(r.dir, "notes.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := r.run("run/3/0/1", "file.write", `{"path":"notes.md","body":"one\n2\nthree\n"}`)
	if out.Failure != nil {
		t.Fatal(out.Failure)
	}
	if got := r.text("notes.md"); got != "one\n2\nthree\n" {
		t.Errorf("the file holds %q", got)
	}
	const want = "bc85caa9b61bcf3a54ccfc800e2b0eda6c11fa5df4e0481c896d31cda2462eb2" // printf 'one\n2\nthree\n' | sha256sum
	if len(out.Before) != 1 || !out.Before[0].Exists || out.Before[0].SHA256 != digest([]byte("one\ntwo\nthree\n")) {
		t.Errorf("before: %+v", out.Before)
	}
	if kept, err := os.ReadFile(filepath.Join(r.bodies.dir, out.Before[0].Body.SHA256)); err != nil || string(kept) != "one\ntwo\nthree\n" {
		t.Errorf("what was replaced was not kept: %q, %v", kept, err)
	}
	if len(out.After) != 2 || out.After[0].SHA256 != want || !strings.Contains(out.After[1].Text, "-two\n+2\n") {
		t.Errorf("after: %+v", out.After)
	}
	if info, err := os.Stat(filepath.Join(r.dir, "notes.md")); err != nil || (runtime.GOOS != "windows" && info.Mode().Perm() != 0o600) {
		t.Errorf("the mode of the file became %v, %v", info.Mode(), err)
	}
	if got := r.names(); len(got) != 1 {
		t.Errorf("left in the folder: %v", got)
	}
}

func TestWriteBodies(t *testing.T) {
	r := newRig(t)
	ref, err := r.bodies.Put(t.Context(), "x", strings.NewReader("by reference"))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct{ body, want string }{
		{`"a <text> & more"`, "a <text> & more"},
		{`""`, ""},
		{`{"a":[1,2]}`, `{"a":[1,2]}`},
		{`null`, "null"},
		{`9007199254740993`, "9007199254740993"},
		{string(encode(ref)), "by reference"},
	} {
		name := fmt.Sprintf("sub/%d", i)
		v := r.value(name, "file.write", fmt.Sprintf(`{"path":%q,"body":%s,"folders":true}`, name, c.body))
		if got := r.text(name); got != c.want || v["created"] != true || v["bytes"] != float64(len(c.want)) {
			t.Errorf("%s: wrote %q, said %v", c.body, got, v)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Workspaces[0].MaxBytes = 10 })
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("safe"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.put("old", "old")
	big, err := r.bodies.Put(t.Context(), "big", strings.NewReader("eleven byte"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink(outside, filepath.Join(r.dir, "link")), os.Symlink(filepath.Dir(outside), filepath.Join(r.dir, "away")),
		os.Symlink("old", filepath.Join(r.dir, "near")), os.Mkdir(filepath.Join(r.dir, "folder"), 0o755)); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct{ input, kind string }{
		{`{"path":"link","body":"x"}`, NotAFile},
		{`{"path":"near","body":"x"}`, NotAFile},
		{`{"path":"folder","body":"x"}`, NotAFile},
		{`{"path":"away/new","body":"x"}`, IOError},
		{`{"path":"no/such/folder","body":"x"}`, NotFound},
		{`{"path":"old","body":"eleven byte"}`, TooLarge},
		{`{"path":"old","body":` + string(encode(big)) + `}`, TooLarge},
		{`{"path":"old","body":{"ref":"` + strings.Repeat("0", 64) + `"}}`, NotFound},
		{`{"path":"old","body":"x","replaces":"nothing"}`, Conflict},
		{`{"path":"new","body":"x","replaces":"` + strings.Repeat("0", 64) + `"}`, Conflict},
	} {
		r.refused(c.input, "file.write", c.input, c.kind)
	}
	if data, _ := os.ReadFile(outside); string(data) != "safe" || r.text("old") != "old" {
		t.Errorf("a refused write changed something: %q, %q", data, r.text("old"))
	}
	if got := strings.Join(r.names(), " "); got != "away folder link near old" {
		t.Errorf("left in the folder: %s", got)
	}
}

// A body that is not what its name says is no content of a file.
func TestWriteRefusesDamagedBody(t *testing.T) {
	r := newRig(t)
	ref, err := r.bodies.Put(t.Context(), "x", strings.NewReader("right"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.bodies.dir, ref.SHA256), []byte("wrong"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.refused("k", "file.write", `{"path":"a","body":`+string(encode(ref))+`}`, IOError)
	if got := r.names(); len(got) != 0 {
		t.Errorf("left in the folder: %v", got)
	}
}

func TestSameContentIsNotWrittenAgain(t *testing.T) {
	r := newRig(t)
	r.put("a", "same")
	info, _ := os.Stat(filepath.Join(r.dir, "a"))
	if v := r.value("k", "file.write", `{"path":"a","body":"same"}`); v["changed"] != false {
		t.Errorf("said %v", v)
	}
	if now, _ := os.Stat(filepath.Join(r.dir, "a")); !os.SameFile(info, now) {
		t.Error("the file was replaced by itself, and whoever watches it was told of a change")
	}
}

func TestCompletedCallReturnsItsRecord(t *testing.T) {
	r := newRig(t)
	input := `{"path":"a","body":"mine"}`
	first := r.run("k", "file.write", input)
	r.put("a", "edited by a person since")
	again := r.run("k", "file.write", input)
	if !bytes.Equal(encode(first), encode(again)) {
		t.Errorf("first %s, again %s", encode(first), encode(again))
	}
	if got := r.text("a"); got != "edited by a person since" {
		t.Errorf("the same call wrote twice: %q", got)
	}
	r.refused("k", "file.write", `{"path":"a","body":"other"}`, Conflict)
}

// Power is lost at each border of a write; the same call then ends it, once.
func TestWriteOverACrash(t *testing.T) {
	input := `{"path":"a","body":"new"}`
	crash := errors.New("power lost")
	t.Run("after the effect, before its record", func(t *testing.T) {
		r := newRig(t)
		r.put("a", "old")
		r.notes.saved = func(rec Record) error {
			if rec.Outcome == nil {
				return nil
			}
			rec.Outcome = nil
			if err := os.WriteFile(filepath.Join(r.notes.dir, digest([]byte(rec.Key))), encode(rec), 0o600); err != nil {
				t.Error(err)
			}
			return crash
		}
		if _, err := r.Run(t.Context(), r.call("k", "file.write", input)); !errors.Is(err, crash) {
			t.Fatal(err)
		}
		r.notes.saved = nil
		info, _ := os.Stat(filepath.Join(r.dir, "a"))
		checked, err := r.Check(t.Context(), r.call("k", "file.write", input))
		if err != nil || checked.State != Done {
			t.Fatalf("%+v, %v", checked, err)
		}
		out := r.run("k", "file.write", input)
		if now, _ := os.Stat(filepath.Join(r.dir, "a")); !os.SameFile(info, now) {
			t.Error("it was written twice")
		}
		if out.Failure != nil || len(out.Before) != 1 || out.Before[0].SHA256 != digest([]byte("old")) {
			t.Errorf("%+v", out)
		}
	})
	t.Run("before the effect", func(t *testing.T) {
		r := newRig(t)
		r.put("a", "old")
		r.notes.saved = func(Record) error { return crash }
		if _, err := r.Run(t.Context(), r.call("k", "file.write", input)); !errors.Is(err, crash) {
			t.Fatal(err)
		}
		r.notes.saved = nil
		checked, err := r.Check(t.Context(), r.call("k", "file.write", input))
		if err != nil || checked.State != NotDone || r.text("a") != "old" {
			t.Fatalf("%+v, %v", checked, err)
		}
		if out := r.run("k", "file.write", input); out.Failure != nil || r.text("a") != "new" {
			t.Errorf("%+v", out)
		}
	})
	t.Run("before the effect, and somebody else wrote", func(t *testing.T) {
		r := newRig(t)
		r.put("a", "old")
		r.notes.saved = func(Record) error { return crash }
		if _, err := r.Run(t.Context(), r.call("k", "file.write", input)); !errors.Is(err, crash) {
			t.Fatal(err)
		}
		r.notes.saved = nil
		r.put("a", "a person's")
		if f := r.refused("k", "file.write", input, EffectUnsure); len(f.Next) == 0 {
			t.Error("does not say what to do next")
		}
		if r.text("a") != "a person's" {
			t.Errorf("what a person wrote was replaced by %q", r.text("a"))
		}
	})
	t.Run("not begun", func(t *testing.T) {
		r := newRig(t)
		if checked, err := r.Check(t.Context(), r.call("k", "file.write", input)); err != nil || checked.State != NotDone {
			t.Fatalf("%+v, %v", checked, err)
		}
	})
}

func TestWriteIsGivenUp(t *testing.T) {
	r := newRig(t)
	r.put("a", "old")
	ctx, cancel := context.WithCancel(t.Context())
	r.notes.saved = func(Record) error { cancel(); return nil }
	ref, err := r.bodies.Put(t.Context(), "x", strings.NewReader("new"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Run(ctx, r.call("k", "file.write", `{"path":"a","body":`+string(encode(ref))+`}`))
	if !errors.Is(err, context.Canceled) || r.text("a") != "old" || len(r.names()) != 1 {
		t.Errorf("%v; the file holds %q; left %v", err, r.text("a"), r.names())
	}
}

// Writers of one path end one after the other, and each one's evidence is what it really replaced.
func TestConcurrentWritersFormAChain(t *testing.T) {
	r := newRig(t)
	const writers = 20
	var wg sync.WaitGroup
	outs := make([]Outcome, writers)
	for i := range writers {
		wg.Go(func() {
			for try := range 1000 {
				out, err := r.Run(t.Context(), r.call(fmt.Sprintf("w/%d/%d", i, try), "file.write", fmt.Sprintf(`{"path":"a","body":"by %d"}`, i)))
				if err != nil {
					t.Error(err)
					return
				}
				if outs[i] = out; out.Failure == nil {
					return
				} else if !out.Failure.Again {
					t.Error(out.Failure)
					return
				}
			}
		})
	}
	wg.Wait()
	replaced := map[string]bool{}
	for _, out := range outs {
		if out.Failure != nil {
			t.Fatal(out.Failure)
		}
		if from := contentName(out.Before[0]); replaced[from] {
			t.Errorf("two writers say that they replaced %s", from)
		} else {
			replaced[from] = true
		}
	}
	if len(r.names()) != 1 {
		t.Errorf("left in the folder: %v", r.names())
	}
}

func TestSameKeyAtOnceIsOneEffect(t *testing.T) {
	log := EffectLog{Path: filepath.Join(t.TempDir(), "effects"), Exit: func() { t.Error("crashed") }}
	r := newRig(t, func(o *Options) { o.More = []Tool{log} })
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if out, err := r.Run(t.Context(), r.call("k", "effect.log", `{"text":"x"}`)); err != nil || out.Failure != nil {
				t.Error(out.Failure, err)
			}
		})
	}
	wg.Wait()
	if effects, err := log.Effects(); err != nil || len(effects["k"]) != 1 {
		t.Errorf("%v, %v", effects, err)
	}
}

// A file far larger than what may be in memory goes in and out.
func TestLargeFilesDoNotPassThroughMemory(t *testing.T) {
	r := newRig(t)
	const size = 128 << 20
	f, err := os.Create(filepath.Join(r.dir, "large"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		t.Fatal(err)
	}
	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	body := encode(r.value("k", "file.read", `{"path":"large"}`)["body"])
	v := r.value("k2", "file.write", `{"path":"copy","body":`+string(body)+`}`)
	runtime.ReadMemStats(&end)
	if v["bytes"] != float64(size) {
		t.Errorf("wrote %v", v)
	}
	if used := end.TotalAlloc - start.TotalAlloc; used > 8<<20 {
		t.Errorf("%d MiB were allocated for a file of %d MiB", used>>20, size>>20)
	}
}
