package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/ui"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// sink takes the items of a batch in input order.
type sink interface {
	begin() error // makes its file anew, once there is a run; before that what is in it stays
	put(*coordinatorv1.Item) error
	flush() error // shows what was kept back while the progress moved
	close() error
}

// sinkFor is where results go: a file, a folder, or stdout in the form that fits who reads it.
func (a *app) sinkFor(to destination) (sinks, error) {
	var all sinks
	if to.out != "" {
		if err := mayWrite(to.out); err != nil {
			return nil, err
		}
		all = append(all, &lineSink{path: to.out})
	}
	if to.dir != "" {
		if err := os.MkdirAll(to.dir, 0o755); err != nil {
			return nil, apierr.Wrap(err, apierr.InvalidArgument, "make the results folder").WithNext("--out-dir FOLDER in a folder that you may write")
		}
		all = append(all, &dirSink{dir: to.dir, taken: map[string]bool{}})
	}
	switch {
	case a.flags.output == "jsonl":
		all = append(all, &lineSink{w: a.stdout, kind: "item"})
	case a.flags.output == "json":
		all = append(all, &heldSink{})
	case len(all) > 0:
	case terminal(a.stdout):
		all = append(all, &blockSink{w: a.stdout, style: a.style(a.stdout)})
	default:
		all = append(all, &lineSink{w: a.stdout})
	}
	return all, nil
}

// sinks gives every item to all of them.
type sinks []sink

func (s sinks) put(i *coordinatorv1.Item) error {
	for _, one := range s {
		if err := one.put(i); err != nil {
			return unwritten{err}
		}
	}
	return nil
}

func (s sinks) begin() error {
	for _, one := range s {
		if err := one.begin(); err != nil {
			return unwritten{err}
		}
	}
	return nil
}

// together is one error of several: that results could not be written.
func (s sinks) together(errs []error) error {
	if err := errors.Join(errs...); err != nil {
		return unwritten{err}
	}
	return nil
}

func (s sinks) flush() error {
	var errs []error
	for _, one := range s {
		errs = append(errs, one.flush())
	}
	return s.together(errs)
}

func (s sinks) close() error {
	var errs []error
	for _, one := range s {
		errs = append(errs, one.close())
	}
	return s.together(errs)
}

// held returns the items that were kept for one JSON object.
func (s sinks) held() []any {
	for _, one := range s {
		if h, ok := one.(*heldSink); ok {
			return h.items
		}
	}
	return nil
}

// written says which files and folders the results went to, and how many.
func (s sinks) written() []string {
	var out []string
	for _, one := range s {
		switch w := one.(type) {
		case *lineSink:
			if w.path != "" {
				out = append(out, fmt.Sprintf("%s: %s", w.path, ui.Plural(w.count, "item", "items")))
			}
		case *dirSink:
			out = append(out, fmt.Sprintf("%s: %s", filepath.Clean(w.dir)+string(filepath.Separator), ui.Plural(int64(len(w.taken)), "file", "files")))
		}
	}
	return out
}

// lineSink writes a JSON object per line at once, so that what is final is there even when we are killed.
type lineSink struct {
	w     io.Writer // nil until begin where there is a path
	path  string    // of the file; "" for stdout
	file  *os.File  // the open file, synced and closed at the end
	kind  string
	count int64
}

func (s *lineSink) begin() error {
	if s.path == "" || s.file != nil {
		return nil
	}
	f, err := os.OpenFile(s.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open the results file: %w", err)
	}
	s.file, s.w = f, f
	return nil
}

func (s *lineSink) put(i *coordinatorv1.Item) error {
	r := ui.Item(i)
	r.Type = s.kind
	if err := ui.WriteJSONLine(s.w, r); err != nil {
		return fmt.Errorf("write a result: %w", err)
	}
	s.count++
	return nil
}

func (s *lineSink) flush() error { return nil }

func (s *lineSink) close() error {
	if s.file == nil {
		return nil
	}
	info, err := s.file.Stat()
	if err == nil && info.Mode().IsRegular() { // a device or a pipe cannot be synced
		err = s.file.Sync()
	}
	if err := errors.Join(err, s.file.Close()); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}

// heldSink keeps the items for one JSON object at the end.
type heldSink struct{ items []any }

func (s *heldSink) put(i *coordinatorv1.Item) error {
	s.items = append(s.items, ui.Item(i))
	return nil
}

func (s *heldSink) begin() error { return nil }
func (s *heldSink) flush() error { return nil }
func (s *heldSink) close() error { return nil }

// blockSink prints the items for people, once the progress no longer moves.
type blockSink struct {
	w     io.Writer
	style ui.Style
	text  strings.Builder
}

func (s *blockSink) put(i *coordinatorv1.Item) error {
	s.text.WriteString(ui.ItemBlock(s.style, i))
	return nil
}

func (s *blockSink) flush() error {
	_, err := io.WriteString(s.w, s.text.String())
	s.text.Reset()
	return err
}

func (s *blockSink) begin() error { return nil }
func (s *blockSink) close() error { return nil }

// dirSink writes a file per item that succeeded, named after the item.
type dirSink struct {
	dir   string
	taken map[string]bool
}

func (s *dirSink) put(i *coordinatorv1.Item) error {
	if i.GetState() != "succeeded" {
		return nil
	}
	name, body := resultName(i.GetKey(), ".txt"), strings.TrimRight(i.GetText(), "\n")+"\n"
	if len(i.GetValueJson()) > 0 {
		name, body = resultName(i.GetKey(), ".json"), ui.Indent(i.GetValueJson())+"\n"
	}
	if s.taken[name] {
		name = fmt.Sprintf("%d-%s", i.GetIndex(), filepath.Base(name))
	}
	s.taken[name] = true
	path := filepath.Join(s.dir, name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(body), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write a result: %w", err)
	}
	return nil
}

func (s *dirSink) begin() error { return nil }
func (s *dirSink) flush() error { return nil }
func (s *dirSink) close() error { return nil }

// resultName makes a path below the results folder of an item's key, wherever that points: a.md becomes a.md.txt, and a.txt
// becomes a.txt.out.
func resultName(key, ext string) string {
	name := filepath.ToSlash(filepath.Clean("/" + filepath.ToSlash(key)))
	name = strings.NewReplacer(":", "_", "\x00", "_").Replace(strings.TrimPrefix(name, "/"))
	switch {
	case name == "":
		name = "item"
	case strings.HasSuffix(name, ext):
		ext = ".out"
	}
	return filepath.FromSlash(name + ext)
}
