package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/loopkeeper/loopkeeper/coordinator/params"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// leftOut is what was found and is no input.
type leftOut struct {
	hidden  int
	results string              // a folder below that results go to
	files   map[string][]string // by what they are, such as "not text"
}

func (l *leftOut) add(why, path string) {
	if l.files == nil {
		l.files = map[string][]string{}
	}
	if !utf8.ValidString(path) {
		path = strconv.Quote(path)
	}
	l.files[why] = append(l.files[why], path)
}

// all are the files, in the order of why they were left out.
func (l leftOut) all() (out []string) {
	for _, why := range slices.Sorted(maps.Keys(l.files)) {
		out = append(out, l.files[why]...)
	}
	return out
}

// text says it in words, in brackets.
func (l leftOut) text() string {
	var parts []string
	if l.hidden > 0 {
		parts = append(parts, fmt.Sprintf("%d hidden", l.hidden))
	}
	for _, why := range []string{notText, notAsked, tooLarge, notRegular, notNamed, "unreadable", "empty"} {
		if files := l.files[why]; len(files) > 0 {
			parts = append(parts, fmt.Sprintf("%d %s: %s", len(files), why, some(files)))
		}
	}
	if l.results != "" {
		parts = append(parts, "the results in "+l.results)
	}
	if len(parts) == 0 {
		return ""
	}
	return " (left out: " + strings.Join(parts, "; ") + ")"
}

// named is how many names a line of text holds before it counts the others.
const named = 3

func some(names []string) string {
	text := strings.Join(names[:min(len(names), named)], ", ")
	if more := len(names) - named; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// maxFile is the largest text or image that is taken, bytes.
const maxFile = 16 << 20

// Why a file is no input.
const (
	notText    = "not text"
	notAsked   = "as images (a pattern such as '*.jpg' takes them)"
	tooLarge   = "larger than 16 MiB"
	notRegular = "no regular file"
	notNamed   = "without a UTF-8 name"
)

// unusable is a file that cannot be an input, and in a word or two why.
type unusable struct {
	why string
	err error
}

func (u unusable) Error() string { return u.err.Error() }
func (u unusable) Unwrap() error { return u.err }

func badName(path string) error {
	return unusable{notNamed, apierr.New(apierr.InvalidArgument, "the file name %q is not UTF-8", path).WithNext("rename the file")}
}

// readFile reads a regular file: anything else may never end.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, apierr.Wrap(err, apierr.NotFound, "read the input").WithNext("check the path " + quote(path))
	}
	if !info.Mode().IsRegular() {
		return nil, unusable{notRegular, apierr.New(apierr.InvalidArgument, "%s is no regular file", path).WithNext("save what it gives to a file, and name that")}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, apierr.Wrap(err, apierr.InvalidArgument, "read the input")
	}
	defer f.Close()
	var data []byte
	if info.Size() <= maxFile {
		data, err = io.ReadAll(io.LimitReader(f, maxFile+1)) // it may grow meanwhile
	}
	if err != nil {
		return nil, apierr.Wrap(err, apierr.InvalidArgument, "read the input")
	}
	if max(info.Size(), int64(len(data))) > maxFile {
		next := "split the document"
		if run.ImageName(path) {
			next = "make the image smaller"
		}
		return nil, unusable{tooLarge, apierr.New(apierr.InvalidArgument, "%s is larger than %d MiB", path, maxFile>>20).WithNext(next)}
	}
	return data, nil
}

func readText(path string) (string, error) { return readBody(path, false) }

// readBody reads what a model can be given: a text, or an image where images are wanted.
func readBody(path string, images bool) (string, error) {
	data, err := readFile(path)
	switch image := params.Image(data); {
	case err != nil:
		return "", err
	case image && !images:
		return "", unusable{notAsked, apierr.New(apierr.InvalidArgument, "%s is an image, and a text is wanted here", path).WithNext("name a text")}
	case !image && (!utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0):
		return "", unusable{notText, apierr.New(apierr.InvalidArgument, "%s is not UTF-8 text", path).
			WithNext("convert it to text first, such as with pdftotext or pandoc; images are taken as PNG, JPEG, WebP or GIF")}
	}
	return string(data), nil
}

// lines makes an item of every line of the files that are not empty. Lines of .jsonl and .ndjson files are JSON values,
// others are texts.
func lines(files []input) ([]input, error) {
	var out []input
	for _, f := range files {
		text, err := readText(f.path)
		if err != nil {
			return nil, err
		}
		structured := strings.HasSuffix(f.path, ".jsonl") || strings.HasSuffix(f.path, ".ndjson")
		number := 0
		digits := len(strconv.Itoa(strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1)) // so that keys and file names sort as the lines do
		for line := range strings.Lines(text) {
			number++
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			i := input{key: fmt.Sprintf("%s:%0*d", f.key, digits, number), value: line, source: f.source}
			if structured {
				var v json.RawMessage
				if err := json.Unmarshal([]byte(line), &v); err != nil {
					return nil, apierr.New(apierr.InvalidArgument, "%s:%d: not JSON: %v", f.path, number, err).WithNext("one JSON value per line, or a file that is not named .jsonl")
				}
				i.value = v
			}
			out = append(out, i)
		}
	}
	if len(out) == 0 {
		return nil, apierr.New(apierr.InvalidArgument, "the input has no lines").WithNext("wc -l " + files[0].path)
	}
	return out, nil
}
