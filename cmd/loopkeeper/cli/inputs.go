package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// input is one item of a batch: a file that will be uploaded, or a value that is sent as it is.
type input struct {
	key    string
	path   string // of the file; empty for a value
	value  any
	source string // the file that it is from
}

// inputs finds what the arguments name: files, globs and folders. It returns what was left out on the way.
// A file that is named and cannot be used is an error; one that a folder or a glob happens to hold is left out. Empty files are
// always left out: a model would answer about nothing. What stands in the folder results, if there is one, is no input either.
// An image is one where it is named or a glob asks for images, as '*.jpg' does: most models see none.
func inputs(ctx context.Context, args []string, results string) ([]input, leftOut, error) {
	return find(finder{ctx: ctx, results: results, named: true}, args)
}

// textInputs are those among which images have no place.
func textInputs(ctx context.Context, args []string) ([]input, error) {
	out, _, err := find(finder{ctx: ctx}, args)
	return out, err
}

func find(f finder, args []string) (out []input, left leftOut, err error) {
	if len(args) == 0 {
		return nil, left, usagef("no input: name files, folders or quoted globs")
	}
	f.left = &left
	seen := map[string]bool{}
	for _, arg := range args {
		paths, err := f.expand(arg)
		if err != nil {
			return nil, left, err
		}
		for _, p := range paths {
			if !seen[p] {
				seen[p] = true
				out = append(out, input{key: filepath.ToSlash(p), path: p, source: p})
			}
		}
	}
	if len(out) == 0 {
		return nil, left, apierr.New(apierr.InvalidArgument, "%s: no text file found%s", strings.Join(args, ", "), left.text()).
			WithNext("ls " + quote(args[0]))
	}
	return out, left, nil
}

// finder looks for the text files that arguments name, until ctx ends.
type finder struct {
	ctx     context.Context
	results string // a folder whose files are results; "" for none
	named   bool   // images are wanted where they are named
	left    *leftOut
}

// expand turns one argument into files.
func (f finder) expand(arg string) ([]string, error) {
	if !utf8.ValidString(arg) {
		return nil, badName(arg)
	}
	info, err := os.Stat(arg)
	switch {
	case err == nil && info.IsDir():
		return f.folder(arg)
	case err == nil:
		return f.chosen(arg, f.named)
	case errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(arg, "*?["):
		return f.glob(arg)
	case errors.Is(err, fs.ErrNotExist):
		return nil, apierr.New(apierr.NotFound, "there is no file %s", arg).WithNext("check the path; a glob in quotes is expanded here")
	default:
		return nil, apierr.Wrap(err, apierr.InvalidArgument, "read the input")
	}
}

// chosen is a file that the user named.
func (f finder) chosen(path string, images bool) ([]string, error) {
	if err := f.ctx.Err(); err != nil {
		return nil, err
	}
	if !utf8.ValidString(path) {
		return nil, badName(path)
	}
	text, err := readBody(path, images)
	if err == nil && strings.TrimSpace(text) == "" {
		f.left.add("empty", path)
		return nil, nil
	}
	return []string{path}, err
}

// found is a file that a folder or a glob holds.
func (f finder) found(path string, images bool) ([]string, error) {
	files, err := f.chosen(path, images)
	if err == nil || f.ctx.Err() != nil {
		return files, err
	}
	why := "unreadable"
	var u unusable
	if errors.As(err, &u) {
		why = u.why
	}
	f.left.add(why, path)
	return nil, nil
}

// glob expands a pattern; ** stands for any folders.
func (f finder) glob(pattern string) ([]string, error) {
	found, err := filepath.Glob(pattern)
	if err == nil && strings.Contains(pattern, "**") {
		found, err = f.deepGlob(filepath.ToSlash(filepath.Clean(pattern)))
	}
	if err != nil {
		return nil, apierr.Wrap(err, apierr.InvalidArgument, "the glob %q", pattern)
	}
	var files []string
	matched := false
	for _, p := range found {
		info, err := os.Stat(p)
		if err != nil || info.IsDir() {
			continue
		}
		if hidden(p) && !hidden(pattern) {
			f.left.hidden++
			continue
		}
		matched = true
		one, err := f.found(p, f.named && run.ImageName(pattern))
		if err != nil {
			return nil, err
		}
		files = append(files, one...)
	}
	if !matched {
		return nil, apierr.New(apierr.NotFound, "no file matches %s", pattern).WithNext("ls " + quote(filepath.Dir(pattern)))
	}
	sort.Strings(files)
	return files, nil
}

// hidden says whether a name starts with a dot; a shell's * does not match those either.
func hidden(path string) bool {
	base := filepath.Base(path)
	return strings.HasPrefix(base, ".") && base != "." && base != ".."
}

// deepGlob finds the files below a pattern's first folder that match all of it.
func (f finder) deepGlob(pattern string) ([]string, error) {
	base := pattern[:strings.LastIndex(pattern[:strings.IndexAny(pattern, "*?[")], "/")+1]
	want := strings.Split(pattern[len(base):], "/")
	var out []string
	err := f.walk(filepath.Clean(base), func(p string) error { // "." for none
		if matches(want, strings.Split(strings.TrimPrefix(filepath.ToSlash(p), base), "/")) {
			out = append(out, p)
		}
		return nil
	})
	return out, err
}

// matches says whether the names of a path fit those of a pattern, of which ** stands for any number.
func matches(pattern, names []string) bool {
	switch {
	case len(pattern) == 0:
		return len(names) == 0
	case pattern[0] == "**":
		return matches(pattern[1:], names) || len(names) > 0 && matches(pattern, names[1:])
	case len(names) == 0:
		return false
	}
	ok, err := path.Match(pattern[0], names[0])
	return err == nil && ok && matches(pattern[1:], names[1:])
}

// folder finds the text files below dir, in order.
func (f finder) folder(dir string) ([]string, error) {
	if to, err := os.Stat(f.results); err == nil {
		if from, err := os.Stat(dir); err == nil && os.SameFile(from, to) {
			return nil, apierr.New(apierr.InvalidArgument, "--out-dir %s is the folder of the inputs: its results would be inputs the next time", f.results).
				WithNext("--out-dir " + quote(filepath.Join(f.results, "results")))
		}
	}
	var out []string
	err := f.walk(dir, func(p string) error {
		one, err := f.found(p, false)
		out = append(out, one...)
		return err
	})
	if err != nil {
		return nil, apierr.Wrap(err, apierr.InvalidArgument, "read the folder %s", dir)
	}
	return out, nil
}

// walk visits the regular files below dir that are not hidden, in order, and leaves out the folder of the results.
func (f finder) walk(dir string, visit func(string) error) error {
	results, err := os.Stat(f.results)
	if err != nil { // there is none yet
		results = nil
	}
	return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil {
			err = f.ctx.Err()
		}
		switch {
		case err != nil:
			return err
		case hidden(p) && p != dir:
			f.left.hidden++
		case results != nil && d.IsDir() && p != dir && sameDir(d, results):
			f.left.results = p
		case d.Type().IsRegular():
			return visit(p)
		default:
			return nil
		}
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
}

func sameDir(d fs.DirEntry, dir fs.FileInfo) bool {
	info, err := d.Info()
	return err == nil && os.SameFile(info, dir)
}
