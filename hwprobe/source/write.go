package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/loopkeeper/loopkeeper/hwprobe/mask"
)

// writer writes a recording, masked. After an error it writes no more.
type writer struct {
	dir  string
	mask *mask.Mask
	err  error
}

func (w *writer) write(name, text string) {
	if w.err != nil {
		return
	}
	at := filepath.Join(w.dir, filepath.FromSlash(name))
	if w.err = os.MkdirAll(filepath.Dir(at), 0o755); w.err == nil {
		w.err = os.WriteFile(at, []byte(text), 0o644)
	}
}

func (w *writer) json(name string, value any) {
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil && w.err == nil {
		w.err = err
	}
	w.write(name, string(raw)+"\n")
}

// file writes the different texts that reading one file gave.
func (w *writer) file(name string, answers []stored) []stored {
	at := map[string]string{} // where each text is written
	masked := []stored{}
	for _, a := range answers {
		s := stored{Error: w.failure(a.Error)}
		if a.Error == nil {
			text := w.mask.File(name, a.text)
			if at[text] == "" {
				at[text] = localPath("files", w.mask.Text(name))
				if n := len(at); n > 1 {
					at[text] += fmt.Sprintf("~%d", n)
				}
				w.write(at[text], text)
			}
			s.Text = at[text]
		}
		masked = append(masked, s)
	}
	return masked
}

func (w *writer) folder(f folder) folder {
	masked := folder{Error: w.failure(f.Error), Entries: map[string]entryKind{}}
	for name, kind := range f.Entries {
		masked.Entries[w.mask.Text(name)] = kind
	}
	return masked
}

func (w *writer) command(number int, c *command) command {
	masked := command{Name: w.mask.Text(c.Name), Args: w.texts(c.Args)}
	for i, a := range settled(c.Answers) {
		o := output{ExitCode: a.ExitCode, Error: w.failure(a.Error)}
		base := localPath("commands", fmt.Sprintf("%d-%s", number, filepath.Base(masked.Name)))
		if i > 0 {
			base += fmt.Sprintf("~%d", i+1)
		}
		if a.stdout != "" {
			o.Stdout = base + ".stdout"
			w.write(o.Stdout, w.mask.Text(a.stdout))
		}
		if a.stderr != "" {
			o.Stderr = base + ".stderr"
			w.write(o.Stderr, w.mask.Text(a.stderr))
		}
		masked.Answers = append(masked.Answers, o)
	}
	return masked
}

func (w *writer) call(c *call) call {
	masked := call{Name: c.Name, Args: w.texts(c.Args)}
	for _, a := range settled(c.Answers) {
		r := callResult{Error: w.failure(a.Error)}
		if a.Error == nil {
			r.JSON = json.RawMessage(w.mask.Text(string(a.JSON)))
		}
		masked.Answers = append(masked.Answers, r)
	}
	return masked
}

func (w *writer) texts(list []string) []string {
	masked := []string{}
	for _, text := range list {
		masked = append(masked, w.mask.Text(text))
	}
	return masked
}

func (w *writer) failure(f *failure) *failure {
	if f == nil {
		return nil
	}
	return &failure{Kinds: f.Kinds, Text: w.mask.Text(f.Text)}
}

// absent says whether there is no such file.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }
