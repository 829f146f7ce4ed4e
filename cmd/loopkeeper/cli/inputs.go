package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// input is one item of a batch: a file that will be uploaded, or a value that is sent as it is.
type input struct {
	key   string
	path  string // of the file; empty for a value
	value any
}

// inputs finds what the arguments name: files, globs and folders. It returns what was left out on the way.
// A file that is named and cannot be used is an error; one that a folder happens to hold is left out. Empty files are always
// left out: a model would answer about nothing.
func inputs(args []string) (out []input, left leftOut, err error) {
	if len(args) == 0 {
		return nil, left, usagef("no input: name files, folders or quoted globs")
	}
	seen := map[string]bool{}
	for _, arg := range args {
		paths, err := expand(arg, &left)
		if err != nil {
			return nil, left, err
		}
		for _, p := range paths {
			if !seen[p] {
				seen[p] = true
				out = append(out, input{key: filepath.ToSlash(p), path: p})
			}
		}
	}
	if len(out) == 0 {
		return nil, left, apierr.New(apierr.InvalidArgument, "%s: no text file found%s", strings.Join(args, ", "), left.text()).
			WithNext("ls " + args[0])
	}
	return out, left, nil
}

// leftOut is what was found and is no input.
type leftOut struct {
	hidden        int
	binary, empty []string
}

// text says it in words, in brackets.
func (l leftOut) text() string {
	var parts []string
	if l.hidden > 0 {
		parts = append(parts, fmt.Sprintf("%d hidden", l.hidden))
	}
	for _, p := range []struct {
		what  string
		files []string
	}{{"not text", l.binary}, {"empty", l.empty}} {
		if len(p.files) > 0 {
			parts = append(parts, fmt.Sprintf("%d %s: %s", len(p.files), p.what, some(p.files)))
		}
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

// expand turns one argument into files.
func expand(arg string, left *leftOut) ([]string, error) {
	info, err := os.Stat(arg)
	switch {
	case err == nil && info.IsDir():
		return folder(arg, left)
	case err == nil:
		return chosen(arg, left)
	case errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(arg, "*?["):
		return glob(arg, left)
	case errors.Is(err, fs.ErrNotExist):
		return nil, apierr.New(apierr.NotFound, "there is no file %s", arg).WithNext("check the path; a glob in quotes is expanded here")
	default:
		return nil, apierr.Wrap(err, apierr.InvalidArgument, "read the input")
	}
}

// chosen is a file that the user named or whose name fits a pattern.
func chosen(path string, left *leftOut) ([]string, error) {
	text, err := readText(path)
	if err == nil && strings.TrimSpace(text) == "" {
		left.empty = append(left.empty, path)
		return nil, nil
	}
	return []string{path}, err
}

// glob expands a pattern; ** stands for any folders.
func glob(pattern string, left *leftOut) ([]string, error) {
	found, err := filepath.Glob(pattern)
	if err == nil && strings.Contains(pattern, "**") {
		found, err = deepGlob(filepath.ToSlash(pattern))
	}
	if err != nil {
		return nil, apierr.Wrap(err, apierr.InvalidArgument, "the glob %q", pattern)
	}
	var files []string
	for _, p := range found {
		info, err := os.Stat(p)
		if err != nil || info.IsDir() || hidden(p) && !hidden(pattern) {
			continue
		}
		one, err := chosen(p, left)
		if err != nil {
			return nil, err
		}
		files = append(files, one...)
	}
	if len(files) == 0 && len(left.empty) == 0 {
		return nil, apierr.New(apierr.NotFound, "no file matches %s", pattern).WithNext("ls " + filepath.Dir(pattern))
	}
	sort.Strings(files)
	return files, nil
}

// hidden says whether a name starts with a dot; a shell's * does not match those either.
func hidden(path string) bool { return strings.HasPrefix(filepath.Base(path), ".") }

func deepGlob(pattern string) ([]string, error) {
	base := pattern[:strings.LastIndex(pattern[:strings.IndexAny(pattern, "*?[")], "/")+1]
	expression := regexp.QuoteMeta(pattern)
	for _, r := range [][2]string{{`\*\*/`, `(?:.*/)?`}, {`\*\*`, `.*`}, {`\*`, `[^/]*`}, {`\?`, `[^/]`}} {
		expression = strings.ReplaceAll(expression, r[0], r[1])
	}
	match, err := regexp.Compile("^" + expression + "$")
	if err != nil {
		return nil, err
	}
	var out []string
	err = filepath.WalkDir(filepath.Clean("./"+base), func(p string, _ fs.DirEntry, err error) error {
		if err == nil && match.MatchString(filepath.ToSlash(p)) {
			out = append(out, p)
		}
		return err
	})
	return out, err
}

// folder finds the text files below dir, in order.
func folder(dir string, left *leftOut) ([]string, error) {
	var out []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		leave := hidden(p) && p != dir
		switch {
		case err != nil:
			return err
		case leave && d.IsDir():
			left.hidden++
			return fs.SkipDir
		case leave:
			left.hidden++
		case !d.Type().IsRegular():
		default:
			one, err := chosen(p, left)
			if err != nil {
				left.binary = append(left.binary, p)
			} else {
				out = append(out, one...)
			}
		}
		return nil
	})
	if err != nil {
		return nil, apierr.Wrap(err, apierr.InvalidArgument, "read the folder %s", dir)
	}
	return out, nil
}

// maxFile is the largest text that the coordinator takes, bytes.
const maxFile = 64 << 20

func readText(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", apierr.Wrap(err, apierr.NotFound, "read the input")
	}
	if info.Size() > maxFile {
		return "", apierr.New(apierr.InvalidArgument, "%s is larger than %d MiB", path, maxFile>>20).WithNext("split the document")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", apierr.Wrap(err, apierr.InvalidArgument, "read the input")
	}
	if !utf8.Valid(data) || strings.ContainsRune(string(data), 0) {
		return "", apierr.New(apierr.InvalidArgument, "%s is not UTF-8 text", path).WithNext("convert it to text first, such as with pdftotext or pandoc")
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
			i := input{key: fmt.Sprintf("%s:%0*d", f.key, digits, number), value: line}
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
