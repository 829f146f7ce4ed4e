package source

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/iotest"
	"testing/synctest"
	"time"
)

func TestCallThatHangsIsLeftAndNotMadeAgainWhileItLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int32 // calls of card0
		release := make(chan struct{})
		c := Guard(Calls{"ioctl": func(_ context.Context, args ...string) (any, error) {
			if args[0] == "card0" {
				made.Add(1)
				<-release
			}
			return args[0], nil
		}})
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Call(ctx, "ioctl", "card0"); !errors.Is(err, ErrStuck) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want ErrStuck at the deadline", err)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("took %v with a deadline of 1s", took)
		}
		if _, err := c.Call(t.Context(), "ioctl", "card0"); !errors.Is(err, ErrStuck) || made.Load() != 1 {
			t.Errorf("%v after %d calls, want ErrStuck and no second call", err, made.Load())
		}
		if raw, err := c.Call(t.Context(), "ioctl", "card1"); err != nil || string(raw) != `"card1"` {
			t.Errorf("another card: %s, %v", raw, err)
		}
		close(release)
		synctest.Wait()
		if raw, err := c.Call(t.Context(), "ioctl", "card0"); err != nil || string(raw) != `"card0"` {
			t.Errorf("after it ended: %s, %v", raw, err)
		}
	})
}

func TestCallThatMindsItsContextIsNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Guard(Calls{"slow": func(ctx context.Context, _ ...string) (any, error) {
			<-ctx.Done()
			time.Sleep(pipeGrace / 2)
			return nil, ctx.Err()
		}})
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := c.Call(ctx, "slow"); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrStuck) {
				t.Errorf("error %v, want the deadline alone", err)
			}
			cancel()
		}
	})
}

func TestCallThatPanicsOrFloodsIsAnError(t *testing.T) {
	var none *int
	c := Guard(Calls{
		"panics":   func(context.Context, ...string) (any, error) { return *none, nil },
		"floods":   func(context.Context, ...string) (any, error) { return strings.Repeat("x", outputLimit), nil },
		"channel":  func(context.Context, ...string) (any, error) { return make(chan int), nil },
		"rights":   func(context.Context, ...string) (any, error) { return nil, fs.ErrPermission },
		"no limit": func(context.Context, ...string) (any, error) { return strings.Repeat("x", outputLimit-2), nil },
	})
	if _, err := c.Call(t.Context(), "panics"); err == nil || !strings.Contains(err.Error(), "panic") {
		t.Errorf("panics: %v", err)
	}
	if _, err := c.Call(t.Context(), "channel"); err == nil {
		t.Error("what JSON cannot hold was taken")
	}
	for name, want := range map[string]error{"floods": ErrOutputTooLarge, "rights": fs.ErrPermission, "no limit": nil, "missing": ErrNoCall} {
		if _, err := c.Call(t.Context(), name); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}

func TestAnswerOfAnotherShapeIsNotUsed(t *testing.T) {
	type card struct{ Total uint64 }
	c := Calls{"card": func(context.Context, ...string) (any, error) { return map[string]any{"Total": -1}, nil }}
	if got, err := Ask[card](t.Context(), c, "card"); err == nil || got != (card{}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestFileThatIsTooLarge(t *testing.T) {
	root := fstest.MapFS{
		"whole":  {Data: make([]byte, fileLimit)},
		"larger": {Data: make([]byte, fileLimit+1)},
		"a/b":    {Data: []byte("7\n")},
		"link":   {Data: []byte("a"), Mode: fs.ModeSymlink},
	}
	if err := fstest.TestFS(Capped(fstest.MapFS{"whole": root["whole"], "a/b": root["a/b"], "link": root["link"]}), "whole", "a/b", "link"); err != nil {
		t.Error(err)
	}
	if text, err := fs.ReadFile(Capped(root), "larger"); !errors.Is(err, ErrFileTooLarge) {
		t.Errorf("%d bytes, %v; want ErrFileTooLarge", len(text), err)
	}
	if ReadUint(Capped(root), "a/b").Or(0) != 7 || ReadText(Capped(root), "larger") != "" {
		t.Error("a file that is too large has no text, others have")
	}
}

func TestCappedFileReadsOnAfterShortReads(t *testing.T) {
	f := &cappedFile{File: slowFile{iotest.OneByteReader(strings.NewReader("abc"))}, left: 3}
	if err := iotest.TestReader(f, []byte("abc")); err != nil {
		t.Error(err)
	}
}

type slowFile struct {
	reader interface{ Read([]byte) (int, error) }
}

func (s slowFile) Read(p []byte) (int, error) { return s.reader.Read(p) }
func (slowFile) Stat() (fs.FileInfo, error)   { return nil, fs.ErrInvalid }
func (slowFile) Close() error                 { return nil }

func TestRealCommandTellsItsProcessorTime(t *testing.T) {
	out, _, err := runTool(t, t.Context(), "exit9")
	if err != nil || out.CPU <= 0 && runtime.GOOS != "windows" {
		t.Errorf("%v of processor time, %v", out.CPU, err)
	}
}
